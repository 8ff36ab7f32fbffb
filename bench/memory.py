"""Peak memory and time of one call, measured in a separate process."""

import multiprocessing
import os
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

FORK = multiprocessing.get_context("fork")
BYTES_PER_MIB = 2**20


def cost(build: Callable[[], Callable[[], object]], seconds: float = 1.0) -> tuple[float, float]:
    """Return the seconds and the peak MiB of one call of the function that `build` returns.

    The first call, which includes torch's one-time set-up, counts for memory only; further ones are
    timed for some seconds, and the fastest counts. Both are NaN if the process ran out of memory.
    """
    receiver, sender = FORK.Pipe(duplex=False)
    child = FORK.Process(target=_measure, args=(build, seconds, sender))
    child.start()
    sender.close()
    try:
        measured: tuple[float, float] = receiver.recv()
    except EOFError:
        measured = (float("nan"), float("nan"))
    child.join()
    return measured


def _measure(build: Callable[[], Callable[[], object]], seconds: float, sender: Connection) -> None:
    run = build()
    before = _kilobytes("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # reset the high-water mark
    run()
    peak = (_kilobytes("VmHWM") - before) * 1024 / BYTES_PER_MIB
    best = float("inf")
    end = time.perf_counter() + seconds
    while best == float("inf") or time.perf_counter() < end:
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    sender.send((best, max(0.0, peak)))
    sender.close()
    os._exit(0)


def _kilobytes(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    raise LookupError(f"/proc/self/status has no {name}")
