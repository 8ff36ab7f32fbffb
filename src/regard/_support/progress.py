"""How far a long job has come: a bar on a terminal, plain lines elsewhere."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, TextIO, TypeVar

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

PLAIN_INTERVAL_SECONDS = 10.0  # seconds between plain lines

Item = TypeVar("Item")


def track(
    items: Iterable[Item],
    what: str,
    total: int | None = None,
    *,
    size: Callable[[Item], int] = lambda _: 1,
    shown: bool = True,
) -> Iterator[Item]:
    """Hand the items on, and tell on stderr how many have been dealt with.

    Args:
        what: what is counted, such as "pairs encoded".
        size: how many an item counts for.
    """
    if not shown or sys.stderr is None:  # which a caller may close
        yield from items
        return
    live = sys.stderr.isatty()
    started = told = time.monotonic()
    with Progress(
        TextColumn("{task.completed:,.0f} {task.description}"),
        BarColumn(),
        *([TaskProgressColumn(), TimeRemainingColumn()] if total else []),
        console=Console(stderr=True),
        transient=True,
        disable=not live,
    ) as bar:
        task, count = bar.add_task(what, total=total), 0
        for item in items:
            yield item
            count += size(item)
            bar.update(task, completed=count)
            if not live and time.monotonic() - told > PLAIN_INTERVAL_SECONDS:
                told = time.monotonic()
                print(_line(count, what, total, told - started), file=sys.stderr, flush=True)


def _line(count: int, what: str, total: int | None, seconds: float) -> str:
    if not total:
        return f"{count:,} {what}, in {format_duration(seconds)}"
    left = format_duration(seconds / max(count, 1) * (total - count))
    return f"{count:,} of {total:,} {what}, {left} left"


def format_duration(seconds: float) -> str:
    """Say how long something takes, as a person would."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


class IgnoreBrokenPipe:
    """A stream whose reader may leave: who writes to it goes on."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write, if anyone reads."""
        with suppress(BrokenPipeError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Hand on what was written, if anyone reads."""
        with suppress(BrokenPipeError):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
