"""`regard translate` and `regard score` in two processes."""

import os
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager

import pytest
from typer.testing import CliRunner

from helpers.training import ONE_THREAD
from regard.cli import app

pytestmark = [pytest.mark.train, pytest.mark.usefixtures("unchecked")]

WORDS = [
    "the",
    "old",
    "cat",
    "sees",
    "a",
    "dog",
    "in",
    "the",
    "garden",
    "and",
    "eats",
    "an",
    "apple",
]
# enough for several batches, of several lengths, with an empty line
LINES = [" ".join(WORDS[n % 7 : n % 7 + 1 + n % 9]) for n in range(300)]
LINES[17] = ""
TIMEOUT_SECONDS = 240


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "in.txt"
    path.write_text("\n".join(LINES) + "\n")
    return path


def alone(*arguments, text=None):
    """Run the command in one process; return its stdout."""
    result = CliRunner().invoke(app, list(map(str, arguments)), text and text.read_text())
    assert result.exit_code == 0, result.output
    return result.stdout


@contextmanager
def two(*arguments, second=None, **streams):
    """Start the first and the second process, as torchrun would; they are killed at the end.

    Args:
        arguments: of the command.
        second: of the second process's command, if they are others.
        streams: stdin and stdout of the first process.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    processes = []
    for rank, own in enumerate((arguments, second or arguments)):
        place = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 2, "MASTER_PORT": port}
        env = ONE_THREAD | {name: str(value) for name, value in place.items()}
        command = [sys.executable, "-m", "regard", *map(str, own)]
        # the input must be neither needed nor touched by the second
        pipes = streams if rank == 0 else {"stdin": subprocess.DEVNULL, "stdout": -1}
        env |= {"MASTER_ADDR": "127.0.0.1", "GLOO_SOCKET_IFNAME": "lo"}
        processes.append(subprocess.Popen(command, stderr=-1, env=env, **pipes))
    try:
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def results_of(processes):
    """Return exit codes and stderr of the processes, and the stdout of the first."""
    outputs = [process.communicate(timeout=TIMEOUT_SECONDS) for process in processes]
    codes = [process.returncode for process in processes]
    assert not outputs[1][0]  # only the first prints
    return codes, [error.decode() for _, error in outputs], outputs[0][0]


@pytest.mark.parametrize("options", [["--n-best", 3], ["--sample", "--seed", 5]])
def test_output_is_that_of_one_process_byte_for_byte(tiny_run, text, tmp_path, options):
    one, shared = tmp_path / "one.jsonl", tmp_path / "shared.jsonl"
    expected = alone("translate", tiny_run, *options, "--traces", one, text=text)
    command = ("translate", tiny_run, *options, "--traces", shared)
    with text.open("rb") as file, two(*command, stdin=file, stdout=-1) as processes:
        codes, errors, output = results_of(processes)
    assert codes == [0, 0], errors
    assert output.decode() == expected
    assert shared.read_bytes() == one.read_bytes()


def test_torchrun_starts_processes_that_share_the_sentences(tiny_run, text):
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command = [sys.executable, *torchrun, "-m", "regard", "translate", str(tiny_run)]
    with text.open("rb") as file:
        done = subprocess.run(command, stdin=file, capture_output=True, text=True, env=ONE_THREAD)
    assert done.returncode == 0, done.stderr
    assert done.stdout == alone("translate", tiny_run, text=text)


def test_score_prints_the_figures_of_one_process(tiny_run, text, tmp_path):
    reference, gold = tmp_path / "reference.txt", tmp_path / "gold.txt"
    reference.write_text(text.read_text().replace("the ", "le "))
    gold.write_text("".join("0-0\n" if line else "\n" for line in LINES))
    command = ("score", tiny_run, text, reference, "--gold", gold, "--beam-size", 2)
    expected = alone(*command)
    with two(*command, stdin=subprocess.DEVNULL, stdout=-1) as processes:
        codes, errors, output = results_of(processes)
    assert codes == [0, 0], errors
    assert output.decode() == expected and "alignment error rate" in expected


def test_other_run_in_the_second_process_is_refused_in_one_line(tiny_run, text):
    with (
        text.open("rb") as file,
        two("translate", tiny_run, second=("translate", "demo-model"), stdin=file) as processes,
    ):
        codes, errors, _ = results_of(processes)
    assert codes == [1, 1]
    assert errors[0].startswith("regard: all processes must have the same run and version")
    assert errors[0].count("\n") == 1 and errors[1] == ""


def test_missing_run_in_the_second_process_is_named_by_the_first(tiny_run, text, tmp_path):
    second = ("translate", tmp_path / "none")
    with text.open("rb") as file, two("translate", tiny_run, second=second, stdin=file) as both:
        codes, errors, _ = results_of(both)
    assert codes == [1, 1]
    assert errors[0].startswith("regard: process 1 on ") and "none" in errors[0]
    assert errors[0].count("\n") == 1 and errors[1] == ""


def test_error_of_the_first_process_ends_both_with_one_line(tiny_run, tmp_path):
    bad = tmp_path / "bad.txt"
    bad.write_bytes(b"the cat\n\xff\n")
    with bad.open("rb") as file, two("translate", tiny_run, stdin=file, stdout=-1) as processes:
        codes, errors, _ = results_of(processes)
    assert codes == [1, 0]
    assert errors == ["regard: stdin must be UTF-8, but line 2 is not\n", ""]


def test_lost_process_ends_the_other_with_one_line(tiny_run):
    with two("translate", tiny_run, stdin=-1, stdout=-1) as (first, second):
        write_line(first, b"the cat\n")
        second.kill()
        first.stdin.write(b"the dog\n" * 3000)
        first.stdin.close()
        first.stdin = None
        codes, errors, _ = results_of([first, second])
    assert codes == [1, -signal.SIGKILL]
    assert errors[0] == "regard: another process of this command ended; run the command again\n"


def test_interruption_ends_both_without_a_traceback(tiny_run):
    with two("translate", tiny_run, stdin=-1, stdout=-1) as processes:
        write_line(processes[0], b"the cat\n")
        for process in reversed(processes):  # or the second may end with the first, before its own
            process.send_signal(signal.SIGINT)
        codes, errors, _ = results_of(processes)
    assert codes[0] != 0 and codes[1] == 130
    assert "Traceback" not in "".join(errors) and errors[1] == ""


def test_closed_pipe_ends_both_without_a_message(tiny_run):
    with two("translate", tiny_run, stdin=-1, stdout=-1) as (first, second):
        write_line(first, b"the cat\n")
        first.stdout.close()
        first.stdin.write(b"the dog\n" * 300)
        first.stdin.close()
        assert [process.wait(TIMEOUT_SECONDS) for process in (first, second)] == [0, 0]
        assert first.stderr.read() == second.stderr.read() == b""
        first.stdin = first.stdout = None


def write_line(process, line):
    """Write a line to the first process, and wait for its translation while stdin is open."""
    os.write(process.stdin.fileno(), line)
    assert process.stdout.readline()
