"""Progress of long jobs on stderr: a bar on a terminal, a plain line now and then elsewhere."""

import errno
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, TextIO, TypeVar

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from regard._support.text import escape_control

PLAIN_INTERVAL_SECONDS = 10.0

Item = TypeVar("Item")


class ProgressDisplay:
    """One progress bar on a terminal; plain lines where stderr is a file or a pipe.

    Args:
        columns: what the bar shows, in rich's columns.
        total: number of steps, if known.
        completed: number of steps done before.
        description: text of the bar's description column.
        echo: prints plain lines instead of a bar; by default there are plain lines, on stderr,
            only where stderr is not a terminal.
        auto_refresh: redraw the bar at intervals, not only at updates. False lets another bar be
            shown in between.
    """

    def __init__(
        self,
        *columns: ProgressColumn,
        total: int | None = None,
        completed: int = 0,
        description: str = "",
        echo: Callable[[str], None] | None = None,
        auto_refresh: bool = True,
    ) -> None:
        self.is_live = echo is None and sys.stderr is not None and sys.stderr.isatty()
        self._echo = echo or echo_to_stderr
        self._last_line = time.monotonic()
        self._progress = Progress(
            *columns,
            console=Console(stderr=True),
            transient=True,
            auto_refresh=auto_refresh,
            disable=not self.is_live,
        )
        self._task = self._progress.add_task(description, total=total, completed=completed)

    def __enter__(self) -> "ProgressDisplay":
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._progress.stop()

    def update(
        self,
        completed: int,
        *,
        total: int | None = None,
        description: str | None = None,
        refresh: bool = False,
    ) -> None:
        """Move the bar; a total or description of None leaves the old one."""
        if self.is_live:
            self._progress.update(
                self._task,
                completed=completed,
                total=total,
                description=description,
                refresh=refresh,
            )

    def is_line_due(self) -> bool:
        """Return whether it is time for a plain line; at most once per interval."""
        now = time.monotonic()
        if self.is_live or now - self._last_line <= PLAIN_INTERVAL_SECONDS:
            return False
        self._last_line = now
        return True

    def print(self, line: str) -> None:
        """Print a line, above the bar if there is one."""
        if self.is_live:
            text = Text(escape_control(line))  # neither markup nor emoji codes mean anything
            self._progress.console.print(text, highlight=False)
        else:
            self._echo(line)


def track(
    items: Iterable[Item],
    description: str,
    total: int | None = None,
    *,
    size: Callable[[Item], int] = lambda _: 1,
    visible: bool = True,
) -> Iterator[Item]:
    """Yield the items, and show on stderr how many have been processed.

    Args:
        items: the items to process.
        description: what is counted, such as "pairs encoded".
        total: how many there are, if known; then the time left is shown.
        size: how many an item counts for.
        visible: False shows nothing.
    """
    if not visible or sys.stderr is None:  # None if the caller closed it
        yield from items
        return
    columns: list[ProgressColumn] = [
        TextColumn("{task.completed:,.0f} {task.description}"),
        BarColumn(),
    ]
    if total:
        columns += [TaskProgressColumn(), TimeRemainingColumn()]
    started = time.monotonic()
    with ProgressDisplay(*columns, total=total, description=description) as display:
        count = 0
        for item in items:
            yield item
            count += size(item)
            display.update(count)
            if display.is_line_due():
                seconds = time.monotonic() - started
                display.print(_plain_line(count, description, total, seconds))


def _plain_line(count: int, description: str, total: int | None, seconds: float) -> str:
    if not total:
        return f"{count:,} {description}, in {format_duration(seconds)}"
    left = format_duration(seconds / max(count, 1) * (total - count))
    return f"{count:,} of {total:,} {description}, {left} left"


def format_duration(seconds: float) -> str:
    """Format a duration with one unit: "42 s", "10 min", "2.5 h"."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def echo_to_stderr(line: str) -> None:
    """Print a line to stderr and flush it; control characters in it are escaped."""
    print(escape_control(line), file=sys.stderr, flush=True)


@contextmanager
def _ignore_lost_reader() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.EPIPE, errno.EIO):  # EIO: the terminal was closed
            raise


class IgnoreBrokenPipe:
    """A text stream that drops what its reader no longer takes: a closed pipe or terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write text, or drop it if the pipe is broken."""
        with _ignore_lost_reader():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush, or do nothing if the pipe is broken."""
        with _ignore_lost_reader():
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
