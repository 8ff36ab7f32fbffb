"""Memory, cores and threads of this process, and a pool of threads that compute by themselves."""

import ctypes
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from math import inf
from pathlib import Path
from threading import Lock
from typing import TypeVar

import torch
from torch.overrides import has_torch_function

from regard.errors import RegardError

# of glibc's malloc.h; the largest threshold for mmap that it accepts
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_MAX_MMAP_THRESHOLD = 32 << 20
_TRIM_THRESHOLD = 2 * _MAX_MMAP_THRESHOLD  # the largest that glibc chooses by itself
_NEVER = (1 << 31) - 1

_lock = Lock()  # guards the two below
_active_pools = 0
_original_threads: int | None = None  # torch's threads before the first of the active pools

Item = TypeVar("Item")
Result = TypeVar("Result")


def total_memory(root: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Return the memory that this process may use, in bytes; None where it is unknown.

    It is the machine's, or less if the control group (a container) has a limit.

    Args:
        root: where control groups are mounted.
    """
    limits = []
    with suppress(OSError, ValueError, AttributeError):  # Windows has no sysconf
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for name in ("memory.max", "memory/memory.limit_in_bytes"):  # version 2 and version 1
        with suppress(OSError, ValueError):  # "max" is no limit
            limits.append(int((root / name).read_text()))
    return min(limits, default=None)


def format_gigabytes(size: int) -> str:
    """Format a number of bytes in gigabytes.

    Example:
        >>> format_gigabytes(16_400_000_000)
        '16.4 GB'
    """
    return f"{size / 1e9:,.1f} GB"


@contextmanager
def keep_freed_memory() -> Iterator[None]:
    """Let glibc's allocator keep freed memory for reuse, until the end of the context.

    By default it returns large blocks to the operating system. A training step allocates the same
    tensors as the one before, and takes thousands of page faults to get them back: 5 % of its CPU
    time on a virtual machine. With other C libraries this does nothing.
    """
    libc = _glibc()
    if libc is not None:
        libc.mallopt(_M_MMAP_THRESHOLD, _MAX_MMAP_THRESHOLD)
        libc.mallopt(_M_TRIM_THRESHOLD, _NEVER)
    try:
        yield
    finally:
        if libc is not None:
            libc.mallopt(_M_TRIM_THRESHOLD, _TRIM_THRESHOLD)
            libc.malloc_trim(0)


def _glibc() -> ctypes.CDLL | None:
    with suppress(OSError, TypeError, AttributeError):  # Windows and macOS lack one of them
        libc = ctypes.CDLL(None)
        if libc.gnu_get_libc_version and libc.mallopt and libc.malloc_trim:
            return libc
    return None


def parallel_map(
    function: Callable[[Item], Result], items: Iterable[Item], threads: int | None = None
) -> Iterator[Result]:
    """Yield the function's results in the order of the items, as they become available.

    Decoding takes many small steps, and threads that share each of them mostly wait for one
    another. Here every thread computes whole items by itself. Thread-local state such as
    `torch.inference_mode` must be set inside the function. Items that were not started are
    dropped when the iterator is closed or an item raises.

    Torch function modes, such as those of `regard.watch` and `regard.edit`, belong to one thread.
    While any is active, all items are computed in this thread.

    Args:
        function: called once per item, in several threads at once.
        items: the items.
        threads: number of threads; `available_threads()` by default.
    """
    threads = available_threads() if threads is None else threads
    if threads < 1:
        raise RegardError(f"threads must be 1 or more, but it is {threads}")
    with restore_num_threads():
        if has_torch_function((torch.empty(0),)):  # true of any tensor while a mode is active
            single_threaded()
            yield from map(function, items)
            return
        pool = ThreadPoolExecutor(threads, initializer=single_threaded)
        try:
            yield from pool.map(function, items)
        finally:
            pool.shutdown(cancel_futures=True)


def available_threads() -> int:
    """Return torch's number of threads, as it is outside of active pools."""
    with _lock:
        return torch.get_num_threads() if _original_threads is None else _original_threads


def usable_cores() -> int:
    """Return how many cores this process may use: by its affinity and its container's CPU quota."""
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    return max(int(min(cores, cpu_quota())), 1)


def cpu_quota(root: Path = Path("/sys/fs/cgroup")) -> float:
    """Return the CPU quota of the control group in cores; infinity without one."""
    with suppress(OSError, ValueError):  # version 2: "200000 100000", or "max 100000"
        quota, period = (root / "cpu.max").read_text().split()
        return int(quota) / int(period)
    with suppress(OSError, ValueError):  # version 1; a quota of -1 is none
        quota, period = (
            (root / "cpu" / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period")
        )
        return int(quota) / int(period) if int(quota) > 0 else inf
    return inf


@contextmanager
def restore_num_threads() -> Iterator[None]:
    """Restore torch's number of threads to what it was before the first of overlapping pools.

    `torch.set_num_threads` also sets what threads started later begin with: a caller that starts
    while another's workers are single-threaded would otherwise take 1 for the original number.
    """
    global _active_pools, _original_threads
    with _lock:
        if _original_threads is None:
            _original_threads = torch.get_num_threads()
        _active_pools += 1
    try:
        yield
    finally:
        with _lock:
            torch.set_num_threads(_original_threads)
            _active_pools -= 1
            if not _active_pools:
                _original_threads = None


def single_threaded() -> None:
    """Let torch compute in the calling thread alone; initializer of a pool's threads."""
    torch.set_num_threads(1)
