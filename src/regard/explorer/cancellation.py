"""Work that nobody waits for any more stops at its next step."""

from threading import Event


class Stopped(Exception):
    """Nobody waits for this work any more."""


class Stop:
    """A word from whoever waits to whoever works."""

    def __init__(self) -> None:
        self._said = Event()

    def say(self) -> None:
        """Tell the work to stop."""
        self._said.set()

    def is_set(self) -> bool:
        """Return whether the work shall stop."""
        return self._said.is_set()

    def check(self) -> None:
        """Stop here, if that was said."""
        if self._said.is_set():
            raise Stopped
