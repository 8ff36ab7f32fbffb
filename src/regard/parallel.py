"""Work in parts, side by side on the cores of one machine."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

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
    before = torch.get_num_threads()
    threads = before if threads is None else threads
    if threads < 1:
        raise ValueError(f"threads must be 1 or more, but it is {threads}")
    pool = ThreadPoolExecutor(threads, initializer=_compute_alone)
    try:
        yield from pool.map(work, parts)
    finally:
        pool.shutdown(cancel_futures=True)
        # a thread's own number is also what threads that start later begin with
        torch.set_num_threads(before)


def _compute_alone() -> None:
    torch.set_num_threads(1)
