"""Observers of attention: functions that are called around every attention call."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import TypeVar

from regard.attention.call import AttentionCall

Result = TypeVar("Result")

Observer = Callable[[AttentionCall, Callable[[], object]], object]
"""Called as `observer(call, run)` in place of the call; returns what `run()` returns."""

_lock = Lock()
# replaced as a whole, so that readers need no lock; the innermost ones first
_observers: tuple[Observer, ...] = ()
_num_innermost = 0


@contextmanager
def register_observer(observer: Observer, *, innermost: bool = False) -> Iterator[None]:
    """Call `observer(call, run)` around every call of `attend` and `look`, in all threads.

    With several observers, the one registered last is the outermost. One that changes results is
    registered as innermost, so that all others see what it returns.

    Args:
        observer: receives the checked call and a function that runs it, and must return what
            that function returns.
        innermost: call it inside of all observers that are not innermost.

    Example:
        >>> import torch
        >>> from regard.attention import attend
        >>> def print_shape(call, run):
        ...     print(call.shape.score_shape)
        ...     return run()
        >>> with register_observer(print_shape):
        ...     context = attend(torch.randn(2, 5, 12))
        (2, 5, 5)
    """
    global _observers, _num_innermost
    with _lock:
        index = _num_innermost if innermost else len(_observers)
        _observers = (*_observers[:index], observer, *_observers[index:])
        _num_innermost += innermost
    try:
        yield
    finally:
        with _lock:
            _num_innermost -= innermost
            remaining = list(_observers)
            remaining.remove(observer)
            _observers = tuple(remaining)


def registered_observers() -> tuple[Observer, ...]:
    """Return the observers that are registered at present, in the order they came."""
    return _observers


def run_observed(call: AttentionCall, run: Callable[[], Result]) -> Result:
    """Run the call, notifying registered observers."""
    observers = _observers  # read once: an observer may leave in another thread meanwhile
    if not observers:
        return run()
    wrapped: Callable[[], object] = run
    for observer in observers:
        wrapped = _wrap(observer, call, wrapped)
    return wrapped()  # type: ignore[return-value]


def _wrap(
    observer: Observer, call: AttentionCall, run: Callable[[], object]
) -> Callable[[], object]:
    return lambda: observer(call, run)
