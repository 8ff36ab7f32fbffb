import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from regard.cli import app


def run(*arguments):
    return CliRunner().invoke(app, arguments)


@pytest.mark.parametrize("encoding", ["latin-1", "latin-1:surrogateescape"])
def test_unencodable_characters_are_escaped(encoding):
    show = "from regard.cli import app; import typer; app.command('say')(lambda: "
    show += "typer.echo('caf\\u00e9 \\u732b')); app(['say'])"
    found = subprocess.run(
        [sys.executable, "-c", show],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": encoding},
    )
    assert (found.returncode, found.stderr) == (0, b"")
    assert found.stdout.endswith(b" \\u732b\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full disk at hand")
@pytest.mark.parametrize("arguments", [["--help"], ["presets"], ["presets", "--help"]])
def test_full_disk_is_reported_in_one_line(arguments):
    with Path("/dev/full").open("w") as full:
        verb = [sys.executable, "-m", "regard", *arguments]
        ended = subprocess.run(verb, stdout=full, stderr=subprocess.PIPE, text=True)
    assert ended.returncode == 1
    assert ended.stderr == "regard: cannot write the output: No space left on device\n"


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
