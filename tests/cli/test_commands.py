import os
import shlex
import subprocess
import sys

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from regard import __version__
from regard.cli.commands import app
from regard.demo import five_words
from regard.errors import RegardError
from regard.trace import Trace

VERBS = sorted(get_command(app).commands)


def run(*arguments):
    return CliRunner().invoke(app, arguments)


def python(*arguments):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True)


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help_names_every_verb(option):
    result = run(option)
    assert result.exit_code == 0
    assert "Attention you can use, train and see." in result.stdout
    assert all(f"\n  {verb} " in result.stdout for verb in VERBS)


@pytest.mark.parametrize("option", ["-h", "--help"])
@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help(verb, option):
    result = run(verb, option)
    assert result.exit_code == 0
    assert f"{verb} [OPTIONS]" in result.stdout
    assert get_command(app).commands[verb].help.splitlines()[0] in result.stdout


def test_the_version_is_the_packages():
    result = run("--version")
    assert (result.exit_code, result.stdout) == (0, f"regard {__version__}\n")


def test_a_picture_is_saved_where_it_is_told(tmp_path):
    result = run("words", "--out", str(tmp_path / "five.svg"))
    assert result.exit_code == 0
    assert "Where each word looks" in result.stdout
    assert (tmp_path / "five.svg").read_text().startswith("<?xml")


def test_what_a_user_can_repair_is_one_line_on_stderr(tmp_path):
    result = run("words", "--out", str(tmp_path / "five.docx"))
    assert result.exit_code == 1
    assert result.stderr.startswith("regard: no picture format is called 'docx'")
    assert result.stderr.count("\n") == 1
    assert "Traceback" not in result.output


def test_a_mistake_of_ours_keeps_its_traceback(monkeypatch):
    def fail(*_):
        raise ZeroDivisionError("ours")

    monkeypatch.setattr(five_words, "five_words", fail)
    assert isinstance(run("words").exception, ZeroDivisionError)


@pytest.mark.parametrize("arguments", [["trian"], ["demo", "--uot", "x"]])
def test_a_wrong_word_on_the_command_line_is_a_usage_error(arguments):
    result = run(*arguments)
    assert result.exit_code == 2
    assert "Did you mean" in result.stderr or "No such option" in result.stderr


def test_help_imports_neither_torch_nor_matplotlib_nor_fastapi():
    check = (
        "import sys; from regard.cli.commands import app; app(['--help'], standalone_mode=False); "
        "print({'torch', 'matplotlib', 'fastapi'} & set(sys.modules))"
    )
    found = python("-c", check)
    assert found.stdout.endswith("\nset()\n")
    assert "Usage:" in found.stdout


def test_threads_that_wait_sleep_unless_the_user_wants_otherwise(monkeypatch):
    for before, after in ((None, "PASSIVE"), ("ACTIVE", "ACTIVE")):
        monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
        if before is not None:
            monkeypatch.setenv("OMP_WAIT_POLICY", before)
        check = "import os, regard.cli.commands; print(os.environ['OMP_WAIT_POLICY'])"
        assert python("-c", check).stdout == f"{after}\n"


def test_the_module_runs_as_the_command():
    found = python("-m", "regard", "--version")
    assert (found.returncode, found.stdout) == (0, f"regard {__version__}\n")
    assert python("-m", "regard", "-h").stdout.startswith("Usage: regard [OPTIONS]")


def test_an_error_of_a_verb_is_the_one_line_in_a_real_process_too(tmp_path):
    found = python("-m", "regard", "words", "--out", str(tmp_path / "nowhere" / "x.png"))
    assert found.returncode == 1
    assert found.stderr.startswith("regard: cannot write ")
    assert found.stderr.count("\n") == 1


def test_the_message_is_that_of_the_error(monkeypatch):
    def fail(*_):
        raise RegardError("no such thing; another would do")

    monkeypatch.setattr(five_words, "five_words", fail)
    assert run("words").stderr == "regard: no such thing; another would do\n"


def test_the_bare_command_shows_its_help():
    assert "Commands:\n  train " in run().output


@pytest.fixture
def pairs(tmp_path):
    from helpers.tiny_corpus import write_tsv

    return write_tsv(tmp_path / "pairs.tsv")


def refused(sentence, *arguments):
    """Expect one line on stderr, exit code 1, and give nothing else a chance to happen."""
    result = run(*map(str, arguments))
    assert result.exit_code == 1, result.output
    assert sentence in result.stderr
    assert result.stderr.count("\n") == 1 and "Traceback" not in result.output


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """One small run, trained on the command line, for every verb."""
    from helpers.tiny_corpus import SMALL, write_tsv

    folder = tmp_path_factory.mktemp("cli")
    sets = [f"{s}.{k}={v}" for s, keys in SMALL[0].items() for k, v in keys.items()]
    wanted = [part for change in sets for part in ("--set", change)]
    tsv = write_tsv(folder / "pairs.tsv")
    result = run("train", str(tsv), "--out", str(folder / "run"), *wanted)
    assert result.exit_code == 0, result.output
    assert "12 steps at most: about" in result.stderr
    assert result.stdout == ""  # progress and notes go to stderr
    return folder


def test_arguments_are_translated_one_line_each(trained):
    result = run("translate", str(trained / "run"), "the cat", "a dog", "--beam", "2")
    assert result.exit_code == 0 and result.stdout.count("\n") == 2


def test_lines_of_stdin_are_translated_in_order(trained, unchecked):
    lines = ["the cat", "", "the old dog"]
    typed = CliRunner().invoke(app, ["translate", str(trained / "run")], "\n".join(lines))
    given = run("translate", str(trained / "run"), *lines)
    assert typed.stdout == given.stdout and typed.stdout.split("\n")[1] == ""


def test_several_translations_come_with_scores(trained):
    result = run("translate", str(trained / "run"), "the cat", "--nbest", "3")
    scores = [float(line.split("\t")[0]) for line in result.stdout.splitlines()]
    assert len(scores) == 3 and scores == sorted(scores, reverse=True)


def test_a_seed_draws_the_same_twice(trained):
    draw = ("translate", str(trained / "run"), "the cat", "--sample", "--seed", "7")
    assert run(*draw).stdout == run(*draw).stdout


def test_traces_tell_where_the_model_looked_a_line_a_sentence(trained, tmp_path):
    path = tmp_path / "traces.jsonl"
    path.write_text("of an earlier command")
    given = ("the cat", "", "the old dog")
    result = run("translate", str(trained / "run"), *given, "--traces", str(path))
    assert result.exit_code == 0, result.output
    traces = [Trace.from_json(line) for line in path.read_text().splitlines()]
    assert ["".join(trace.tokens["source"].pieces).strip() for trace in traces] == list(given)
    assert [trace.title for trace in traces] == list(given)
    assert {look.kind for look in traces[0].looks} == {"self", "causal", "cross"}
    assert traces[1].looks == ()


def test_a_trace_is_of_the_very_source_that_was_translated(trained, tmp_path):
    path, sentences = tmp_path / "traces.jsonl", ("the old boat", " the old boat \t")
    result = run("translate", str(trained / "run"), *sentences, "--traces", str(path))
    plain, spaced = map(Trace.from_json, path.read_text().splitlines())
    assert result.exit_code == 0 and plain.looks
    assert plain.tokens == spaced.tokens


def test_alignments_are_compared_where_they_are_given(trained, tmp_path):
    for name, lines in (("s", "the cat\n"), ("t", "le chat\n"), ("a", "0-0 1-1\n")):
        (tmp_path / name).write_text(lines)
    paths = [str(tmp_path / name) for name in ("s", "t")]
    result = run("score", str(trained / "run"), *paths, "--alignments", str(tmp_path / "a"))
    assert "alignment error rate" in result.stdout


def test_a_run_is_scored_against_references(trained):
    for side, name in enumerate(("source", "target")):
        text = (trained / "pairs.tsv").read_text().splitlines()[:5]
        (trained / name).write_text("".join(line.split("\t")[side] + "\n" for line in text))
    result = run("score", *(str(trained / name) for name in ("run", "source", "target")))
    assert result.exit_code == 0 and "tok:13a" in result.stdout


def test_other_settings_for_the_same_folder_are_refused(trained):
    refused("is a run with", "train", trained / "pairs.tsv", "--out", trained / "run")


def test_bad_input_is_one_line(pairs, tmp_path):
    out = tmp_path / "run"
    refused("cannot read", "train", tmp_path / "none.tsv", "--out", out)
    refused("no preset is called 'mult30k'", "train", pairs, "--out", out, "--preset", "mult30k")
    refused("Did you mean 'train.steps'?", "train", pairs, "--out", out, "--set", "train.step=3")
    refused("must be section.key=value", "train", pairs, "--out", out, "--set", "steps")
    refused("not 3 files", "train", pairs, pairs, pairs, "--out", out)
    refused("is not a run", "translate", tmp_path, "a sentence")
    assert not out.exists()


def test_the_doctor_tells_what_would_be_left_out(tmp_path):
    path = tmp_path / "odd.tsv"
    path.write_text("a cat\tun chat\n\tvide\na cat\tun chat\n", encoding="utf-8")
    told = run("doctor", str(path)).stdout
    assert "3 pairs in" in told and "1 × the same pair again (line 3)" in told
    assert "would leave out 1 pairs and learn from 2" in told


def test_presets_are_listed_shown_and_copied(tmp_path):
    assert "multi30k-recurrent" in run("presets").stdout
    shown = run("presets", "show", "multi30k").stdout
    assert run("presets", "copy", "multi30k", "--to", str(tmp_path)).exit_code == 0
    assert (tmp_path / "multi30k.toml").read_text() == shown
    refused("exists already", "presets", "copy", "multi30k", "--to", tmp_path)
    refused("no act of presets is called 'cpoy'", "presets", "cpoy")


@pytest.mark.parametrize("missing", ["fastapi", "uvicorn"])
def test_the_explorer_says_what_it_needs(missing):
    without = f"import sys; sys.modules[{missing!r}] = None; "
    without += "from regard.cli import app; app(['explore'])"
    found = python("-c", without)
    wanted = "the explorer needs fastapi and uvicorn: pip install 'regard[explorer]'"
    assert (found.returncode, found.stderr) == (1, f"regard: {wanted}\n")


def test_the_explorer_refuses_what_is_no_run_or_no_trace(tmp_path):
    (tmp_path / "trace.json").write_text("{}")
    free = ("--port", 0)
    refused("is not a run", "explore", tmp_path, *free)
    refused("not a trace", "explore", "--trace", tmp_path / "trace.json", *free)


def test_a_training_goes_on_when_no_one_reads_what_it_tells(trained, tmp_path):
    from helpers.tiny_corpus import SMALL

    sets = [f"{s}.{k}={v}" for s, keys in SMALL[0].items() for k, v in keys.items()]
    wanted = [part for change in sets for part in ("--set", change)]
    verb = ["train", str(trained / "pairs.tsv"), "--out", str(tmp_path / "run"), *wanted]
    reading, writing = os.pipe()
    os.close(reading)
    ended = subprocess.run([sys.executable, "-m", "regard", *verb], stderr=writing, check=False)
    os.close(writing)
    assert ended.returncode == 0
    assert (tmp_path / "run" / "README.md").exists()


def test_without_sentences_or_stdin_there_is_nothing_to_translate(trained):
    verb = [sys.executable, "-m", "regard", "translate", str(trained / "run")]
    shell = " ".join(map(shlex.quote, verb)) + " <&-"
    ended = subprocess.run(shell, shell=True, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr == "regard: there are no sentences to translate, and stdin is closed\n"
