"""What may happen to a run while it trains: signals, a folder that is gone, a full disk."""

import errno
import os
import pty
import shutil
import signal
import subprocess
import time
from itertools import count

import pytest

from helpers.tiny_corpus import TINY, tiny_corpus, write_tsv
from helpers.training import (
    ONE_THREAD,
    are_equal,
    checkpoints_of,
    command,
    discard,
    load_parameters,
    train_tiny,
)
from regard._support import files
from regard.errors import RegardError
from regard.training import Callback, Interrupted, train

pytestmark = pytest.mark.usefixtures("unchecked")


class AtStep(Callback):
    """Calls a function once, after a step."""

    def __init__(self, step, function):
        self.step, self.function = step, function

    def on_step(self, state, result):
        if state.step == self.step:
            self.function()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """Parameters of a run that nothing happened to."""
    out = tmp_path_factory.mktemp("undisturbed") / "run"
    train_tiny(out)
    return load_parameters(out)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signal_saves_like_ctrl_c(tmp_path, undisturbed, number):
    callback = AtStep(6, lambda: signal.raise_signal(number))
    with pytest.raises(Interrupted, match="interrupted at step 7; run the same command"):
        train(tiny_corpus(), tmp_path, settings=TINY, callbacks=[callback], echo=discard)
    assert checkpoints_of(tmp_path).state_steps()[-1] == 7
    train_tiny(tmp_path)
    assert are_equal(load_parameters(tmp_path), undisturbed)


@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.train), 6])
def test_moved_run_stops_with_one_line_and_resumes_elsewhere(tmp_path, undisturbed, step):
    out, elsewhere = tmp_path / "run", tmp_path / "elsewhere"
    callback = AtStep(step, lambda: out.rename(elsewhere))
    with pytest.raises(RegardError, match=r"run was moved or deleted while it was in use; if"):
        train(tiny_corpus(), out, settings=TINY, callbacks=[callback], echo=discard)
    assert not out.exists()
    train_tiny(elsewhere)
    assert are_equal(load_parameters(elsewhere), undisturbed)


def test_deleted_run_stops_with_one_line_and_is_not_created_again(tmp_path):
    out = tmp_path / "run"
    callback = AtStep(6, lambda: shutil.rmtree(out))
    with pytest.raises(RegardError, match=r"run was moved or deleted while it was in use"):
        train(tiny_corpus(), out, settings=TINY, callbacks=[callback], echo=discard)
    assert list(tmp_path.iterdir()) == []


def fail_after(monkeypatch, name, calls, number):
    """Let a function of the operating system fail as on a full disk, after some calls."""
    function, called = getattr(os, name), count()

    def full(*arguments, **options):
        if next(called) >= calls:
            raise OSError(number, os.strerror(number))
        return function(*arguments, **options)

    monkeypatch.setattr(files.os, name, full)


@pytest.mark.parametrize(
    ("name", "calls"),
    [
        ("fsync", 20),
        *(pytest.param("fsync", calls, marks=pytest.mark.train) for calls in (0, 9, 27)),
        *(pytest.param("replace", calls, marks=pytest.mark.train) for calls in (0, 9, 20)),
    ],
)
def test_full_disk_is_worded_in_one_way_and_the_run_resumes(
    tmp_path, monkeypatch, undisturbed, name, calls
):
    """While the settings, the data, a checkpoint or the final parameters are written."""
    with monkeypatch.context() as patch:
        fail_after(patch, name, calls, errno.ENOSPC)
        with pytest.raises(RegardError, match=r"^cannot write \S+: no space left on the disk$"):
            train_tiny(tmp_path / "run")
    assert not list(tmp_path.rglob("*.tmp"))
    train_tiny(tmp_path / "run")
    assert are_equal(load_parameters(tmp_path / "run"), undisturbed)


def wait_for(condition, process, timeout=120.0):
    end = time.monotonic() + timeout
    while not condition() and process.poll() is None and time.monotonic() < end:
        time.sleep(0.01)
    assert condition()


@pytest.mark.train
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_signal_saves_in_a_run_of_two_processes(tmp_path, number):
    tsv, out = write_tsv(tmp_path / "pairs.tsv"), tmp_path / "run"
    verb = [*command(tsv, out, "train.steps=5000", "train.validate_every=50"), "--processes", "2"]
    process = subprocess.Popen(verb, stderr=subprocess.PIPE, text=True, env=ONE_THREAD)
    wait_for(lambda: checkpoints_of(out).state_steps(), process)
    process.send_signal(number)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130 and "interrupted at step" in stderr
    saved = checkpoints_of(out).state_steps()[-1]
    assert f"interrupted at step {saved}; run the same command to resume" in stderr


@pytest.mark.train
def test_closed_terminal_saves_a_checkpoint(tmp_path):
    """The kernel sends SIGHUP, and every write to the terminal fails from then on."""
    tsv, out = write_tsv(tmp_path / "pairs.tsv"), tmp_path / "run"
    verb = command(tsv, out, "train.steps=5000", "train.validate_every=50", "train.processes=1")
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(verb[0], verb, ONE_THREAD)
    end = time.monotonic() + 120
    while not checkpoints_of(out).state_steps() and time.monotonic() < end:
        os.read(terminal, 1 << 16)
    before = checkpoints_of(out).state_steps()[-1]
    os.close(terminal)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) in (1, 130)
    after = checkpoints_of(out).state_steps()[-1]
    assert after > before
    assert not list(out.rglob("*.tmp"))
