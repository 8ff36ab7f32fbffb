"""Process-wide state while any thread watches: the observer of regard's own attention, and eager
execution of compiled models. The last `watch` to end restores both."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from threading import Lock, get_ident

import torch

from regard.attention import AttentionCall, Observer, register_observer

_lock = Lock()
_observers: list[tuple[int, Observer]] = []  # with their threads, in the order of registration
_restore = ExitStack()


@contextmanager
def registered(on_regard_call: Observer) -> Iterator[None]:
    """Call `on_regard_call` for regard's own attention in this thread, and run eagerly in all."""
    entry = (get_ident(), on_regard_call)
    with _lock:
        if not _observers:
            _restore.enter_context(torch.compiler.set_stance("force_eager"))
            _restore.enter_context(register_observer(_notify))
        _observers.append(entry)
    try:
        yield
    finally:
        with _lock:
            _observers.remove(entry)
            if not _observers:
                _restore.close()


def _notify(call: AttentionCall, run: Callable[[], object]) -> object:
    """Run a call through all observers of this thread; the last one is the outermost."""
    for thread, on_regard_call in tuple(_observers):
        if thread == get_ident():
            run = partial(on_regard_call, call, run)
    return run()
