"""Ctrl-C, SIGTERM and SIGHUP: finish the step and write a checkpoint before stopping."""

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupted(KeyboardInterrupt):
    """Training was interrupted; the same call, or the same command, resumes it.

    A KeyboardInterrupt, so that `except Exception` around a training does not swallow Ctrl-C.
    """


@contextmanager
def stop_requested() -> Iterator[Callable[[], bool]]:
    """Yield a function that returns whether SIGINT, SIGTERM or SIGHUP arrived.

    A SIGINT after that interrupts at once: Ctrl-C was pressed again. The others may arrive
    several times, as when a terminal closes and its shell ends. SIGHUP stays ignored under nohup.
    In a thread other than the main one, signals are left alone.
    """
    received: list[int] = []

    def handle(number: int, frame: FrameType | None) -> None:
        if received and number == signal.SIGINT:
            raise KeyboardInterrupt
        received.append(number)

    signals = [signal.SIGINT, signal.SIGTERM]
    if sys.platform != "win32" and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signals.append(signal.SIGHUP)
    try:
        previous = {number: signal.signal(number, handle) for number in signals}
    except ValueError:  # only the main thread may set handlers
        previous = {}
    try:
        yield lambda: bool(received)
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
