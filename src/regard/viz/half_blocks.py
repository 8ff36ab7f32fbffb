"""Large attention maps in a terminal: two queries per line, drawn with half blocks."""

from shutil import get_terminal_size
from typing import Any

import numpy as np

from regard._support.text import escape_control
from regard.trace import Array
from regard.viz.colour import (
    NORMALISED_NOTE,
    ColourDepth,
    colour_scale,
    paint_half_block,
    resolve_depth,
    shade,
)
from regard.viz.matrix import NO_TITLES, AxisTitles, check_matrix, scale_end

KEY_LABEL_COLUMNS = 10  # between two positions above the map
MAX_LINES = 40  # a taller map is pooled


def render_half_blocks(
    weights: Any,
    *,
    title: str | None = None,
    axis_titles: AxisTitles = NO_TITLES,
    vmax: float | None = None,
    colour: str | None = None,
    width: int | None = None,
    max_lines: int = MAX_LINES,
) -> str:
    """Draw a matrix as text: one column per key, half a line per query, positions at the edges.

    A map that does not fit is max-pooled. Without colours, a line shows the larger of two rows.

    Args:
        weights: (query, key), as a tensor, an array or nested lists.
        title: line above the map.
        axis_titles: what a row and what a column is.
        vmax: weight at the end of the colour scale; by default 1, or the largest weight if that is
            below 0.5.
        colour: "24-bit", "256" or "plain"; by default what the terminal supports.
        width: columns to fill; by default those of the terminal.
        max_lines: lines of the map.

    Returns:
        The text, with colours unless `colour` is "plain".

    Raises:
        RegardError: if `weights` is not a matrix.

    Example:
        >>> print(render_half_blocks([[1.0, 0.0], [0.0, 1.0]], colour="plain"))
          0
        0 @@
        <BLANKLINE>
          0 [ .:-=+*x#@] 1
    """
    matrix, depth = check_matrix(weights), resolve_depth(colour)
    queries, keys = matrix.shape
    margin = len(str(queries)) + 1
    available = max((width or get_terminal_size().columns) - margin, 1)
    columns, rows = min(keys, available), min(queries, 2 * max_lines)
    end, is_normalised = scale_end(matrix, vmax)
    intensities = max_pool(matrix, rows, columns) / end
    heading = [f"{escape_control(title)}\n"] if title else []
    lines = [
        f"{_query_label(n, rows, queries):>{margin - 1}} {_line(intensities[n : n + 2], depth)}"
        for n in range(0, rows, 2)
    ]
    key_labels = " " * margin + _key_labels(columns, keys)
    has_overflow = bool(matrix.max(initial=0) > end + 1e-6)
    legend = [" " * (margin - 1) + colour_scale(end, has_overflow, depth)]
    if is_normalised:
        legend.append(" " * margin + NORMALISED_NOTE)
    axes = [escape_control("  ".join(axis_titles))] if any(axis_titles) else []
    lines = [*axes, key_labels.rstrip(), *(line.rstrip() for line in lines)]
    return "\n".join([*heading, *lines, "", *legend])


def max_pool(matrix: Array, rows: int, columns: int) -> Array:
    """Reduce a matrix to fewer rows and columns; each cell is the maximum of those it covers."""
    row_starts, column_starts = (
        np.arange(count) * size // count
        for count, size in zip((rows, columns), matrix.shape, strict=True)
    )
    pooled = np.maximum.reduceat(matrix, row_starts, axis=0)
    return np.asarray(np.maximum.reduceat(pooled, column_starts, axis=1))


def _query_label(row: int, rows: int, queries: int) -> str:
    """Return the position of the first query of every fifth line."""
    return str(row * queries // rows) if row % 10 == 0 else ""


def _key_labels(columns: int, keys: int) -> str:
    """Return the positions of the first keys of some columns."""
    return "".join(
        f"{column * keys // columns:<{KEY_LABEL_COLUMNS}}"
        for column in range(0, columns, KEY_LABEL_COLUMNS)
    ).rstrip()


def draw_lines(intensities: Array, depth: ColourDepth) -> list[str]:
    """Draw the rows of a map, two on each line, without labels."""
    return [_line(intensities[n : n + 2], depth) for n in range(0, len(intensities), 2)]


def _line(pair: Array, depth: ColourDepth) -> str:
    """Draw one or two rows on one line."""
    if depth == "plain":
        return "".join(map(shade, pair.max(axis=0).tolist()))
    upper = pair[0].tolist()
    lower = pair[1].tolist() if len(pair) == 2 else [None] * len(upper)
    return "".join(paint_half_block(a, b, depth) for a, b in zip(upper, lower, strict=True))
