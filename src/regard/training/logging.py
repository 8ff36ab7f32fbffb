"""Progress bar and JSON log of a training run."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Any

from rich.progress import BarColumn, TextColumn, TimeRemainingColumn

from regard._support import files
from regard._support.progress import ProgressDisplay, format_duration
from regard._support.text import count
from regard.runs import log
from regard.training.callbacks import Callback, StepResult
from regard.training.train_state import TrainState
from regard.training.validation import ValidationResult

LOG_EVERY_STEPS = 20
MEASURED_STEPS = 20  # after which the speed of a run is known
LOSS_DECAY = 0.95  # of the running mean in the progress bar

Echo = Callable[[str], None]
"""Receives one status line."""


class JsonlLog(Callback):
    """The file log.jsonl: one JSON object per line, for every 20th step and every validation.

    Args:
        path: the file.
        run_id: the run, which the checksum of every line depends on.
        warn: receives a line if the log turns out to be damaged.
    """

    def __init__(self, path: Path, run_id: str = "", warn: Echo = lambda line: None) -> None:
        self.path, self.run_id, self.warn = path, run_id, warn
        self._losses: list[float] = []  # since the last line, or since this start
        self._tokens = 0
        self._since_seconds = 0.0

    def on_start(self, state: TrainState) -> None:
        """Drop the lines after the step that the run resumes from, and what is damaged."""
        entries = self._read(state)
        lines = "".join(log.format_line(entry, self.run_id) for entry in entries)
        files.write_file(self.path, lines)
        self._since_seconds = state.seconds

    def finish(self, state: TrainState) -> None:
        """Write the last line of a finished run."""
        self.on_start(state)
        self._append(
            step=state.step, seconds=round(state.seconds, 3), stop_reason=state.stop_reason
        )

    def _read(self, state: TrainState) -> list[dict[str, Any]]:
        """Return the intact entries up to a step; warn of those that are damaged or missing."""
        entries, damaged, has_torn_end = log.read_content(self.path, self.run_id)
        if has_torn_end:
            self.warn(f"{self.path} had an incomplete last line, which was removed")
        if damaged:
            self.warn(
                f"{self.path} is damaged: {count(len(damaged), 'line')} removed, the first is line "
                f"{damaged[0]}"
            )
        entries = [
            entry for entry in entries if entry["step"] <= state.step and log.END not in entry
        ]
        if not log.is_in_order(entries):
            self.warn(f"{self.path} is damaged: its lines were not in order, and were sorted")
            unique = {(entry["step"], *entry): entry for entry in entries}
            entries = sorted(unique.values(), key=lambda entry: entry["step"])
        expected = [
            (step, "loss") for step in range(LOG_EVERY_STEPS, state.step + 1, LOG_EVERY_STEPS)
        ]
        expected += [(int(step), "valid_loss") for step in state.validation_history]
        actual = {
            (entry["step"], kind)
            for entry in entries
            for kind in ("loss", "valid_loss")
            if kind in entry
        }
        missing = len({*expected} - actual)
        if missing > len(damaged) + has_torn_end:
            self.warn(f"{self.path} lacks {count(missing, 'line')} up to step {state.step}")
        return entries

    def on_step(self, state: TrainState, result: StepResult) -> None:
        """Log the mean loss and the speed of every 20 steps."""
        files.check_in_place(self.path)  # at every step: hours may pass between two lines
        self._losses.append(result.loss)
        self._tokens += result.tokens
        if state.step % LOG_EVERY_STEPS:
            return
        seconds = max(state.seconds - self._since_seconds, 1e-9)
        self._append(
            step=state.step,
            seconds=round(state.seconds, 3),
            loss=sum(self._losses) / len(self._losses),
            learning_rate=result.learning_rate,
            tokens_per_second=round(self._tokens / seconds, 1),
        )
        self._losses.clear()
        self._tokens, self._since_seconds = 0, state.seconds

    def on_validation(self, state: TrainState, result: ValidationResult) -> None:
        """Log the training and validation loss, and BLEU if it is the metric."""
        self._append(
            step=state.step,
            epoch=state.epoch,
            seconds=round(state.seconds, 3),
            train_loss=result.train_loss,
            valid_loss=result.loss,
            **({} if result.bleu is None else {"bleu": result.bleu}),
        )

    def _append(self, **entry: Any) -> None:
        files.append_text(self.path, log.format_line(entry, self.run_id))


class ProgressBar(Callback, AbstractContextManager["ProgressBar"]):
    """Step, loss, tokens per second and time left: a live bar on a terminal, else plain lines.

    Args:
        state: where this start begins.
        echo: receives the plain lines; by default they go to stderr, or a live bar does.
        minutes: the time limit, to warn if it turns out to be too short.
    """

    def __init__(
        self, state: TrainState, echo: Echo | None = None, minutes: float | None = None
    ) -> None:
        self._minutes = minutes
        self._first_step = state.step
        self._start = time.monotonic()
        self._tokens, self._mean_loss = 0, 0.0
        self._display = ProgressDisplay(
            TextColumn("step {task.completed:.0f}/{task.total:.0f}"),
            BarColumn(),
            TextColumn("{task.description}"),
            TimeRemainingColumn(),
            total=state.max_steps,
            completed=state.step,
            echo=echo,
        )

    def __enter__(self) -> "ProgressBar":
        self._display.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._display.__exit__(kind, error, trace)

    def on_step(self, state: TrainState, result: StepResult) -> None:
        """Update the bar, or print a line every ten seconds."""
        self._tokens += result.tokens
        is_first = state.step == self._first_step + 1
        decay = 0.0 if is_first else LOSS_DECAY
        self._mean_loss = decay * self._mean_loss + (1 - decay) * result.loss
        now = time.monotonic()
        speed = self._tokens / max(now - self._start, 1e-9)
        text = f"loss {self._mean_loss:.3f} · {speed:,.0f} tokens/s"
        self._display.update(state.step, total=state.max_steps, description=text)
        self._warn(state)
        if self._display.is_line_due():
            seconds_left = self._seconds_left(state, now)
            self._display.print(
                f"step {state.step}/{state.max_steps} · {text} · "
                f"{format_duration(seconds_left)} left"
            )

    def on_validation(self, state: TrainState, result: ValidationResult) -> None:
        """Print the result of a validation above the bar."""
        bleu = "" if result.bleu is None else f", BLEU {result.bleu:.2f}"
        self._display.print(
            f"step {state.step}, epoch {state.epoch + 1}, {format_duration(state.seconds)}: "
            f"training loss {result.train_loss:.3f}, validation loss {result.loss:.3f}{bleu}"
        )

    def _warn(self, state: TrainState) -> None:
        """Print a warning once the measured speed leaves too few steps to learn."""
        if state.plan is None or self._minutes is None or state.step < MEASURED_STEPS:
            return
        if warning := state.plan.warning(state.max_steps, self._minutes):
            self._display.print(warning)

    def _seconds_left(self, state: TrainState, now: float) -> float:
        steps_done = max(state.step - self._first_step, 1)
        steps_left = max(state.max_steps - state.step, 0)
        return (now - self._start) / steps_done * steps_left
