"""Attention maps as text for a terminal: a heat map of one head, and its strongest links."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from shutil import get_terminal_size
from typing import Any

import numpy as np
from rich.cells import cell_len

from regard._support.text import escape_control
from regard.trace import Array, Rows, Trace
from regard.viz.colour import (
    NORMALISED_NOTE,
    ColourDepth,
    colour_scale,
    paint,
    resolve_depth,
    shade,
)
from regard.viz.half_blocks import render_half_blocks
from regard.viz.matrix import (
    NO_TITLES,
    AxisTitles,
    LabelledMatrix,
    format_weight,
    label_matrix,
)
from regard.viz.selected_head import label_head
from regard.viz.text_layout import centre, pad, stack_characters, truncate

NUMBER_COLUMNS = 6  # a cell that shows " 0.33 "
SHADED_NUMBER_COLUMNS = 9  # a cell that shows " 0.33 ## ", where there are no colours
SQUARE_COLUMNS = 2  # a cell without a number, about as wide as a line is high
MAX_LABEL_LINES = 12  # of key labels that are written downwards
MAX_LABELLED_QUERIES = 40  # a map with more queries is drawn with half blocks
MAX_LINKS = 12  # below a map drawn with half blocks
MAX_LINK_LABEL = 24  # columns of a label in them


@dataclass(frozen=True, slots=True)
class _Layout:
    """Columns of the query labels and of one cell, and how many cells fit side by side."""

    label_columns: int
    cell_columns: int
    cells_per_block: int


def render_head(
    trace: Trace,
    kind: str | None = None,
    layer: int | None = None,
    head: int | None = None,
    *,
    rows: Rows = "output",
    vmax: float | None = None,
    colour: str | None = None,
    width: int | None = None,
) -> str:
    """Draw one head of a trace as text: a labelled heat map if it fits, else half blocks.

    Args:
        trace: the trace.
        kind: "encoder", "decoder", "cross", …; by default cross-attention, else the first.
        layer: layer within that attention; -1 is the last. By default that of the head.
        head: index of a head; by default the one that `analysis.select_head` selects.
        rows: "output" names rows of a decoder's cross-attention by the word written there, "input"
            by the word read there.
        vmax: weight at the end of the colour scale; by default 1, or the largest weight if that is
            below 0.5.
        colour: "24-bit", "256" or "plain"; by default what the terminal supports.
        width: columns to fill; by default those of the terminal.

    Returns:
        The text, with colours unless `colour` is "plain".

    Raises:
        RegardError: if there is no such head.

    Example:
        >>> from regard.trace import build_translation_trace
        >>> trace = build_translation_trace(["the", "cat"], ["chat"], cross=[[[[0.25, 0.75]]]])
        >>> print(render_head(trace, colour="plain"))
        Cross-attention · layer 0, head 0
        <BLANKLINE>
        writing ↓  reading →
                the      cat
        chat  0.25 ::  0.75 xx
        <BLANKLINE>
             0 [ .:-=+*x#@] 1
    """
    matrix = label_head(trace, kind, layer, head, vmax, rows)
    width = width or get_terminal_size().columns
    label_columns = max(map(cell_len, matrix.queries)) + 1
    fits = label_columns + SQUARE_COLUMNS * len(matrix.keys) <= width
    if fits and len(matrix.queries) <= MAX_LABELLED_QUERIES:
        return _render_matrix(matrix, _heading(matrix), resolve_depth(colour), width)
    drawn = render_half_blocks(
        matrix.weights,
        axis_titles=matrix.axis_titles,
        vmax=vmax,
        colour=colour,
        width=width,
    )
    return f"{_heading(matrix)}\n\n{drawn}\n\n{_render_links(matrix, MAX_LINKS)}"


def render_links(
    trace: Trace,
    kind: str | None = None,
    layer: int | None = None,
    head: int | None = None,
    *,
    rows: Rows = "output",
    count: int = MAX_LINKS,
) -> str:
    """List the largest weights of one head, largest first: query, key, weight and positions.

    Args:
        trace: the trace.
        kind: as for `render_head`.
        layer: as for `render_head`.
        head: as for `render_head`.
        rows: as for `render_head`.
        count: number of weights to list.

    Returns:
        A line for each weight.

    Raises:
        RegardError: if there is no such head.

    Example:
        >>> from regard.trace import build_translation_trace
        >>> trace = build_translation_trace(["the", "cat"], ["chat"], cross=[[[[0.25, 0.75]]]])
        >>> print(render_links(trace, count=1))
        chat  attends to cat  (0.75; 0 to 1)
    """
    return _render_links(label_head(trace, kind, layer, head, rows=rows), count)


def _heading(matrix: LabelledMatrix) -> str:
    """Return a line with the title, if there is one, and a line that says which head it is."""
    return "\n".join(escape_control(line) for line in (matrix.title, matrix.caption) if line)


def render_heatmap(
    weights: Any,
    queries: Sequence[str],
    keys: Sequence[str],
    *,
    title: str | None = None,
    axis_titles: AxisTitles = NO_TITLES,
    vmax: float | None = None,
    colour: str | None = None,
    width: int | None = None,
) -> str:
    """Draw a heat map as text: one row per query, one column per key.

    Args:
        weights: one matrix (query, key), as a tensor, an array or nested lists.
        queries: labels of the rows.
        keys: labels of the columns.
        title: line above the map.
        axis_titles: what a row and what a column is, such as ("query ↓", "key →").
        vmax: weight at the end of the colour scale; by default 1, or the largest weight if that is
            below 0.5.
        colour: "24-bit", "256" or "plain"; by default what the terminal supports.
        width: columns to fill; by default those of the terminal. A wider map continues below.

    Raises:
        RegardError: if labels and weights do not fit together.

    Example:
        >>> print(render_heatmap([[0.25, 0.75]], ["q"], ["a", "b"], colour="plain", width=40))
              a        b
        q  0.25 ::  0.75 xx
        <BLANKLINE>
          0 [ .:-=+*x#@] 1
    """
    matrix = label_matrix(weights, queries, keys, vmax, axis_titles=axis_titles)
    width = width or get_terminal_size().columns
    return _render_matrix(matrix, escape_control(title or ""), resolve_depth(colour), width)


def render_strongest(weights: Any, queries: Sequence[str], keys: Sequence[str]) -> str:
    """Name the key with the largest weight for each query, one line per query.

    Example:
        >>> print(render_strongest([[0.25, 0.75]], ["kitten"], ["train", "cat"]))
        kitten  attends most to cat (0.75)
    """
    matrix = label_matrix(weights, queries, keys)
    width = max(map(cell_len, matrix.queries))
    return "\n".join(
        f"{pad(query, width)}  {_strongest_keys(row, matrix.keys)}"
        for query, row in zip(matrix.queries, matrix.weights.tolist(), strict=True)
    )


def _strongest_keys(row: Sequence[float], keys: Sequence[str]) -> str:
    largest = max(row)
    if largest == 0:
        return "attends to nothing"
    # Equal scores may give weights that differ in the last bits.
    best = [keys[n] for n, weight in enumerate(row) if math.isclose(weight, largest, rel_tol=1e-5)]
    each = " each" if len(best) > 1 else ""
    return f"attends most to {', '.join(best)} ({format_weight(largest)}{each})"


def _render_links(matrix: LabelledMatrix, count: int) -> str:
    order = np.argsort(-matrix.weights, axis=None, kind="stable")[:count]
    positions = zip(*np.unravel_index(order, matrix.weights.shape), strict=True)
    links = [(q, k, float(matrix.weights[q, k])) for q, k in positions if matrix.weights[q, k] > 0]
    width = max((cell_len(matrix.queries[query]) for query, _, _ in links), default=0)
    width = min(width, MAX_LINK_LABEL)
    return "\n".join(
        f"{pad(matrix.queries[query], width)}  attends to "
        f"{truncate(matrix.keys[key], MAX_LINK_LABEL)}  "
        f"({format_weight(weight)}; {query} to {key})"
        for query, key, weight in links
    )


def _render_matrix(matrix: LabelledMatrix, heading: str, depth: ColourDepth, width: int) -> str:
    layout = _choose_layout(matrix, width, _number_columns(depth))
    keys, step = len(matrix.keys), layout.cells_per_block
    blocks = [
        _render_block(matrix, slice(first, first + step), layout, depth)
        for first in range(0, keys, step)
    ]
    scale = colour_scale(matrix.vmax, matrix.has_overflow, depth)
    margin = " " * layout.label_columns
    legend = [margin + scale]
    if matrix.is_normalised:
        legend.append(truncate(f"{margin} {NORMALISED_NOTE}", width))
    above = [f"{heading}\n"] if heading else []
    above += _axis_line(matrix.axis_titles, layout.label_columns, width)
    return "\n".join([*above, "\n\n".join(blocks), "", *legend])


def _axis_line(titles: AxisTitles, label_columns: int, width: int) -> list[str]:
    """Write what a row is above the query labels, and what a column is above the map."""
    rows, columns = map(escape_control, titles)
    gap = " " * max(2, label_columns + 2 - cell_len(rows))
    return [truncate(f"{rows}{gap}{columns}", width)] if rows or columns else []


def _number_columns(depth: ColourDepth) -> int:
    return SHADED_NUMBER_COLUMNS if depth == "plain" else NUMBER_COLUMNS


def _choose_layout(matrix: LabelledMatrix, width: int, number_columns: int) -> _Layout:
    """Prefer cells as wide as the key labels, then cells with numbers, then squares."""
    label_columns = min(max(map(cell_len, matrix.queries)), max(width // 3, 1))
    available = max(width - label_columns - 1, SQUARE_COLUMNS)
    labelled = max(number_columns, 2 + max(map(cell_len, matrix.keys)))
    fitting = (c for c in (labelled, number_columns) if c * len(matrix.keys) <= available)
    cell_columns = next(fitting, SQUARE_COLUMNS)
    return _Layout(label_columns, cell_columns, available // cell_columns)


def _render_block(matrix: LabelledMatrix, keys: slice, layout: _Layout, depth: ColourDepth) -> str:
    """Draw the columns of some keys."""
    margin = " " * (layout.label_columns + 1)
    header = _key_labels(matrix.keys[keys], layout.cell_columns)
    lines = [(margin + line).rstrip() for line in header]
    rows: Array = matrix.weights[:, keys]
    for query, row in zip(matrix.queries, rows.tolist(), strict=True):
        cells = (_render_cell(w, matrix.vmax, layout.cell_columns, depth) for w in row)
        lines.append(f"{pad(query, layout.label_columns)} {''.join(cells)}".rstrip())
    return "\n".join(lines)


def _key_labels(labels: Sequence[str], cell_columns: int) -> list[str]:
    """Write the key labels above their cells: across where they fit, else downwards."""
    if max(map(cell_len, labels)) <= cell_columns - 1:
        return ["".join(centre(label, cell_columns) for label in labels)]
    stacks = [stack_characters(truncate(label, MAX_LABEL_LINES)) for label in labels]
    height = max(map(len, stacks))
    stacks = [[""] * (height - len(stack)) + stack for stack in stacks]
    return ["".join(centre(c, cell_columns) for c in line) for line in zip(*stacks, strict=True)]


def _render_cell(weight: float, vmax: float, cell_columns: int, depth: ColourDepth) -> str:
    intensity = weight / vmax
    number = format_weight(weight) if cell_columns >= _number_columns(depth) else ""
    if depth != "plain":
        return paint(centre(number, cell_columns), intensity, depth)
    if not number:
        return shade(intensity) * cell_columns
    return centre(f"{number:>4} {shade(intensity) * 2}", cell_columns)
