import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from helpers.tiny_corpus import write_tsv
from regard.cli import app
from regard.cli.errors import OptionNamingCommand, name_options


def run(*arguments):
    return CliRunner().invoke(app, arguments)


@pytest.mark.parametrize("encoding", ["latin-1", "latin-1:surrogateescape"])
def test_unencodable_characters_are_escaped(encoding):
    show = "from regard.cli import app; import typer; app.command('say')(lambda: "
    show += "typer.echo('caf\\u00e9 \\u732b')); app(['say'])"
    result = subprocess.run(
        [sys.executable, "-c", show],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": encoding},
    )
    assert (result.returncode, result.stderr) == (0, b"")
    assert result.stdout.endswith(b" \\u732b\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("arguments", [["--help"], ["presets"], ["presets", "--help"]])
def test_full_disk_is_reported_in_one_line(arguments):
    with Path("/dev/full").open("w") as full:
        verb = [sys.executable, "-m", "regard", *arguments]
        ended = subprocess.run(verb, stdout=full, stderr=subprocess.PIPE, text=True)
    assert ended.returncode == 1
    assert ended.stderr == "regard: cannot write the output: no space left on the disk\n"


@pytest.mark.parametrize("arguments", [["--help"], ["presets"], ["presets", "--help"]])
def test_closed_pipe_exits_with_code_0(arguments):
    reading, writing = os.pipe()
    os.close(reading)
    verb = [sys.executable, "-m", "regard", *arguments]
    ended = subprocess.run(verb, stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize(
    "problem",
    [
        MemoryError(),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"),
        RuntimeError("CUDA out of memory. Tried to allocate 9 GiB"),
    ],
)
def test_out_of_memory_is_reported_in_one_line(monkeypatch, problem):
    def fail(*_):
        raise problem

    monkeypatch.setattr("regard.demo.run_five_words", fail)
    ended = run("words")
    assert ended.exit_code == 1
    assert ended.stderr == ("regard: out of memory; use a smaller batch, model or input\n")


@pytest.mark.parametrize("problem", [RuntimeError("ours"), OSError(2, "no such file", "x")])
def test_other_system_errors_keep_their_traceback(monkeypatch, problem):
    def fail(*_):
        raise problem

    monkeypatch.setattr("regard.demo.run_five_words", fail)
    assert run("words").exception is problem


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--beam-size", "0"], "--beam-size must be 1 or more, but it is 0"),
        (["--n-best", "0"], "--n-best must be 1 or more, but it is 0"),
        (
            ["--n-best", "8", "--beam-size", "3"],
            "--n-best must be at most 3, the beam size, but it is 8; give --beam-size 8, too",
        ),
        (["--length-penalty", "99"], "--length-penalty must be from "),
        (["--sample", "--top-p", "2"], "--top-p must be above 0 and at most 1, but it is 2.0"),
        (["--temperature", "0.5"], "--temperature belongs to sampling; give --sample, too"),
        (
            ["--sample", "--beam-size", "3"],
            "--beam-size belongs to beam search; leave it out with --sample",
        ),
        (["--sample", "--n-best", "2", "--seed", "1"], "--n-best must be 1 with sampling, but it"),
    ],
)
def test_error_names_the_option_that_was_typed(tiny_run, arguments, message):
    result = run("translate", str(tiny_run), "a cat", *arguments)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"regard: {message}"), result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--minutes", "0"], "--minutes must be above 0"),
        (["--set", "train.minutes=0.0"], "train.minutes must be above 0"),
        (["--minutes", "3", "--set", "train.minutes=0.0"], "train.minutes must be above 0"),
        (["--set", "search.beam_size=0"], "search.beam_size must be 1 or more, but it is 0"),
        (
            ["--set", "train.alignment_loss_weight=0.5"],
            "train.alignment_loss_weight needs .* none; --alignments names a file of them",
        ),
    ],
)
def test_error_of_a_setting_names_it_unless_its_option_was_typed(tmp_path, arguments, message):
    pairs = write_tsv(tmp_path / "pairs.tsv")
    result = run("train", str(pairs), "--out", str(tmp_path / "run"), *arguments)
    assert result.exit_code == 1
    assert re.search(rf"^regard: {message}", result.stderr, re.MULTILINE), result.stderr


def test_folder_of_another_program_is_refused_by_the_option(tmp_path):
    pairs = write_tsv(tmp_path / "pairs.tsv")
    result = run("train", str(pairs), "--out", str(tmp_path))
    assert result.stderr.endswith("exists and is not a run; --out must be a new folder\n")


@pytest.mark.parametrize("arguments", [["--beam-size", "many"], ["--beams", "3"], ["--top-k", "a"]])
def test_option_that_cannot_be_parsed_is_a_usage_error(tmp_path, arguments):
    assert run("translate", str(tmp_path), "a cat", *arguments).exit_code == 2


def test_every_command_names_its_options_in_errors():
    commands = get_command(app).commands
    assert all(isinstance(command, OptionNamingCommand) for command in commands.values())


def test_names_of_options_replace_arguments_only_where_they_are_meant():
    options = {"out": "--out", "port": "--port", "seed": "--seed", "sample": "--sample"}
    assert name_options("choose another out=", options, ()) == "choose another --out"
    assert name_options("port=81 may be free", options, ()) == "--port 81 may be free"
    typed = {"out", "seed", "sample"}
    for message in ("about seeds", "sampled without a seed", "data.seed=3 would work", "timeout=3"):
        assert name_options(message, options, typed) == message


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        ("regard.training.trainer.scan_corpus", ["train", "pairs.tsv", "--out", "run"]),
        ("regard.demo.run_demo", ["demo", "--out", "run"]),
        ("regard.gallery.site.build_site", ["gallery", "--out", "site"]),
    ],
)
def test_interrupt_outside_of_training_steps_is_reported_in_one_line(
    tmp_path, monkeypatch, function, arguments
):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    write_tsv(tmp_path / "pairs.tsv")
    monkeypatch.setattr(function, interrupt)
    ended = run(*arguments)
    assert ended.exit_code == 130
    assert ended.stderr == "regard: interrupted; run the same command to resume\n"


def test_interrupt_during_an_import_ends_the_process_without_a_traceback(tmp_path):
    """The import of an extension module may swallow the exception, as torch's does."""
    (tmp_path / "slow.py").write_text(
        "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n[None for _ in range(10**6)]\n"
    )
    (tmp_path / "tool.py").write_text(
        "import typer\n"
        "from regard.cli.errors import OneLineErrorGroup\n"
        "app = typer.Typer(cls=OneLineErrorGroup)\n"
        "@app.callback()\ndef tool(): pass\n"
        "@app.command()\ndef run():\n"
        "    try:\n        import slow\n"
        "    except KeyboardInterrupt:\n        raise RecursionError from None\n"
        "app()\n"
    )
    result = subprocess.run(
        [sys.executable, "tool.py", "run"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert (result.returncode, result.stdout) == (130, "")
    assert result.stderr == "regard: interrupted\n"
