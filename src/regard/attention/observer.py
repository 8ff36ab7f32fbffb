"""Observers of attention: functions that are called around every attention call."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from regard._support.observers import Observers
from regard.attention.call import AttentionCall

Result = TypeVar("Result")

Observer = Callable[[AttentionCall, Callable[[], object]], object]
"""Called as `observer(call, run)` in place of the call; returns what `run()` returns."""

_observers = Observers[AttentionCall]()


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
    with _observers.register(observer, innermost=innermost):
        yield


def registered_observers() -> tuple[Observer, ...]:
    """Return the observers that are registered at present, in the order they came."""
    return _observers.current


def run_observed(call: AttentionCall, run: Callable[[], Result]) -> Result:
    """Run the call, notifying registered observers."""
    if not _observers.current:
        return run()
    return _observers.run(call, run)  # type: ignore[no-any-return]
