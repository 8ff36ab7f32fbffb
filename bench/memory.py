"""Peak memory of one call, measured in a process of its own."""

import multiprocessing
import os
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

FORK = multiprocessing.get_context("fork")
MIB = 2**20


def cost(make: Callable[[], Callable[[], object]]) -> tuple[float, float]:
    """Give seconds and peak MiB of one call of the function that `make` makes.

    The first call, which also pays for what torch sets up once, counts for memory only.
    """
    mine, theirs = FORK.Pipe(duplex=False)
    child = FORK.Process(target=_report, args=(make, theirs))
    child.start()
    theirs.close()
    try:
        outcome: tuple[float, float] = mine.recv()
    except EOFError:
        outcome = (float("nan"), float("nan"))  # the child ran out of memory
    child.join()
    return outcome


def _report(make: Callable[[], Callable[[], object]], answer: Connection) -> None:
    run = make()
    before = _kilobytes("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # start the high-water mark anew
    run()
    peak = (_kilobytes("VmHWM") - before) * 1024 / MIB
    best = float("inf")
    end = time.perf_counter() + 1.0
    while best == float("inf") or time.perf_counter() < end:
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    answer.send((best, max(0.0, peak)))
    answer.close()
    os._exit(0)


def _kilobytes(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    raise LookupError(f"/proc/self/status has no {name}")
