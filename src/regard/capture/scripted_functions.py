"""Calls of TorchScript functions while a model is watched: torch does not show what they run."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from threading import Lock
from typing import Any

from torch.jit import ScriptFunction

Observer = Callable[["ScriptFunction[Any, Any]"], None]

_lock = Lock()
_observers: list[Observer] = []
_call = ScriptFunction.__call__


@contextmanager
def observing_scripted_functions(observer: Observer) -> Iterator[None]:
    """Call an observer before every TorchScript function, in any thread, inside the context.

    Scripted functions have no hooks, and function modes do not see them: their class's `__call__`
    is replaced as long as there are observers.
    """
    with _lock:
        _observers.append(observer)
        ScriptFunction.__call__ = _observed_call  # type: ignore[assignment,method-assign]
    try:
        yield
    finally:
        with _lock:
            _observers.remove(observer)
            if not _observers:
                ScriptFunction.__call__ = _call  # type: ignore[method-assign]


def _observed_call(function: "ScriptFunction[Any, Any]", *args: Any, **kwargs: Any) -> Any:
    for observer in tuple(_observers):
        observer(function)
    return _call(function, *args, **kwargs)


@lru_cache(maxsize=64)
def has_softmax(function: "ScriptFunction[Any, Any]") -> bool:
    """Return whether a TorchScript function computes a softmax, or fused attention."""
    graph = str(function.inlined_graph)
    return "softmax(" in graph or "scaled_dot_product_attention(" in graph
