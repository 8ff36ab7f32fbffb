"""Whatever files, folders and texts are called or contain, it does not control the terminal."""

import io
import re
import shutil
import sys

import pytest
from typer.main import get_command

from helpers.tiny_corpus import TINY, tiny_pairs
from regard.cli import app
from regard.data import Tokenizer, Tokenizers
from regard.runs import RunFolder, parameters

# clears the screen, sets the title, hides text, C1, bell, backspace, overrides, markup, a new line
CONTROLS = "\x1b[2J\x1b]0;t\x07\x1b[8m\x9b2J\x08\x7f\u202e\u2066\u200f\ufeff"
HOSTILE = f"evil{CONTROLS}[bold red]x[/]:smile:"
HOSTILE_NAME = HOSTILE.replace("/", "|") + "\nregard: forged"

COLOUR = r"\x1b\[(0|[34]8;(5;\d+|2;\d+;\d+;\d+)(;[34]8;(5;\d+|2;\d+;\d+;\d+))?)m"
CURSOR = r"\x1b\[(\?25[lh]|\d*[AK]|[\d;]*m)|\r"  # of rich's progress bars


class Stream(io.TextIOWrapper):
    def __init__(self, is_terminal):
        super().__init__(io.BytesIO(), encoding="utf-8", newline="")
        self._is_terminal = is_terminal

    def isatty(self):
        return self._is_terminal

    def getvalue(self):
        self.flush()
        return self.buffer.getvalue().decode()


@pytest.fixture(params=["terminal", "pipe"])
def run_command(request, monkeypatch, unchecked):
    """Return a function that runs a command and returns stdout and stderr."""
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.setenv("TERM", "xterm-256color")
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)

    def run(*arguments):
        out, err = (Stream(request.param == "terminal") for _ in range(2))
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", out)
            patch.setattr(sys, "stderr", err)
            with pytest.raises(SystemExit):
                get_command(app).main([str(a) for a in arguments], prog_name="regard")
        return out.getvalue(), err.getvalue()

    return run


def assert_harmless(out, err, tab=False):
    """Assert that no control character is left but line feeds, our colours and cursor moves."""
    plain_out, plain_err = re.sub(COLOUR, "", out), re.sub(CURSOR, "", err)
    allowed = "\n\t" if tab else "\n"
    for text in (plain_out, plain_err):
        left = {c for c in text if not c.isprintable() and c not in allowed}
        assert not left, ascii(text)
        assert not re.search("^regard: forged", text, re.MULTILINE)


@pytest.fixture(scope="module")
def hostile_run(tiny_run, tmp_path_factory):
    """A run in a folder with a hostile name, whose vocabulary is hostile throughout."""
    path = tmp_path_factory.mktemp("hostile") / HOSTILE_NAME
    shutil.copytree(tiny_run, path)
    folder = RunFolder(path)
    tensors, metadata = parameters.load(folder.model)
    count = len(Tokenizers.load(folder.tokenizer).source.pieces)
    tokenizer = Tokenizer("words", [f" {HOSTILE}{n}\t\n" for n in range(count)])
    Tokenizers(tokenizer, tokenizer).save(folder.tokenizer)
    parameters.save(folder.model, tensors, metadata)
    return path


def test_hostile_texts_are_hostile(hostile_run):
    tokenizer = Tokenizers.load(RunFolder(hostile_run).tokenizer).source
    assert HOSTILE in tokenizer.decode([tokenizer.encode_word(tokenizer.pieces[3])[0]])
    with pytest.raises(AssertionError):
        assert_harmless(HOSTILE, "")
    with pytest.raises(AssertionError):
        assert_harmless("", "\nregard: forged")


def test_translations_are_escaped(run_command, hostile_run):
    out, err = run_command("translate", hostile_run, f"a cat {HOSTILE}", "the dog", "--n-best", 2)
    assert out.count("\n") == 4
    if "\u202e" in out:  # text for another program keeps its direction
        assert "\\u202e" not in out
        out = re.sub("[\u202e\u2066\u200f\ufeff]", "", out)
    assert_harmless(out, err, tab=True)


@pytest.mark.parametrize("options", [[], ["--all"], ["--layer=0", "--no-words"], ["--html"]])
def test_drawings_are_escaped(run_command, hostile_run, tmp_path, options):
    if options == ["--html"]:
        options = ["--html", tmp_path / HOSTILE_NAME]
    out, err = run_command("look", hostile_run, f"a {HOSTILE} cat", *options)
    assert "evil" in out and "\\u202e" in out
    assert_harmless(out, err)


@pytest.fixture
def hostile_files(tmp_path):
    """Parallel files with hostile names and lines."""
    pairs = [(f"{pair.source} {HOSTILE}", f"{HOSTILE} {pair.target}") for pair in tiny_pairs()]
    paths = [tmp_path / f"{side} {HOSTILE_NAME}" for side in ("source", "target")]
    for path, lines in zip(paths, zip(*pairs, strict=True), strict=True):
        path.write_text("".join(f"{line}\n" for line in lines[:40]), encoding="utf-8")
    return paths


def test_reports_are_escaped(run_command, hostile_run, hostile_files):
    for command in (["doctor"], ["score", hostile_run]):
        out, err = run_command(*command, *hostile_files)
        assert out
        assert_harmless(out, err)


@pytest.mark.parametrize(
    "command",
    [
        ["translate", HOSTILE_NAME, "a"],
        ["look", HOSTILE_NAME, "a"],
        ["score", "demo-model", HOSTILE_NAME, HOSTILE_NAME],
        ["doctor", HOSTILE_NAME],
        ["train", HOSTILE_NAME, "--out", HOSTILE_NAME],
        ["train", "x", "--out", "x", "--set", f"model.{HOSTILE}=1"],
        ["train", "x", "--out", "x", "--set", f"model.kind={HOSTILE}"],
        ["train", "x", "--out", "x", "--preset", HOSTILE],
        ["train", "x", "--out", "x", "--settings", HOSTILE_NAME],
        ["presets", HOSTILE],
        ["presets", "show", HOSTILE],
        ["explore", HOSTILE_NAME],
        ["explore", "--trace", HOSTILE_NAME],
        ["gallery", "--only", HOSTILE],
        ["demo", "--to", HOSTILE],
        ["words", "--out", f"missing/{HOSTILE_NAME}.xyz"],
        [HOSTILE],
        ["look", f"--{HOSTILE}", "a"],
        ["explore", "--port", HOSTILE],
    ],
)
def test_errors_are_escaped(run_command, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    out, err = run_command(*command)
    assert err
    assert_harmless(out, err)


def test_copied_preset_is_escaped(run_command, tmp_path):
    out, err = run_command("presets", "copy", "multi30k", "--to", tmp_path / HOSTILE_NAME)
    assert "evil" in out
    assert_harmless(out, err)


@pytest.mark.train
def test_training_is_escaped(run_command, hostile_files, tmp_path):
    options = [
        f"--set={section}.{key}={value}" for section in TINY for key, value in TINY[section].items()
    ]
    options += ["--set=train.steps=3", "--set=data.validation_pairs=3", "--set=train.processes=1"]
    for _ in range(2):  # the second time it is finished
        out, err = run_command("train", *hostile_files, "--out", tmp_path / HOSTILE_NAME, *options)
        assert "evil" in err
        assert_harmless(out, err)
