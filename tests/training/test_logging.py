import json
from types import SimpleNamespace

import pytest

from regard.training import StepResult, TrainState, ValidationResult
from regard.training.logging import JsonlLog, ProgressBar


def entries(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def train_steps(log, state, last):
    """Take steps of 100 tokens and half a second each, with the step as loss."""
    for step in range(state.step + 1, last + 1):
        state.step, state.seconds = step, state.seconds + 0.5
        log.on_step(state, StepResult(float(step), 100, 0.1))


def test_log_has_the_mean_loss_and_speed_of_every_twenty_steps(tmp_path):
    log, state = JsonlLog(tmp_path / "log.jsonl"), TrainState()
    log.on_start(state)
    train_steps(log, state, 45)
    first, second = entries(tmp_path / "log.jsonl")
    assert first == {
        "step": 20,
        "seconds": 10.0,
        "loss": 10.5,
        "learning_rate": 0.1,
        "tokens_per_second": 200.0,
    }
    assert (second["step"], second["loss"]) == (40, 30.5)


def test_log_of_a_resumed_run_measures_since_the_start(tmp_path):
    log, state = JsonlLog(tmp_path / "log.jsonl"), TrainState(step=33, seconds=99.0)
    log.on_start(state)
    train_steps(log, state, 40)
    (entry,) = entries(tmp_path / "log.jsonl")
    assert entry["loss"] == pytest.approx(37.0)  # of steps 34 to 40
    assert entry["tokens_per_second"] == 200.0


@pytest.mark.parametrize("bleu", [None, 31.5])
def test_log_has_every_validation(tmp_path, bleu):
    log, state = JsonlLog(tmp_path / "log.jsonl"), TrainState(step=7, epoch=1, seconds=2.0)
    log.on_start(state)
    log.on_validation(state, ValidationResult(1.5, bleu, train_loss=2.5))
    (entry,) = entries(tmp_path / "log.jsonl")
    expected = {"step": 7, "epoch": 1, "seconds": 2.0, "train_loss": 2.5, "valid_loss": 1.5}
    assert entry == expected | ({} if bleu is None else {"bleu": bleu})


def test_log_drops_lines_after_the_resumed_step_and_a_torn_line(tmp_path):
    path = tmp_path / "log.jsonl"
    lines = [json.dumps({"step": step, "loss": step / 2}) for step in (2, 4, 6)]
    path.write_text("\n".join([*lines, '{"step": 8, "lo']))
    log, state = JsonlLog(path), TrainState(step=4)
    log.on_start(state)
    state.step = 5
    log.on_validation(state, ValidationResult(1.0))
    assert [entry["step"] for entry in entries(path)] == [2, 4, 5]


def test_plain_progress_shows_step_loss_speed_and_time_left(monkeypatch):
    lines, now = [], [0.0]
    clock = SimpleNamespace(monotonic=lambda: now[0])
    monkeypatch.setattr("regard.training.logging.time", clock)
    monkeypatch.setattr("regard._support.progress.time", clock)
    state = TrainState(step=10, max_steps=40)
    with ProgressBar(state, lines.append) as bar:
        for step in range(11, 21):
            now[0] += 2.0
            state.step = step
            bar.on_step(state, StepResult(3.0, 100, 0.1))
        bar.on_validation(state, ValidationResult(1.25, 30.0, train_loss=1.5))
    progress, validation = lines  # one line in ten seconds
    assert progress == "step 16/40 · loss 3.000 · 50 tokens/s · 48 s left"
    assert validation == (
        "step 20, epoch 1, 0 s: training loss 1.500, validation loss 1.250, BLEU 30.00"
    )
