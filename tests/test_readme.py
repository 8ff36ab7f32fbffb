"""What the README shows must run and be true."""

import doctest
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from regard.cli.commands import app

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

PROGRAMS = r"regard|make|python3?|torchrun|pip|kill"
# what is run here, on a few pairs: what it leaves to the reader, and what it answers
HERE = {
    "regard train pairs.tsv --out run": (
        "--set train.steps=5 --set data.vocab_size=300",  # or it takes its time
        "",
    ),
    'regard translate run "A sentence."': ("", ""),
    'regard look run "A sentence." --html look.html': ("", "look.html"),
    'regard look demo "The cat sits on the mat." --html look.html': ("", "look.html"),
    "regard score": ("run pairs.en pairs.fr", "BLEU"),
    "regard doctor": ("pairs.tsv", "60 pairs"),
}
ELSEWHERE = {
    "regard explore run other": "explorer/test_server.py::test_two_runs_are_served_side_by_side",
    'regard look --hf MODEL "a text"': "test_gaze.py::test_the_verb_looks_at_a_hugging_face_model",
    "torchrun --nproc-per-node 2 -m regard train …": (
        "training/test_session.py::test_two_processes_learn_what_one_does"
    ),
    "regard translate --traces": (
        "test_cli.py::test_traces_tell_where_the_model_looked_a_line_a_sentence"
    ),
    "kill -9": "training/test_session.py::test_a_killed_process_goes_on_to_the_same_weights",
}
TARGETS = {
    "make demo": "-m regard demo",
    "make explore": "-m regard explore",
    "make gallery": "-m regard gallery",
    "make test": "-m pytest",
    "make bench": "bench/attention.py",
}
SET_UP = {". .venv/bin/activate", "pip install 'regard[explorer]'"}
translated = {'regard look --hf MODEL "一段文本"': 'regard look --hf MODEL "a text"'}


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


def commands(name):
    """List every command: the lines of blocks, and what stands between backticks elsewhere."""
    shown = [block for block in blocks(name) if "src/regard/" not in block]
    lines = [line for block in shown for line in uncommented(block)]
    prose = re.sub(r"^```.*?^```$", "", READMES[name], flags=re.DOTALL | re.MULTILINE)
    prose += "".join(re.findall("#.*", "".join(shown)))
    return {*lines, *re.findall(rf"`((?:{PROGRAMS}) [^`]*)`", prose)}


@pytest.mark.parametrize("name", NAMES)
def test_every_command_is_run_by_a_test(name):
    found = {translated.get(command, command) for command in commands(name)}
    assert found == {*HERE, *ELSEWHERE, *TARGETS, *SET_UP}
    for test in ELSEWHERE.values():
        file, _, function = test.partition("::")
        assert f"def {function}(" in (ROOT / "tests" / file).read_text(encoding="utf-8"), test


@pytest.mark.usefixtures("unchecked")
def test_the_commands_do_what_they_say(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pairs = [(f"the {n} cats", f"les {n} chats") for n in range(60)]
    Path("pairs.tsv").write_text("".join(f"{one}\t{other}\n" for one, other in pairs))
    for side, file in enumerate(("pairs.en", "pairs.fr")):
        Path(file).write_text("".join(f"{pair[side]}\n" for pair in pairs[:5]))
    for command, (more, told) in HERE.items():
        _, *words = shlex.split(f"{command} {more}")
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, (command, done.output)
        assert told in done.output, (command, done.output)
        if words[0] == "train":
            shutil.copytree("run", "demo")  # as small as this one
    assert Path("run", "model.safetensors").exists()
    assert Path("look.html").read_text().startswith("<!DOCTYPE html>")


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


@pytest.mark.skipif(not shutil.which("make"), reason="make is not installed")
@pytest.mark.parametrize("command", TARGETS)
def test_every_target_of_the_makefile_runs_what_is_said(command):
    done = subprocess.run(
        [*command.split(), "--dry-run"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert TARGETS[command] in done.stdout
