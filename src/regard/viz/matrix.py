"""A matrix of attention weights with its labels: validated, and safe to draw anywhere."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from unicodedata import category

import numpy as np

from regard.errors import RegardError
from regard.trace import Array

# Zero-width (non-)joiners shape Persian and Indic words and emoji, and are harmless.
_JOINERS = "\u200c\u200d"


@dataclass(frozen=True, slots=True, eq=False)
class LabelledMatrix:
    """The attention weights of one head and what a picture of them shows.

    The colour scale runs from 0 to `vmax`. Labels are escaped already, title and caption are not.
    """

    weights: Array  # (query, key)
    queries: tuple[str, ...]
    keys: tuple[str, ...]
    vmax: float = 1.0
    title: str = ""
    caption: str = ""
    outlined: tuple[tuple[int, int], ...] = ()  # cells (query, key)

    @property
    def longest_side(self) -> int:
        """Number of queries or of keys, whichever is greater."""
        return max(len(self.queries), len(self.keys))

    @property
    def has_overflow(self) -> bool:
        """Whether some weight is above the scale; rounding may leave 1.0000001."""
        return bool(self.weights.max() > self.vmax + 1e-6)


def label_matrix(
    weights: Any,
    queries: Sequence[str],
    keys: Sequence[str],
    vmax: float | None = None,
    *,
    title: str = "",
    caption: str = "",
    outlined: Sequence[tuple[int, int]] = (),
) -> LabelledMatrix:
    """Validate weights, labels and scale, and escape the labels.

    Raises:
        RegardError: if there is not one label per row and per column, or a weight is negative or
            not finite.
    """
    matrix = check_matrix(weights)
    _check_labels("queries", "row", matrix.shape[0], queries)
    _check_labels("keys", "column", matrix.shape[1], keys)
    if vmax is not None and not 0 < vmax < math.inf:
        raise RegardError(f"vmax must be a number above 0, but it is {vmax!r}; None means 1")
    labels = tuple(map(escape_control, queries)), tuple(map(escape_control, keys))
    return LabelledMatrix(matrix, *labels, vmax or 1.0, title, caption, tuple(outlined))


def check_matrix(weights: Any) -> Array:
    """Convert one head's weights to an array; raise unless it is a matrix of weights."""
    if hasattr(weights, "detach"):
        weights = weights.detach().double().cpu().numpy()
    rows = weights if hasattr(weights, "shape") else list(weights)
    _check_row_lengths(rows)
    matrix = np.asarray(rows, dtype=np.float64)  # in float32, 0.7 would be less than 0.7
    if matrix.ndim != 2 or 0 in matrix.shape:
        hint = "weights[0, 0] would be one head" if matrix.ndim == 4 else "(5, 7) would do"
        raise RegardError(
            f"weights must be one matrix (query, key), but their shape is {matrix.shape}; {hint}"
        )
    invalid = np.argwhere(~((matrix >= 0) & np.isfinite(matrix)))
    if len(invalid):
        query, key = invalid[0].tolist()
        raise RegardError(
            f"weights must be 0 or greater, but weights[{query}, {key}] is {matrix[query, key]}; "
            "a softmax turns scores into weights"
        )
    return matrix


def format_weight(weight: float) -> str:
    """Format a weight with two decimals; an exact 0, as behind a mask, becomes "0"."""
    return f"{weight:.2f}" if weight else "0"


def escape_control(text: str) -> str:
    r"""Escape characters that control a terminal, change text direction or are invalid in XML.

    Example:
        >>> print(escape_control("\x1b[31m"))
        \x1b[31m
    """
    return "".join(
        character.encode("unicode_escape").decode("ascii")
        if _is_control(character) or _is_noncharacter(character)
        else character
        for character in text
    )


def _is_control(character: str) -> bool:
    return category(character) in {"Cc", "Cf", "Cs", "Zl", "Zp"} and character not in _JOINERS


def _is_noncharacter(character: str) -> bool:
    """Return whether a code point is one of Unicode's 66 noncharacters."""
    return 0xFDD0 <= ord(character) <= 0xFDEF or ord(character) & 0xFFFE == 0xFFFE


def _check_labels(axis: str, line: str, expected: int, labels: Sequence[str]) -> None:
    if len(labels) != expected:
        raise RegardError(
            f"{axis} must have one label per {line} of weights, {expected}, not {len(labels)}"
        )


def _check_row_lengths(rows: Any) -> None:
    lengths = [len(row) for row in rows if hasattr(row, "__len__")]
    for query, length in enumerate(lengths):
        if length != lengths[0]:
            raise RegardError(
                f"weights must have rows of equal length, but row {query} has {length} items and "
                f"row 0 has {lengths[0]}"
            )
