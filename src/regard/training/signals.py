"""Ctrl-C and SIGTERM: finish the current step and write a checkpoint before stopping."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupted(Exception):
    """Training was interrupted by a signal; a checkpoint was written."""


@contextmanager
def stop_requested() -> Iterator[Callable[[], bool]]:
    """Yield a function that returns whether SIGINT or SIGTERM arrived; a second one interrupts.

    In a thread other than the main one, signals are left alone.
    """
    received: list[int] = []

    def handle(number: int, frame: FrameType | None) -> None:
        if received:
            raise KeyboardInterrupt
        received.append(number)

    signals = (signal.SIGINT, signal.SIGTERM)
    try:
        previous = {number: signal.signal(number, handle) for number in signals}
    except ValueError:  # only the main thread may set handlers
        previous = {}
    try:
        yield lambda: bool(received)
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
