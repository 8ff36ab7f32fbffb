"""Work in parts, side by side on the cores of one machine."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Lock
from typing import TypeVar

import torch

_counting = Lock()
_working = 0  # callers whose parts are being worked on
_before: int | None = None  # torch's threads before the first of them

Part = TypeVar("Part")
Result = TypeVar("Result")


def side_by_side(
    work: Callable[[Part], Result], parts: Iterable[Part], threads: int | None = None
) -> Iterator[Result]:
    """Do the work on every part, and give the results as they come, in the order of the parts.

    Decoding takes many small steps, and threads that share each of them spend their time waiting
    for one another. Here every thread computes whole parts, alone. Whatever is in force for one
    thread only, such as `torch.inference_mode`, belongs inside the work.

    Args:
        threads: how many parts to work on at a time; as many as torch has by default.
    """
    threads = cores() if threads is None else threads
    if threads < 1:
        raise ValueError(f"threads must be 1 or more, but it is {threads}")
    with _threads_put_back():
        pool = ThreadPoolExecutor(threads, initializer=_compute_alone)
        try:
            yield from pool.map(work, parts)
        finally:
            pool.shutdown(cancel_futures=True)


def cores() -> int:
    """Tell how many threads torch has for itself, also while others compute alone."""
    with _counting:
        return torch.get_num_threads() if _before is None else _before


@contextmanager
def _threads_put_back() -> Iterator[None]:
    """Leave torch with as many threads as it had before the first of those who overlap.

    A thread's own number is also what threads that start later begin with: who starts while
    another's workers compute alone would take their one thread for all there are.
    """
    global _before, _working
    with _counting:
        _before = torch.get_num_threads() if _before is None else _before
        _working += 1
    try:
        yield
    finally:
        with _counting:
            torch.set_num_threads(_before)
            _working -= 1
            _before = _before if _working else None


def _compute_alone() -> None:
    torch.set_num_threads(1)
