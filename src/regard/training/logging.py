"""What a training tells: a live bar on a terminal, plain lines elsewhere, and log.jsonl."""

import json
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from regard._support import files
from regard._support.progress import PLAIN_INTERVAL_SECONDS, format_duration


class Log:
    """The file log.jsonl: one JSON object per line, none after the step a run goes on from."""

    def __init__(self, path: Path, step: int) -> None:
        self.path = path
        kept = [line for line in _lines(path) if json.loads(line).get("step", 0) <= step]
        files.write_file(path, "".join(f"{line}\n" for line in kept))

    def add(self, **entry: Any) -> None:
        """Append one object."""
        with files.wrap_os_errors(self.path), self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")


def _lines(path: Path) -> list[str]:
    """Give the whole lines of a log; a torn last one is left out."""
    if not path.exists():
        return []
    found = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            json.loads(line)
        except ValueError:
            continue
        found.append(line)
    return found


class Bar(AbstractContextManager["Bar"]):
    """Step, loss, tokens per second and time left; on stderr."""

    def __init__(self, first: int, planned: int, say: Callable[[str], None] | None = None) -> None:
        self.live = say is None and sys.stderr.isatty()
        self.say = say or (lambda line: print(line, file=sys.stderr, flush=True))
        self.first, self.planned = first, planned
        self.started = self.told = time.monotonic()
        self.tokens, self.loss = 0, 0.0
        self.bar = Progress(
            TextColumn("step {task.completed:.0f}/{task.total:.0f}"),
            BarColumn(),
            TextColumn("{task.description}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
            disable=not self.live,
        )
        self.task = self.bar.add_task("", total=planned, completed=first)

    def __enter__(self) -> "Bar":
        self.bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.bar.stop()

    def step(self, step: int, planned: int, loss: float, tokens: int) -> None:
        """Tell of a step."""
        self.tokens += tokens
        # a running mean, so that the figure can be read
        self.loss = loss if step == self.first + 1 else 0.95 * self.loss + 0.05 * loss
        speed = self.tokens / max(time.monotonic() - self.started, 1e-9)
        told = f"loss {self.loss:.3f} · {speed:,.0f} tokens/s"
        self.bar.update(self.task, completed=step, total=planned, description=told)
        if not self.live and time.monotonic() - self.told > PLAIN_INTERVAL_SECONDS:
            self.told = time.monotonic()
            self.say(f"step {step}/{planned} · {told} · {self._left(step, planned)} left")

    def note(self, line: str) -> None:
        """Say something without spoiling the bar."""
        if self.live:
            self.bar.console.print(line, markup=False, highlight=False)
        else:
            self.say(line)

    def _left(self, step: int, planned: int) -> str:
        done = max(step - self.first, 1)
        return format_duration((time.monotonic() - self.started) / done * max(planned - step, 0))
