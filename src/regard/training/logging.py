"""Progress bar and JSON log of a training run."""

import json
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Any

from rich.progress import BarColumn, TextColumn, TimeRemainingColumn

from regard._support import files
from regard._support.progress import ProgressDisplay, format_duration
from regard.training.callbacks import Callback, StepResult
from regard.training.state import TrainState
from regard.training.validation import ValidationResult

LOG_EVERY_STEPS = 20
LOSS_DECAY = 0.95  # of the running mean in the progress bar

Echo = Callable[[str], None]
"""Receives one status line."""


class JsonlLog(Callback):
    """The file log.jsonl: one JSON object per line, for every 20th step and every validation."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._losses: list[float] = []  # since the last line, or since this start
        self._tokens = 0
        self._since_seconds = 0.0

    def on_start(self, state: TrainState) -> None:
        """Drop the lines after the step that the run resumes from, and a torn last line."""
        lines = (line for line in _json_lines(self.path) if line.get("step", 0) <= state.step)
        files.write_file(self.path, "".join(f"{json.dumps(line)}\n" for line in lines))
        self._since_seconds = state.seconds

    def on_step(self, state: TrainState, result: StepResult) -> None:
        """Log the mean loss and the speed of every 20 steps."""
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
        with files.wrap_os_errors(self.path), self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")


def _json_lines(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a log, without a torn line."""
    if not path.exists():
        return []
    entries = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            entries.append(json.loads(line))
        except ValueError:
            continue
    return entries


class ProgressBar(Callback, AbstractContextManager["ProgressBar"]):
    """Step, loss, tokens per second and time left: a live bar on a terminal, else plain lines.

    Args:
        state: where this start begins.
        echo: receives the plain lines; by default they go to stderr, or a live bar does.
    """

    def __init__(self, state: TrainState, echo: Echo | None = None) -> None:
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

    def _seconds_left(self, state: TrainState, now: float) -> float:
        steps_done = max(state.step - self._first_step, 1)
        steps_left = max(state.max_steps - state.step, 0)
        return (now - self._start) / steps_done * steps_left
