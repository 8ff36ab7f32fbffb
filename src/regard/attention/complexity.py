"""The cost of a layer as sequences grow: self-attention, recurrence and convolution."""

from math import ceil
from typing import NamedTuple

from regard._support.text import format_table
from regard.errors import RegardError


class LayerCost(NamedTuple):
    """The cost of one layer over n positions of width d (Vaswani et al. 2017, table 1).

    Attributes:
        mechanism: self-attention, recurrence or convolution.
        operations: multiplications, up to a constant factor.
        sequential_operations: operations that must follow one another.
        max_path_length: layers or steps between the two positions that are farthest apart.
    """

    mechanism: str
    operations: int
    sequential_operations: int
    max_path_length: int


FORMULAS = (
    ("mechanism", "operations", "sequential", "max path length"),
    ("self-attention", "n² d", "1", "1"),
    ("recurrence", "n d²", "n", "n"),
    ("convolution", "k n d²", "1", "n / k"),
)


def complexity(n: int, d: int, k: int = 3) -> tuple[LayerCost, LayerCost, LayerCost]:
    """Count operations, sequential operations and path length (Vaswani et al. 2017, table 1).

    Args:
        n: number of positions.
        d: width.
        k: kernel size of the convolution; layers of it connect positions that are n / k such
            steps apart.

    Returns:
        The cost of self-attention, recurrence and convolution.

    Raises:
        RegardError: if a number is below 1.

    Example:
        >>> [cost.operations for cost in complexity(n=100, d=10)]
        [100000, 10000, 30000]
    """
    for name, number in (("n", n), ("d", d), ("k", k)):
        if number < 1:
            raise RegardError(f"{name} must be 1 or more, but it is {number}")
    return (
        LayerCost("self-attention", n * n * d, sequential_operations=1, max_path_length=1),
        LayerCost("recurrence", n * d * d, sequential_operations=n, max_path_length=n),
        LayerCost(
            "convolution", k * n * d * d, sequential_operations=1, max_path_length=ceil(n / k)
        ),
    )


def complexity_table(n: int | None = None, d: int | None = None, k: int = 3) -> str:
    """Return the costs as a table, of formulas or of numbers.

    Args:
        n: number of positions; without it and `d`, the table has formulas.
        d: width.
        k: kernel size of the convolution.

    Raises:
        RegardError: if only one of `n` and `d` is given, or a number is below 1.

    Example:
        >>> print(complexity_table(512, 64))
        mechanism       operations  sequential  max path length
        self-attention  16,777,216  1           1
        recurrence      2,097,152   512         512
        convolution     6,291,456   1           171
    """
    if (n is None) != (d is None):
        raise RegardError(f"the table needs both n and d, or neither, but n is {n} and d is {d}")
    rows: list[tuple[str, ...]] = list(FORMULAS)
    if n is not None and d is not None:
        rows[1:] = [(cost.mechanism, *(f"{x:,}" for x in cost[1:])) for cost in complexity(n, d, k)]
    return format_table(rows)
