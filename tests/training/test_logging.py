from types import SimpleNamespace

import pytest

from regard.runs import log as log_format
from regard.training import StepResult, TrainState, ValidationResult
from regard.training.logging import JsonlLog, ProgressBar

RUN_ID = "7f"


def entries(path):
    lines = path.read_bytes().splitlines(keepends=True)
    return [log_format.parse_line(line, RUN_ID) for line in lines]


def write_log(path, *entries, run_id=RUN_ID):
    path.write_text("".join(log_format.format_line(entry, run_id) for entry in entries))


def train_steps(log, state, last):
    """Take steps of 100 tokens and half a second each, with the step as loss."""
    for step in range(state.step + 1, last + 1):
        state.step, state.seconds = step, state.seconds + 0.5
        log.on_step(state, StepResult(float(step), 100, 0.1))


def test_log_has_the_mean_loss_and_speed_of_every_twenty_steps(tmp_path):
    log, state = JsonlLog(tmp_path / "log.jsonl", RUN_ID), TrainState()
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
    log, state = JsonlLog(tmp_path / "log.jsonl", RUN_ID), TrainState(step=33, seconds=99.0)
    log.on_start(state)
    train_steps(log, state, 40)
    (entry,) = entries(tmp_path / "log.jsonl")
    assert entry["loss"] == pytest.approx(37.0)  # of steps 34 to 40
    assert entry["tokens_per_second"] == 200.0


@pytest.mark.parametrize("bleu", [None, 31.5])
def test_log_has_every_validation(tmp_path, bleu):
    log, state = JsonlLog(tmp_path / "log.jsonl", RUN_ID), TrainState(step=7, epoch=1, seconds=2.0)
    log.on_start(state)
    log.on_validation(state, ValidationResult(1.5, bleu, train_loss=2.5))
    (entry,) = entries(tmp_path / "log.jsonl")
    expected = {"step": 7, "epoch": 1, "seconds": 2.0, "train_loss": 2.5, "valid_loss": 1.5}
    assert entry == expected | ({} if bleu is None else {"bleu": bleu})


def test_log_drops_lines_after_the_resumed_step_and_a_torn_line(tmp_path):
    path = tmp_path / "log.jsonl"
    write_log(path, *({"step": step, "loss": step / 2} for step in (2, 4, 6)))
    with path.open("a") as file:
        file.write('{"step": 8, "lo')
    lines = []
    log, state = JsonlLog(path, RUN_ID, lines.append), TrainState(step=4)
    log.on_start(state)
    state.step = 5
    log.on_validation(state, ValidationResult(1.0))
    assert [entry["step"] for entry in entries(path)] == [2, 4, 5]
    assert lines == [f"{path} had an incomplete last line, which was removed"]


def test_every_flipped_bit_of_a_log_is_reported(tmp_path):
    path, state = tmp_path / "log.jsonl", TrainState(step=20, validation_history={"7": 1.0})
    write_log(path, {"step": 7, "valid_loss": 1.0}, {"step": 20, "loss": 2.5})
    data = path.read_bytes()
    for position in range(len(data)):
        for bit in range(8):
            flipped = bytearray(data)
            flipped[position] ^= 1 << bit
            path.write_bytes(flipped)
            lines = []
            JsonlLog(path, RUN_ID, lines.append).on_start(state)
            assert lines and lines[0].startswith(str(path))
            assert len(path.read_text().splitlines()) < 2


@pytest.mark.parametrize(
    ("entries", "run_id", "message"),
    [
        ([], RUN_ID, "lacks 2 lines up to step 20"),
        ([{"step": 7, "valid_loss": 1.0}], RUN_ID, "lacks 1 line up to step 20"),
        ([{"step": 7, "valid_loss": 1.0}, {"step": 20, "loss": 2.5}], "80", "2 lines removed"),
        ([{"step": 7, "valid_loss": 1.0}, {"step": 20, "loss": 2.5}] * 2, RUN_ID, "not in order"),
    ],
    ids=["empty", "truncated", "of another run", "repeated"],
)
def test_log_that_does_not_fit_its_run_is_reported(tmp_path, entries, run_id, message):
    path, lines = tmp_path / "log.jsonl", []
    write_log(path, *entries, run_id=run_id)
    state = TrainState(step=20, validation_history={"7": 1.0})
    JsonlLog(path, RUN_ID, lines.append).on_start(state)
    assert len(lines) == 1 and message in lines[0] and str(path) in lines[0]


def test_finished_log_ends_with_the_reason(tmp_path):
    path, lines = tmp_path / "log.jsonl", []
    write_log(path, {"step": 20, "loss": 2.5}, {"step": 20, "stop_reason": "of an earlier start"})
    state = TrainState(step=20, seconds=3.0, stop_reason="the last step was reached")
    JsonlLog(path, RUN_ID, lines.append).finish(state)
    last = {"step": 20, "seconds": 3.0, "stop_reason": "the last step was reached"}
    assert entries(path) == [{"step": 20, "loss": 2.5}, last] and not lines


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
