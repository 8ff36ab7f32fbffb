"""Cancellation of work that runs in a thread: a flag that the work checks between its steps."""

from threading import Event


class Cancelled(Exception):
    """Raised by work that stops because its token was cancelled."""


class CancelToken:
    """Thread-safe flag by which a request asks its work to stop.

    Example:
        >>> token = CancelToken()
        >>> token.raise_if_cancelled()
        >>> token.cancel()
        >>> token.is_cancelled()
        True
    """

    def __init__(self) -> None:
        self._event = Event()

    def cancel(self) -> None:
        """Ask the work to stop at its next check."""
        self._event.set()

    def is_cancelled(self) -> bool:
        """Return whether `cancel` was called; pass this as `should_stop` to a search."""
        return self._event.is_set()

    def raise_if_cancelled(self) -> None:
        """Raise `Cancelled` if `cancel` was called."""
        if self.is_cancelled():
            raise Cancelled
