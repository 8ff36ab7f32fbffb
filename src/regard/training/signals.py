"""Ctrl-C that loses nothing: the step under way is finished and saved first."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupted(Exception):
    """The user stopped the training; its state is saved."""


@contextmanager
def stop_requested() -> Iterator[Callable[[], bool]]:
    """Note a first Ctrl-C or SIGTERM, so that the step can end; a second one interrupts."""
    asked: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        if asked:
            raise KeyboardInterrupt
        asked.append(number)

    signals = (signal.SIGINT, signal.SIGTERM)
    try:
        before = {number: signal.signal(number, note) for number in signals}
    except ValueError:  # only the main thread may
        before = {}
    try:
        yield lambda: bool(asked)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
