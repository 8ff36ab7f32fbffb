"""A matrix of attention weights with its labels: validated, and safe to draw anywhere."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from regard._support.text import escape_control
from regard.errors import RegardError
from regard.trace import Array

AxisTitles = tuple[str, str]
"""What a row and what a column is, in words."""

QUERY_KEY = ("query ↓", "key →")
"""Axis titles of self-attention."""

NO_TITLES = ("", "")
WRITING_READING = ("writing ↓", "reading →")
"""Axis titles of a translation: rows are the words that the decoder writes."""

FULL_SCALE_FROM = 0.5  # a map whose largest weight is below it is coloured from 0 to that weight


@dataclass(frozen=True, slots=True, eq=False)
class LabelledMatrix:
    """The attention weights of one head and what a picture of them shows.

    The colour scale runs from 0 to `vmax`; `is_normalised` says that this is the largest weight of
    this map, and legends say so, too. Labels are escaped already, title and caption are not.
    """

    weights: Array  # (query, key)
    queries: tuple[str, ...]
    keys: tuple[str, ...]
    vmax: float = 1.0
    title: str = ""
    caption: str = ""
    outlined: tuple[tuple[int, int], ...] = ()  # cells (query, key)
    axis_titles: AxisTitles = QUERY_KEY
    is_normalised: bool = False

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
    axis_titles: AxisTitles = QUERY_KEY,
) -> LabelledMatrix:
    """Validate weights, labels and scale, and escape the labels.

    Without `vmax` the colour scale ends at 1, or at the largest weight if that is below 0.5.

    Raises:
        RegardError: if there is not one label per row and per column, a weight is negative or not
            finite, or a cell to outline is not in the matrix.
    """
    matrix = check_matrix(weights)
    _check_labels("queries", "row", matrix.shape[0], queries)
    _check_labels("keys", "column", matrix.shape[1], keys)
    _check_cells(outlined, matrix.shape)
    labels = tuple(map(escape_control, queries)), tuple(map(escape_control, keys))
    end, is_normalised = scale_end(matrix, vmax)
    return LabelledMatrix(
        matrix, *labels, end, title, caption, tuple(outlined), axis_titles, is_normalised
    )


def scale_end(matrix: Array, vmax: float | None = None) -> tuple[float, bool]:
    """Return the weight at the end of the colour scale, and whether it was chosen for this map.

    Raises:
        RegardError: if `vmax` is not above 0.
    """
    if vmax is not None:
        return check_vmax(vmax), False
    largest = float(matrix.max(initial=0.0))
    is_normalised = 0 < largest < FULL_SCALE_FROM
    return (largest if is_normalised else 1.0), is_normalised


def check_vmax(vmax: float) -> float:
    """Return the end of a colour scale; raise unless it is a number above 0."""
    if not 0 < vmax < math.inf:
        raise RegardError(f"vmax must be a number above 0, but it is {vmax!r}; None chooses one")
    return vmax


def check_matrix(weights: Any) -> Array:
    """Convert one head's weights to an array; raise unless it is a matrix of weights."""
    if hasattr(weights, "detach"):
        weights = weights.detach().cpu().double().numpy()
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


def _check_cells(cells: Sequence[tuple[int, int]], shape: tuple[int, ...]) -> None:
    """Raise unless all cells (query, key) are in a matrix of this shape."""
    rows, columns = shape
    for cell in cells:
        if not (len(cell) == 2 and 0 <= cell[0] < rows and 0 <= cell[1] < columns):
            raise RegardError(
                f"outlined must be cells (query, key) of {rows} queries and {columns} keys, but "
                f"one is {cell}"
            )


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
