"""What a layer costs as texts grow: self-attention, recurrence and convolution."""

from math import ceil
from typing import NamedTuple


class Cost(NamedTuple):
    """One layer over n words of width d: multiplications, and what must wait for what."""

    mechanism: str
    work: int  # multiplications, up to a constant
    steps: int  # operations that must follow one another
    path: int  # layers or steps between the two words that are farthest apart


FORMULAS = (
    ("mechanism", "work", "steps", "longest path"),
    ("self-attention", "n² d", "1", "1"),
    ("recurrence", "n d²", "n", "n"),
    ("convolution", "k n d²", "1", "n / k"),
)


def complexity(n: int, d: int, k: int = 3) -> tuple[Cost, Cost, Cost]:
    """Count work, sequential steps and longest path (Vaswani et al. 2017, table 1).

    n words of width d; a convolution reads k words at a time, and layers of it bring words
    together that are n / k such steps apart.
    """
    for name, number in (("n", n), ("d", d), ("k", k)):
        if number < 1:
            raise ValueError(f"{name} must be 1 or more, but it is {number}")
    return (
        Cost("self-attention", work=n * n * d, steps=1, path=1),
        Cost("recurrence", work=n * d * d, steps=n, path=n),
        Cost("convolution", work=k * n * d * d, steps=1, path=ceil(n / k)),
    )


def complexity_table(n: int | None = None, d: int | None = None, k: int = 3) -> str:
    """Write the costs as a table: as formulas, or as numbers for given n, d and k."""
    if (n is None) != (d is None):
        raise ValueError(f"numbers need both n and d, but n is {n} and d is {d}")
    rows: list[tuple[str, ...]] = list(FORMULAS)
    if n is not None and d is not None:
        costs = complexity(n, d, k)
        rows[1:] = [(c.mechanism, f"{c.work:,}", f"{c.steps:,}", f"{c.path:,}") for c in costs]
    sizes = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(map(str.ljust, row, sizes)).rstrip() for row in rows)
    return "\n".join(lines)
