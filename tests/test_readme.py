"""The README's examples run, its commands are tested, and its links lead somewhere."""

import doctest
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from regard.cli import app

ROOT = Path(__file__).parents[1]
NAMES = ("README.md", "README.zh-CN.md")
READMES = {name: (ROOT / name).read_text(encoding="utf-8") for name in NAMES}

PROGRAMS = r"regard|make|python3?|torchrun|pip|kill"
# commands run here, on a few pairs: the arguments to add, and a part of the output
RUN_HERE = {
    "regard train pairs.tsv --out run": ("--set train.steps=5 --set data.vocab_size=300", ""),
    'regard translate run "A sentence."': ("", ""),
    'regard look run "A sentence." --html look.html': ("", "look.html"),
    'regard look demo-model "The white cat broke the cup." --html look.html': ("", "Le chat blanc"),
    "regard export demo-model --to html": ("", "wrote demo-model.html"),
    'regard look demo-model "The white cat broke the cup."': (
        "",
        "Le chat blanc a cassé la tasse.",
    ),
    "regard words": ("", "kitten  attends most to kitten"),
    "regard score": ("run test.en test.fr", "BLEU"),
    "regard doctor": ("pairs.tsv", "60 pairs"),
}
# commands run by another test
RUN_ELSEWHERE = {
    "regard explore --open": (
        "explorer/test_server.py::test_browser_is_opened_with_a_link_that_logs_in_once"
    ),
    "regard explore run other": "explorer/test_server.py::test_explore_command_serves_two_runs",
    "regard serve run=en:fr": "serving/test_server.py::test_serve_command_translates",
    'regard look --hf MODEL "a text"': "cli/test_look.py::test_look_draws_a_hugging_face_model",
    "regard translate --traces": (
        "cli/test_commands.py::test_traces_option_writes_one_trace_per_line"
    ),
    "regard export RUN --out DIR": "cli/test_engines.py::test_export_writes_a_ctranslate2_model",
    "kill -9": "training/test_resume.py::test_killed_process_resumes_to_the_same_parameters",
}
MAKE_TARGETS = {
    "make demo": "-m regard demo",
    "make explore": "-m regard explore",
    "make gallery": "-m regard gallery",
    "make docs": "-m sphinx",
    "make check": '-m "not (browser',
    "make test": "-m pytest",
    "make bench": "bench/attention.py",
}
SET_UP = {
    ". .venv/bin/activate",
    "pip install .",
    "pip install '.[pictures,explorer]'",
    "pip install '.[fast]'",
    "pip install '.[notebook]'",
    "pip install 'regard[explorer]'",
    "pip install 'regard[serve]'",
}
TRANSLATED = {'regard look --hf MODEL "一段文本"': 'regard look --hf MODEL "a text"'}


def code_blocks(name, language=""):
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", READMES[name], flags=re.DOTALL | re.MULTILINE)
    return [text for block_language, text in blocks if block_language == language]


def without_comments(text):
    return [line.partition("#")[0].rstrip() for line in text.splitlines()]


def commands(name):
    """Return every command: lines of code blocks, and text between backticks elsewhere."""
    blocks = code_blocks(name)
    lines = [line for block in blocks for line in without_comments(block)]
    prose = re.sub(r"^```.*?^```$", "", READMES[name], flags=re.DOTALL | re.MULTILINE)
    prose += "".join(re.findall("#.*", "".join(blocks)))
    return {*lines, *re.findall(rf"`((?:{PROGRAMS}) [^`]*)`", prose)}


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    """Files of the names that the README uses, in the current folder."""
    monkeypatch.chdir(tmp_path)
    pairs = [(f"the {n} cats", f"les {n} chats") for n in range(60)]
    Path("pairs.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in pairs))
    for side, language in enumerate(("en", "fr")):
        Path(f"test.{language}").write_text("".join(f"{pair[side]}\n" for pair in pairs[:5]))


@pytest.mark.train
@pytest.mark.usefixtures("corpus", "unchecked")
@pytest.mark.parametrize("name", NAMES)
def test_python_examples_run(name):
    names: dict[str, object] = {}
    for block in code_blocks(name, "python"):
        block = block.replace("minutes=10", 'steps=5, settings={"data": {"vocab_size": 300}}')
        if block.startswith(">>>"):
            example = doctest.DocTestParser().get_doctest(block, names, "README", None, None)
            assert doctest.DocTestRunner(verbose=False).run(example).failed == 0
        else:
            exec(block, names)
    assert names["weights"].shape == (2, 8, 7, 7)
    assert torch.equal(names["weights"].triu(1), torch.zeros(2, 8, 7, 7))
    assert names["cross"].shape == (1, 4, 3, 5)
    assert "decoder.layers.1.multihead_attn" in str(names["capture"])
    assert Path("look.html").read_text().startswith("<!DOCTYPE html>")
    assert Path("head.png").read_bytes().startswith(b"\x89PNG")


def test_both_languages_have_the_same_code_and_commands():
    for language in ("", "python"):
        english, chinese = (code_blocks(name, language) for name in NAMES)
        assert list(map(without_comments, english)) == list(map(without_comments, chinese))


@pytest.mark.parametrize("name", NAMES)
def test_every_command_is_run_by_a_test(name):
    shown = {TRANSLATED.get(command, command) for command in commands(name)}
    assert shown == {*RUN_HERE, *RUN_ELSEWHERE, *MAKE_TARGETS, *SET_UP}
    for test in RUN_ELSEWHERE.values():
        file, _, function = test.partition("::")
        assert f"def {function}(" in (ROOT / "tests" / file).read_text(encoding="utf-8"), test


@pytest.mark.train
@pytest.mark.usefixtures("corpus", "unchecked")
def test_commands_succeed_on_a_small_corpus():
    for command, (arguments, output) in RUN_HERE.items():
        _, *words = shlex.split(f"{command} {arguments}")
        result = CliRunner().invoke(app, words)
        assert result.exit_code == 0, (command, result.output)
        assert output in result.output, (command, result.output)
    assert Path("run", "model.safetensors").exists()
    assert Path("look.html").read_text().startswith("<!DOCTYPE html>")


@pytest.mark.parametrize(
    "link",
    sorted({link for text in READMES.values() for link in re.findall(r"\]\(([^)#]+)", text)}),
)
def test_link_to_file_leads_somewhere(link):
    assert link.startswith("https://") or (ROOT / link).exists()


@pytest.mark.skipif(not shutil.which("make"), reason="make is not installed")
@pytest.mark.parametrize("command", MAKE_TARGETS)
def test_make_target_runs_its_command(command):
    result = subprocess.run(
        [*command.split(), "--dry-run"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert MAKE_TARGETS[command] in result.stdout


def table_cells(name):
    """Return the number of cells of every row of every table."""
    rows = re.findall(r"^\|.*\|$", READMES[name], flags=re.MULTILINE)
    return [row.count("|") for row in rows]


def test_both_languages_have_the_same_sections_tables_links_and_scripts():
    english, chinese = (READMES[name] for name in NAMES)
    for pattern in (r"^(#+) ", r"\]\(([^)]+)\)", r"`(\w+\.py[^`]*)`"):
        both = [re.findall(pattern, text, flags=re.MULTILINE) for text in (english, chinese)]
        switch = {"README.md", "README.zh-CN.md"}
        first, second = ([each for each in matches if each not in switch] for matches in both)
        assert first == second
    assert table_cells("README.md") == table_cells("README.zh-CN.md")


def test_named_benchmarks_exist():
    scripts = re.findall(r"`(\w+\.py)[^`]*`", READMES["README.md"])
    assert scripts
    for script in scripts:
        assert (ROOT / "bench" / script).exists(), script
