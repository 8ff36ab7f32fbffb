"""Who watches at this moment, in any thread; what all share is restored by the last to leave."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from threading import Lock, get_ident

import torch

from regard.attention import observer
from regard.attention.call import AttentionCall

Witness = Callable[[AttentionCall, Callable[[], object]], object]

_lock = Lock()
_witnesses: list[tuple[int, Witness]] = []  # with their threads, in the order they came
_changes = ExitStack()


@contextmanager
def present(look_on: Witness) -> Iterator[None]:
    """Be told of regard's own attention in this thread, and have compiled models run as written."""
    mine = (get_ident(), look_on)
    with _lock:
        if not _witnesses:
            _changes.enter_context(torch.compiler.set_stance("force_eager"))
            observer.present = _tell
        _witnesses.append(mine)
    try:
        yield
    finally:
        with _lock:
            _witnesses.remove(mine)
            if not _witnesses:
                observer.present = None
                _changes.close()


def _tell(job: AttentionCall, run: Callable[[], object]) -> object:
    """Do a job with all witnesses of this thread looking on, who came last around the others."""
    for thread, look_on in tuple(_witnesses):
        if thread == get_ident():
            run = partial(look_on, job, run)
    return run()
