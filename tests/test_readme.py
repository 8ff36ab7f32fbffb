"""What the README shows must run and be true."""

import doctest
import re
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
WHOLE = {
    "pictures",
    "phrasebook",
    "trace",
    "watching",
    "insight",
    "gallery",
}  # rooms shown by one line
BLOCKS = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)


def test_every_example_runs_and_shows_what_it_says():
    names: dict[str, object] = {}
    for block in BLOCKS:
        if block.startswith(">>>"):
            example = doctest.DocTestParser().get_doctest(block, names, "README", None, None)
            assert doctest.DocTestRunner(verbose=False).run(example).failed == 0
        else:
            exec(block, names)
    assert names["weights"].shape == (2, 8, 7, 7)
    assert torch.equal(names["weights"].triu(1), torch.zeros(2, 8, 7, 7))
    assert names["crossing"].shape == (1, 4, 3, 5)
    assert "decoder.layers.1.multihead_attn" in str(names["seen"])


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)#]+)\)", README))
def test_every_link_to_a_file_leads_somewhere(link):
    assert link.startswith("https://") or (ROOT / link).exists()


def test_every_file_of_the_map_exists():
    listing = README.split("## The map")[1].split("```")[1]
    files = re.findall(r"[a-z_]+\.py", listing)
    assert len(files) > 20
    for file in files:
        assert list((ROOT / "src").rglob(file)), file


def test_every_source_file_is_on_the_map():
    listing = README.split("## The map")[1].split("```")[1]
    small = {"__init__.py", "__main__.py"}
    for file in (ROOT / "src").rglob("*.py"):
        folder_is_shown_whole = WHOLE & {part.name for part in file.parents}
        assert file.name in small or folder_is_shown_whole or file.name in listing, file.name


@pytest.mark.parametrize("command", ["make demo", "make gallery", "make test", "make bench"])
def test_every_command_is_a_target_of_the_makefile(command):
    assert command in README
    assert re.search(
        rf"^{command.split()[1]}:", (ROOT / "Makefile").read_text(), flags=re.MULTILINE
    )
