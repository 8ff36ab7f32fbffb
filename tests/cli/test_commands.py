import os
import shlex
import shutil
import subprocess
import sys

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from regard import __version__
from regard.cli import app
from regard.errors import RegardError
from regard.trace import Trace

COMMANDS = sorted(get_command(app).commands)
LISTED = [name for name in COMMANDS if not get_command(app).commands[name].hidden]


def run(*arguments):
    return CliRunner().invoke(app, arguments)


def python(*arguments):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True)


def test_help_fits_80_columns_without_truncation_and_says_where_to_start():
    result = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "80"})
    assert not [line for line in result.stdout.splitlines()[1:] if line.endswith("...")]
    assert 'Try: regard look demo-model "The white cat' in result.stdout


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help_lists_every_command(option):
    result = run(option)
    assert result.exit_code == 0
    assert "Attention you can use, train and see." in result.stdout
    assert all(f"\n  {command} " in result.stdout for command in LISTED)


@pytest.mark.parametrize("option", ["-h", "--help"])
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command, option):
    result = run(command, option)
    assert result.exit_code == 0
    assert f"{command} [OPTIONS]" in result.stdout
    assert get_command(app).commands[command].help.splitlines()[0] in result.stdout


def test_version_option_prints_package_version():
    result = run("--version")
    assert (result.exit_code, result.stdout) == (0, f"regard {__version__}\n")


def test_words_writes_picture_to_out(tmp_path):
    result = run("words", "--out", str(tmp_path / "five.svg"))
    assert result.exit_code == 0
    assert "Attention weights" in result.stdout
    assert (tmp_path / "five.svg").read_text().startswith("<?xml")


def test_user_error_is_one_line_on_stderr(tmp_path):
    result = run("words", "--out", str(tmp_path / "five.docx"))
    assert result.exit_code == 1
    assert result.stderr.startswith("regard: no picture format is called 'docx'")
    assert result.stderr.count("\n") == 1
    assert "Traceback" not in result.output


def test_internal_error_keeps_its_traceback(monkeypatch):
    def fail(*_):
        raise ZeroDivisionError("ours")

    monkeypatch.setattr("regard.demo.run_five_words", fail)
    assert isinstance(run("words").exception, ZeroDivisionError)


@pytest.mark.parametrize("arguments", [["trian"], ["demo", "--uot", "x"]])
def test_unknown_command_or_option_is_a_usage_error(arguments):
    result = run(*arguments)
    assert result.exit_code == 2
    assert "Did you mean" in result.stderr or "No such option" in result.stderr


def test_help_imports_neither_torch_nor_matplotlib_nor_fastapi():
    check = (
        "import sys; from regard.cli import app; app(['--help'], standalone_mode=False); "
        "print({'torch', 'matplotlib', 'fastapi'} & set(sys.modules))"
    )
    result = python("-c", check)
    assert result.stdout.endswith("\nset()\n")
    assert "Usage:" in result.stdout


def test_omp_wait_policy_is_passive_unless_set(monkeypatch):
    for before, after in ((None, "PASSIVE"), ("ACTIVE", "ACTIVE")):
        monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
        if before is not None:
            monkeypatch.setenv("OMP_WAIT_POLICY", before)
        check = "import os, regard.cli; print(os.environ['OMP_WAIT_POLICY'])"
        assert python("-c", check).stdout == f"{after}\n"


def test_python_dash_m_runs_the_command():
    result = python("-m", "regard", "--version")
    assert (result.returncode, result.stdout) == (0, f"regard {__version__}\n")
    assert python("-m", "regard", "-h").stdout.startswith("Usage: regard [OPTIONS]")


def test_user_error_in_subprocess_is_one_line_with_exit_code_1(tmp_path):
    (tmp_path / "file").touch()
    result = python("-m", "regard", "presets", "copy", "multi30k", "--to", str(tmp_path / "file"))
    assert result.returncode == 1
    assert result.stderr.startswith("regard: cannot write ")
    assert result.stderr.count("\n") == 1


def test_reported_line_is_the_error_message(monkeypatch):
    def fail(*_):
        raise RegardError("no such thing; another would do")

    monkeypatch.setattr("regard.demo.run_five_words", fail)
    assert run("words").stderr == "regard: no such thing; another would do\n"


def test_command_without_arguments_shows_help():
    assert "Commands:\n  train " in run().output


@pytest.fixture
def pairs(tmp_path):
    from helpers.tiny_corpus import write_tsv

    return write_tsv(tmp_path / "pairs.tsv")


def refused(sentence, *arguments):
    """Expect one line on stderr, exit code 1, and nothing else."""
    result = run(*map(str, arguments))
    assert result.exit_code == 1, result.output
    assert sentence in result.stderr
    assert result.stderr.count("\n") == 1 and "Traceback" not in result.output


def settings_options(*changes):
    """Return the options that set a tiny model, and further changes."""
    from helpers.tiny_corpus import TINY

    tiny = [f"{section}.{key}={v}" for section, keys in TINY.items() for key, v in keys.items()]
    return [part for change in (*tiny, *changes) for part in ("--set", change)]


def test_train_prints_progress_and_notes_on_stderr_only(pairs, tmp_path):
    wide = tmp_path / "wide.tsv"
    wide.write_text(pairs.read_text().replace("\n", "\tCC-BY\n"))
    out = tmp_path / "run"
    result = run("train", str(wide), "--out", str(out), *settings_options("train.steps=1"))
    assert result.exit_code == 0, result.output
    assert "wide.tsv has 3 columns; those after the second are ignored\n" in result.stderr
    assert "at most 1 step, about" in result.stderr
    assert result.stdout == ""
    assert (out / "README.md").exists()


def test_translate_prints_one_line_per_argument(tiny_run):
    result = run("translate", str(tiny_run), "the cat", "a dog", "--beam-size", "2")
    assert result.exit_code == 0 and result.stdout.count("\n") == 2


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        (
            "🙂🙂 🎉",
            "most characters of 2 sentences are not in the model's vocabulary, such as '🙂🙂 🎉'",
        ),
        ("صباح الخير", "most characters of 2 sentences are not in the model's vocabulary"),
        ("the cat " * 70, "2 sentences are longer than any in training: 1"),
    ],
    ids=["emoji", "Arabic", "long"],
)
def test_translate_warns_once_of_input_unlike_the_training_data(tiny_run, unchecked, text, warning):
    arguments = ["translate", str(tiny_run), "--beam-size", "1"]
    result = CliRunner().invoke(app, arguments, f"{text}\nthe cat\n{text}\n")
    assert result.exit_code == 0 and result.stdout.count("\n") == 3
    assert result.stderr.count("warning: ") == 1
    assert f"warning: {warning}" in result.stderr
    assert "warning" not in run("translate", str(tiny_run), "the cat").stderr


def test_translate_names_words_that_the_shipped_model_was_not_trained_with(unchecked):
    result = CliRunner().invoke(app, ["translate", "demo-model"], "a keyboard\nHello\nmy mouse\n")
    assert result.exit_code == 0 and result.stdout.count("\n") == 3
    (warning,) = result.stderr.splitlines()
    assert warning.startswith("warning: the model was trained with 5")
    assert warning.endswith("which do not include 'keyboard'")


def test_translate_reads_stdin_in_order(tiny_run, unchecked):
    lines = ["the cat", "", "the old dog"]
    typed = CliRunner().invoke(app, ["translate", str(tiny_run)], "\n".join(lines))
    given = run("translate", str(tiny_run), *lines)
    assert typed.stdout == given.stdout and typed.stdout.split("\n")[1] == ""


def test_n_best_prints_scores_in_descending_order(tiny_run):
    result = run("translate", str(tiny_run), "the cat", "--n-best", "3")
    scores = [float(line.split("\t")[0]) for line in result.stdout.splitlines()]
    assert len(scores) == 3 and scores == sorted(scores, reverse=True)


def test_sampling_with_same_seed_repeats_itself(tiny_run):
    draw = ("translate", str(tiny_run), "the cat", "--sample", "--seed", "7")
    assert run(*draw).stdout == run(*draw).stdout


def test_traces_option_writes_one_trace_per_line(tiny_run, tmp_path):
    path = tmp_path / "traces.jsonl"
    path.write_text("of an earlier command")
    given = ("the cat", "", "the old dog")
    result = run("translate", str(tiny_run), *given, "--traces", str(path))
    assert result.exit_code == 0, result.output
    traces = [Trace.from_json(line) for line in path.read_text().splitlines()]
    assert ["".join(trace.tokens["source"].pieces).strip() for trace in traces] == list(given)
    assert [trace.title.partition(" → ")[0] for trace in traces] == list(given)
    assert {m.kind for m in traces[0].maps} == {"self", "causal", "cross"}
    assert traces[1].maps == ()


def test_trace_source_is_stripped_like_the_translated_source(tiny_run, tmp_path):
    path, sentences = tmp_path / "traces.jsonl", ("the old boat", " the old boat \t")
    result = run("translate", str(tiny_run), *sentences, "--traces", str(path))
    plain, spaced = map(Trace.from_json, path.read_text().splitlines())
    assert result.exit_code == 0 and plain.maps
    assert plain.tokens == spaced.tokens


def test_score_with_alignments_prints_alignment_error_rate(tiny_run, tmp_path):
    for name, lines in (("s", "the cat\n"), ("t", "le chat\n"), ("a", "0-0 1-1\n")):
        (tmp_path / name).write_text(lines)
    paths = [str(tmp_path / name) for name in ("s", "t")]
    result = run("score", str(tiny_run), *paths, "--gold", str(tmp_path / "a"))
    assert "alignment error rate" in result.stdout


def test_score_prints_bleu_signature(tiny_run, pairs, tmp_path):
    lines = pairs.read_text().splitlines()[:5]
    paths = [tmp_path / "source", tmp_path / "target"]
    for side, path in enumerate(paths):
        path.write_text("".join(line.split("\t")[side] + "\n" for line in lines))
    result = run("score", str(tiny_run), *map(str, paths))
    assert result.exit_code == 0 and "tok:13a" in result.stdout


def test_train_with_other_settings_refuses_existing_run(tiny_run, pairs, tmp_path):
    copy = shutil.copytree(tiny_run, tmp_path / "run")
    refused("is a run with", "train", pairs, "--out", copy)


def test_bad_input_is_reported_in_one_line(pairs, tmp_path):
    out = tmp_path / "run"
    refused("cannot read", "train", tmp_path / "none.tsv", "--out", out)
    refused("no preset is called 'mult30k'", "train", pairs, "--out", out, "--preset", "mult30k")
    refused("Did you mean 'train.steps'?", "train", pairs, "--out", out, "--set", "train.step=3")
    refused("must be section.key=value", "train", pairs, "--out", out, "--set", "steps")
    refused("but 3 files are given", "train", pairs, pairs, pairs, "--out", out)
    refused("is not a run", "translate", tmp_path, "a sentence")
    assert not out.exists()


def test_doctor_reports_skipped_pairs(tmp_path):
    path = tmp_path / "odd.tsv"
    path.write_text("a cat\tun chat\n\tvide\na cat\tun chat\n", encoding="utf-8")
    report = run("doctor", str(path)).stdout
    assert "3 pairs in" in report and "1 × duplicate pair (line 3)" in report
    assert "training would drop 1 pair and use 2" in report


def test_presets_list_show_and_copy(tmp_path):
    assert "multi30k-recurrent" in run("presets").stdout
    shown = run("presets", "show", "multi30k").stdout
    assert run("presets", "copy", "multi30k", "--to", str(tmp_path)).exit_code == 0
    assert (tmp_path / "multi30k.toml").read_text() == shown
    refused("exists already", "presets", "copy", "multi30k", "--to", tmp_path)
    refused("no presets action is called 'cpoy'. Did you mean 'copy'?", "presets", "cpoy")
    refused("`regard presets show multi30k` shows the preset", "presets", "multi30k")


@pytest.mark.parametrize("action", ["show", "copy"])
def test_presets_action_without_a_name_lists_the_names(action):
    refused(f"`presets {action}` needs the name of a preset: ", "presets", action)
    refused("multi30k, ", "presets", action)


@pytest.mark.parametrize(
    ("command", "values"),
    [
        ("demo", "fr|zh"),
        ("demo", "transformer|bahdanau"),
        ("gallery", "en|zh"),
        ("look", "encoder|decoder|cross"),
        ("presets", "list|show|copy"),
    ],
)
def test_help_lists_the_values_of_an_option(command, values):
    assert f"[{values}]" in run(command, "--help").stdout


def test_explore_refuses_folder_without_run_and_invalid_trace(tmp_path):
    (tmp_path / "trace.json").write_text("{}")
    free = ("--port", 0)
    refused("is not a run", "explore", tmp_path, *free)
    refused("not a trace", "explore", "--trace", tmp_path / "trace.json", *free)


@pytest.mark.train
def test_training_continues_when_stderr_is_closed(pairs, tmp_path):
    verb = ["train", str(pairs), "--out", str(tmp_path / "run"), *settings_options()]
    reading, writing = os.pipe()
    os.close(reading)
    ended = subprocess.run([sys.executable, "-m", "regard", *verb], stderr=writing, check=False)
    os.close(writing)
    assert ended.returncode == 0
    assert (tmp_path / "run" / "README.md").exists()


@pytest.mark.parametrize("verb", ["translate", "look"])
def test_output_is_discarded_when_stdout_is_closed(tiny_run, verb):
    command = f'exec "{sys.executable}" -m regard {verb} "{tiny_run}" "the cat" >&-'
    result = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")


def test_translate_without_sentences_or_stdin_is_an_error(tiny_run):
    verb = [sys.executable, "-m", "regard", "translate", str(tiny_run)]
    shell = " ".join(map(shlex.quote, verb)) + " <&-"
    ended = subprocess.run(shell, shell=True, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr == "regard: there are no sentences to translate, and stdin is closed\n"
