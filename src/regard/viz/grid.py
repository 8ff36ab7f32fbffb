"""One matrix of weights and the words on its two sides, checked and safe to show."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable
from unicodedata import category

JOINERS = "\u200c\u200d"  # they shape Persian and Indic words, and emoji; they cannot do harm


@runtime_checkable
class HasList(Protocol):
    """A tensor or an array: anything that turns into nested lists."""

    def tolist(self) -> Any:
        """Give the numbers as nested lists."""
        ...


Matrix: TypeAlias = HasList | Sequence[Sequence[float]]


@dataclass(frozen=True, slots=True)
class Grid:
    """How much each query word looks at each key word: `rows[query][key]`.

    A picture's scale runs from 0 to `top`.
    """

    queries: tuple[str, ...]
    keys: tuple[str, ...]
    rows: tuple[tuple[float, ...], ...]
    top: float

    @property
    def overflows(self) -> bool:
        """Some weight is beyond the scale."""
        return max(map(max, self.rows)) > self.top + 1e-6  # rounding may leave 1.0000001


def grid(
    weights: Matrix, queries: Sequence[str], keys: Sequence[str], top: float | None = None
) -> Grid:
    """Check that there is one word per row and per column, and make the words safe to show."""
    rows = weights.tolist() if isinstance(weights, HasList) else weights
    shape = _shape(rows)
    if len(shape) != 2 or 0 in shape:
        raise ValueError(
            f"weights must be one matrix of queries and keys, but their shape is {shape}; "
            + ("weights[0, 0] would be one head" if len(shape) == 4 else "(5, 7) would do")
        )
    _check_words("queries", "row", shape[0], queries)
    _check_words("keys", "column", shape[1], keys)
    _check_rows(rows, shape[1])
    if top is not None and not 0 < top < math.inf:
        raise ValueError(f"top must be a number above 0, but it is {top!r}; None means 1")
    return Grid(
        tuple(map(safe, queries)), tuple(map(safe, keys)), tuple(map(tuple, rows)), top or 1.0
    )


def number(weight: float) -> str:
    """Write a weight to two decimals; a plain 0 is one that is exactly zero, as behind a mask."""
    return f"{weight:.2f}" if weight else "0"


def safe(word: str) -> str:
    r"""Spell out what would steer a terminal, turn the text around or spoil XML: ESC is \x1b."""
    harms = (_steers(sign) or _is_no_character(sign) for sign in word)
    return "".join(_spelled(sign) if harm else sign for sign, harm in zip(word, harms, strict=True))


def _steers(sign: str) -> bool:
    return category(sign) in {"Cc", "Cf", "Cs", "Zl", "Zp"} and sign not in JOINERS


def _is_no_character(sign: str) -> bool:
    """Tell whether Unicode will never give a sign a meaning."""
    return 0xFDD0 <= ord(sign) <= 0xFDEF or ord(sign) & 0xFFFE == 0xFFFE


def _spelled(sign: str) -> str:
    return sign.encode("unicode_escape").decode("ascii")


def _shape(nested: Any) -> tuple[int, ...]:
    """Measure nested lists along their first elements."""
    if not isinstance(nested, Sequence):
        return ()
    return (len(nested), *(_shape(nested[0]) if nested else ()))


def _check_words(side: str, line: str, wanted: int, words: Sequence[str]) -> None:
    if len(words) != wanted:
        raise ValueError(
            f"{side} must be one word per {line} of weights: {wanted} wanted, {len(words)} came"
        )


def _check_rows(rows: Sequence[Sequence[float]], keys: int) -> None:
    for query, row in enumerate(rows):
        if len(row) != keys:
            raise ValueError(
                f"weights must have rows of equal length, but row {query} has {len(row)} "
                f"numbers and row 0 has {keys}"
            )
        for key, weight in enumerate(row):
            if not 0 <= weight < math.inf:
                raise ValueError(
                    f"weights must be 0 or more, but weights[{query}, {key}] is {weight}; "
                    "scores become weights in a softmax"
                )
