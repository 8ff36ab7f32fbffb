"""A run that was interrupted or killed ends with the parameters of one that was not."""

import re
import signal
import time
from itertools import count
from threading import Thread
from types import SimpleNamespace

import pytest
import torch

from helpers.tiny_corpus import TINY, tiny_corpus, write_tsv
from helpers.training import (
    are_equal,
    checkpoints_of,
    command,
    discard,
    kill_when,
    load_parameters,
    run_to_end,
    stop_after,
    train_tiny,
)
from regard.config import parse_assignment
from regard.runs import RunFolder
from regard.training import Callback, Interrupted, train

pytestmark = [pytest.mark.usefixtures("unchecked"), pytest.mark.train]


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    out = tmp_path_factory.mktemp("uninterrupted") / "run"
    train_tiny(out)
    return out


@pytest.fixture
def interrupt(monkeypatch):
    """Return a function that trains until a step, and is interrupted there."""

    def train_until(out, step, *assignments, echo=discard):
        with monkeypatch.context() as patch:
            patch.setattr("regard.training.trainer.stop_requested", stop_after(out, step))
            message = rf"^interrupted at step {step}; run the same command to resume$"
            with pytest.raises(Interrupted, match=message):
                train_tiny(out, *assignments, echo=echo)

    return train_until


def test_interrupted_run_resumes_to_the_same_parameters_and_log(uninterrupted, tmp_path, interrupt):
    """Ctrl-C after steps 2 and 7; 7 is inside an epoch and between two validations."""
    out, lines = tmp_path / "run", []
    for step in (2, 7):
        interrupt(out, step)
    train_tiny(out, echo=lines.append)
    assert "resuming from step 7" in lines
    assert are_equal(load_parameters(uninterrupted), load_parameters(out))
    logs = [RunFolder(run).read_log() for run in (uninterrupted, out)]
    for one, other in zip(*logs, strict=True):
        assert {**one, "seconds": 0} == {**other, "seconds": 0}


def test_muon_resumes_to_the_same_parameters(tmp_path, interrupt):
    whole, out = tmp_path / "whole", tmp_path / "run"
    train_tiny(whole, "train.optimizer=muon")
    interrupt(out, 7, "train.optimizer=muon")
    train_tiny(out, "train.optimizer=muon")
    assert are_equal(load_parameters(whole), load_parameters(out))


@pytest.mark.parametrize("damage", ["truncated", "bit flipped"])
def test_damaged_checkpoint_is_detected_and_the_one_before_is_used(
    damage, uninterrupted, tmp_path, interrupt
):
    out, lines = tmp_path / "run", []
    interrupt(out, 9)
    latest = checkpoints_of(out).state_path(9)
    content = bytearray(latest.read_bytes())
    if damage == "truncated":
        del content[-100:]
    else:
        content[-100] ^= 1
    latest.write_bytes(content)
    train_tiny(out, echo=lines.append)
    assert any(line.endswith("resuming from the checkpoint before it") for line in lines)
    assert "resuming from step 8" in lines
    assert are_equal(load_parameters(uninterrupted), load_parameters(out))


def test_later_damaged_checkpoints_are_deleted_by_new_ones(tmp_path, interrupt):
    out, lines = tmp_path / "run", []
    train_tiny(out, "train.steps=8")
    RunFolder(out).model_card.unlink()
    checkpoints = checkpoints_of(out)
    assert checkpoints.state_steps() == [4, 8]
    for step in (4, 8):
        checkpoints.state_path(step).write_bytes(b"damaged")
    with pytest.MonkeyPatch.context() as patch:
        stop = stop_after(tmp_path / "none", 3)
        patch.setattr("regard.training.trainer.stop_requested", stop)
        with pytest.raises(Interrupted, match="step 3"):
            train_tiny(out, "train.steps=8", echo=lines.append)
    warnings = [line.rpartition("; ")[2] for line in lines if "safetensors" in line]
    assert warnings == ["resuming from the checkpoint before it", "resuming from step 0"]
    assert checkpoints.state_steps() == [3]


def test_logged_speed_of_a_resumed_run_counts_its_own_steps(tmp_path, monkeypatch):
    """By a clock that strikes twice a step; the run is interrupted between two log lines."""
    out, tokens = tmp_path / "run", {}

    def record(bar, state, result):
        tokens[state.step] = result.tokens

    monkeypatch.setattr("regard.training.trainer.ProgressBar.on_step", record)
    monkeypatch.setattr("regard.training.loop.time", SimpleNamespace(monotonic=count().__next__))
    monkeypatch.setattr("regard.training.trainer.stop_requested", stop_after(out, 33))
    sets = ("train.steps=60", "train.validate_every=60")
    with pytest.raises(Interrupted, match="step 33"):
        train_tiny(out, *sets)
    monkeypatch.setattr("regard.training.trainer.stop_requested", stop_after(out, 99))
    train_tiny(out, *sets)
    log = RunFolder(out).read_log()
    speeds = {entry["step"]: entry["tokens_per_second"] for entry in log if "loss" in entry}
    assert list(speeds) == [20, 40, 60]
    for last, steps in [(20, 20), (40, 7), (60, 20)]:
        total = sum(tokens[step] for step in range(last - steps + 1, last + 1))
        assert speeds[last] == pytest.approx(total / (2 * steps), rel=0.1)


def test_killed_process_resumes_to_the_same_parameters(tmp_path):
    tsv = write_tsv(tmp_path / "pairs.tsv")
    whole, out = tmp_path / "whole", tmp_path / "killed"
    steps = "train.steps=40"
    train(tsv, whole, settings=[TINY, parse_assignment(steps)], echo=discard)
    has_checkpoint = checkpoints_of(out).state_path(8).exists
    assert kill_when(command(tsv, out, steps), has_checkpoint) == -signal.SIGKILL
    assert "resuming from step" in run_to_end(command(tsv, out, steps))
    assert are_equal(load_parameters(whole), load_parameters(out))


@pytest.mark.slow
def test_twenty_kills_at_random_times_change_nothing(tmp_path):
    """Killed at any moment: while it prepares, trains, validates, saves or finishes."""
    tsv = write_tsv(tmp_path / "pairs.tsv")
    sets = ("train.steps=400", "train.validate_every=7")
    whole, out = tmp_path / "whole", tmp_path / "killed"
    train(tsv, whole, settings=[TINY, *map(parse_assignment, sets)], echo=discard)
    generator = torch.Generator().manual_seed(0)
    for _ in range(20):
        end = time.monotonic() + 2.0 + 4.0 * torch.rand((), generator=generator).item()
        kill_when(command(tsv, out, *sets), lambda end=end: time.monotonic() > end)
    run_to_end(command(tsv, out, *sets))
    assert are_equal(load_parameters(whole), load_parameters(out))


@pytest.mark.slow
def test_compiled_model_trains_to_the_same_parameters(tmp_path):
    from helpers.training import assert_close

    tsv = write_tsv(tmp_path / "pairs.tsv")
    plain, compiled = tmp_path / "plain", tmp_path / "compiled"
    no_dropout = "model.dropout=0.0"
    train(tsv, plain, settings=[TINY, parse_assignment(no_dropout)], echo=discard)
    stderr = run_to_end(command(tsv, compiled, no_dropout, "train.compile=true"))
    assert_close(load_parameters(plain), load_parameters(compiled))
    assert "recompile_limit" not in stderr  # or parts would no longer be compiled


class AtStep(Callback):
    """Calls a function once, after a step."""

    def __init__(self, step, function):
        self.step, self.function = step, function
        self.ended = 0

    def on_step(self, state, result):
        if state.step == self.step:
            self.function()

    def on_end(self, state):
        self.ended += 1


def interrupt_by_signal():
    signal.raise_signal(signal.SIGINT)


def interrupt_by_exception():
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("interrupt", "in_thread", "message"),
    [
        (interrupt_by_signal, False, "interrupted at step 7; run the same command to resume"),
        (interrupt_by_exception, False, "after step 6; .* from the checkpoint of step 4"),
        (interrupt_by_exception, True, "after step 6; .* from the checkpoint of step 4"),
    ],
    ids=["SIGINT", "exception", "exception in a thread"],
)
def test_ctrl_c_as_a_notebook_sends_it_leaves_a_resumable_run(
    uninterrupted, tmp_path, interrupt, in_thread, message
):
    """By a signal, which is polled after the next step, or where no handler can be installed."""
    callback, errors, handler = AtStep(6, interrupt), [], signal.getsignal(signal.SIGINT)

    def start():
        try:
            train(tiny_corpus(), tmp_path, settings=TINY, callbacks=[callback], echo=discard)
        except KeyboardInterrupt as error:
            errors.append(error)

    if in_thread:
        thread = Thread(target=start)
        thread.start()
        thread.join()
    else:
        start()
    assert isinstance(errors[0], Interrupted) and re.search(message, str(errors[0]))
    assert callback.ended == 1
    assert signal.getsignal(signal.SIGINT) is handler
    train_tiny(tmp_path)
    assert are_equal(load_parameters(uninterrupted), load_parameters(tmp_path))


def test_interruption_before_the_first_checkpoint_starts_afresh(uninterrupted, tmp_path):
    callback = AtStep(2, interrupt_by_exception)
    with pytest.raises(Interrupted, match="the same command resumes from its beginning"):
        train(tiny_corpus(), tmp_path, settings=TINY, callbacks=[callback], echo=discard)
    train_tiny(tmp_path)
    assert are_equal(load_parameters(uninterrupted), load_parameters(tmp_path))
