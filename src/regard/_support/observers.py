"""Observers: functions that are called in place of calls of one kind, and run them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any, Generic, TypeVar

Call = TypeVar("Call")


class Observers(Generic[Call]):
    """The observers of one kind of call, in all threads.

    An observer is called as `observer(call, run)` in place of the call; it returns what `run()`
    returns, or something in its place. With several, the one registered last is the outermost.

    Attributes:
        current: the observers that are registered at present, the innermost ones first.

    Example:
        >>> observers = Observers[str]()
        >>> with observers.register(lambda call, run: f"observed {call}: {run()}"):
        ...     observers.run("addition", lambda: 1 + 1)
        'observed addition: 2'
    """

    def __init__(self) -> None:
        # replaced as a whole, so that readers need no lock
        self.current: tuple[Callable[[Call, Callable[[], Any]], Any], ...] = ()
        self._num_innermost = 0
        self._lock = Lock()

    @contextmanager
    def register(
        self, observer: Callable[[Call, Callable[[], Any]], Any], *, innermost: bool = False
    ) -> Iterator[None]:
        """Register an observer; contexts may end in any order.

        Args:
            observer: the observer.
            innermost: call it inside of all observers that are not innermost.
        """
        with self._lock:
            index = self._num_innermost if innermost else len(self.current)
            self.current = (*self.current[:index], observer, *self.current[index:])
            self._num_innermost += innermost
        try:
            yield
        finally:
            with self._lock:
                self._num_innermost -= innermost
                remaining = list(self.current)
                remaining.remove(observer)
                self.current = tuple(remaining)

    def run(self, call: Call, run: Callable[[], Any]) -> Any:
        """Run a call, notifying the registered observers."""
        for observer in self.current:  # read once: one may leave in another thread meanwhile
            run = _wrap(observer, call, run)
        return run()


def _wrap(
    observer: Callable[[Call, Callable[[], Any]], Any], call: Call, run: Callable[[], Any]
) -> Callable[[], Any]:
    return lambda: observer(call, run)
