"""Time functions side by side: A B A B in one run, so that a busy machine slows them alike."""

import time
from collections.abc import Callable, Mapping
from statistics import median

Timed = Mapping[str, Callable[[], object]]


def rounds(functions: Timed, seconds: float = 3.0, least: int = 5) -> dict[str, list[float]]:
    """Call the functions in turns for so many seconds, after a warm-up, and keep all times."""
    for function in functions.values():
        function()
        function()
    times: dict[str, list[float]] = {name: [] for name in functions}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(next(iter(times.values()))) < least:
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            times[name].append(time.perf_counter() - start)
    return times


def ratio(times: Mapping[str, list[float]], mine: str, theirs: str) -> float:
    """Give the median over rounds of mine / theirs: what holds whatever else the machine does."""
    pairs = zip(times[mine], times[theirs], strict=True)
    return median(own / other for own, other in pairs)
