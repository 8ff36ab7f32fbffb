"""What the README shows must run and be true."""

import doctest
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[1]
NAMES = ("README.md", "README.zh-CN.md")
READMES = {name: (ROOT / name).read_text(encoding="utf-8") for name in NAMES}
README = READMES["README.md"]
WHOLE = {
    "pictures",
    "phrasebook",
    "trace",
    "watching",
    "insight",
    "explorer",
    "gallery",
}  # rooms shown by one line


def blocks(name, language=""):
    found = re.findall(r"^```(\w*)\n(.*?)^```$", READMES[name], flags=re.DOTALL | re.MULTILINE)
    return [text for kind, text in found if kind == language]


def uncommented(text):
    return [line.partition("#")[0].rstrip() for line in text.splitlines()]


@pytest.mark.parametrize("name", NAMES)
def test_every_example_runs_and_shows_what_it_says(name):
    names: dict[str, object] = {}
    for block in blocks(name, "python"):
        if block.startswith(">>>"):
            example = doctest.DocTestParser().get_doctest(block, names, "README", None, None)
            assert doctest.DocTestRunner(verbose=False).run(example).failed == 0
        else:
            exec(block, names)
    assert names["weights"].shape == (2, 8, 7, 7)
    assert torch.equal(names["weights"].triu(1), torch.zeros(2, 8, 7, 7))
    assert names["crossing"].shape == (1, 4, 3, 5)
    assert "decoder.layers.1.multihead_attn" in str(names["seen"])


def test_both_languages_show_the_same_code_and_commands():
    for language in ("", "python"):
        ours, theirs = (blocks(name, language) for name in NAMES)
        if not language:  # the map is in English alone
            ours = [block for block in ours if "src/regard/" not in block]
        assert list(map(uncommented, ours)) == list(map(uncommented, theirs))


def test_the_commands_for_your_own_text_do_what_they_say(tmp_path):
    pairs = "".join(f"the {n} cats\tles {n} chats\n" for n in range(60))
    (tmp_path / "pairs.tsv").write_text(pairs)
    (block,) = (block for block in blocks("README.md") if "regard train" in block)
    _, *lines = map(shlex.split, uncommented(block))  # the first one activates
    assert [words[:2] for words in lines] == [["regard", n] for n in ("train", "translate", "look")]
    lines[0] += ["--set", "train.steps=5", "--set", "data.pieces=300"]  # or it takes its time
    for _, *words in lines:
        command = [sys.executable, "-m", "regard", *words]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "run" / "model.safetensors").exists()
    assert (tmp_path / "look.html").read_text().startswith("<!DOCTYPE html>")


@pytest.mark.parametrize(
    "link",
    sorted({link for text in READMES.values() for link in re.findall(r"\]\(([^)#]+)", text)}),
)
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


@pytest.mark.parametrize(
    "command", ["make demo", "make test", "make bench", "make explore", "make gallery"]
)
def test_every_command_is_a_target_of_the_makefile(command):
    assert all(command in text for text in READMES.values())
    assert re.search(
        rf"^{command.split()[1]}:", (ROOT / "Makefile").read_text(), flags=re.MULTILINE
    )
