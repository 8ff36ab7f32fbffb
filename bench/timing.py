"""Interleaved timing: A B A B in one run, so that a busy machine slows all of them alike."""

import time
from collections.abc import Callable, Mapping
from statistics import median

Times = Mapping[str, list[float]]
"""Seconds of every round, by the name of the function."""


def time_interleaved(
    functions: Mapping[str, Callable[[], object]],
    seconds: float = 3.0,
    min_rounds: int = 5,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, list[float]]:
    """Call the functions in turn for some seconds, after two warm-up calls; return all times.

    On a busy machine `time.process_time` as the clock counts the CPU time of all threads instead.
    """
    for function in functions.values():
        function()
        function()
    times: dict[str, list[float]] = {name: [] for name in functions}
    end, rounds = time.perf_counter() + seconds, 0
    while time.perf_counter() < end or rounds < min_rounds:
        for name, function in functions.items():
            start = clock()
            function()
            times[name].append(clock() - start)
        rounds += 1
    return times


def median_ratio(times: Times, numerator: str, denominator: str) -> float:
    """Return the median over rounds of one function's time divided by another's."""
    pairs = zip(times[numerator], times[denominator], strict=True)
    return median(one / other for one, other in pairs)
