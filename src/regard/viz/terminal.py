"""Weights as text for a terminal: a heat map, and the strongest look of each query."""

import math
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from shutil import get_terminal_size
from typing import cast, get_args

from regard.viz.colour import SHADES, Depth, depth, paint, shade
from regard.viz.columns import centred, columns, cut, left, letters
from regard.viz.grid import Grid, Matrix, grid, number, safe

NUMBER = 6  # columns of a cell that shows " 0.33 "
SHADED_NUMBER = 9  # columns of a cell that shows " 0.33 ## ", for want of colour
SQUARE = 2  # columns of a cell without a number: about as wide as a line is high
TALLEST = 12  # lines for words that are written downwards
LEGEND = 20  # columns of the scale below the map


@dataclass(frozen=True, slots=True)
class _Layout:
    """What fits: columns of the query words and of a cell, and how many cells side by side."""

    words: int
    cell: int
    cells: int


def render_heatmap(
    weights: Matrix,
    queries: Sequence[str],
    keys: Sequence[str],
    *,
    title: str | None = None,
    top: float | None = None,
    colour: str | None = None,
    width: int | None = None,
) -> str:
    """Draw where each query looks: a row per query, a column per key.

    Args:
        weights: one matrix (query, key), as a tensor, an array or nested lists.
        top: the weight at the end of the scale; 1 by default.
        colour: "24-bit", "256" or "plain"; by default what the terminal understands.
        width: columns to fill; by default those of the terminal. A wider map goes on below.
    """
    chart = grid(weights, queries, keys, top)
    colours = depth(os.environ, sys.stdout.isatty()) if colour is None else known_depth(colour)
    layout = _fit(chart, width or get_terminal_size().columns, _number_room(colours))
    blocks = [
        _block(chart, range(first, min(first + layout.cells, len(chart.keys))), layout, colours)
        for first in range(0, len(chart.keys), layout.cells)
    ]
    heading = [f"{safe(title)}\n"] if title else []
    legend = " " * layout.words + scale(chart.top, chart.overflows, colours)
    return "\n".join([*heading, "\n\n".join(blocks), "", legend])


def render_strongest(weights: Matrix, queries: Sequence[str], keys: Sequence[str]) -> str:
    """Name the key at which each query looks most, one line per query."""
    chart = grid(weights, queries, keys)
    room = max(map(columns, chart.queries))
    return "\n".join(
        f"{left(query, room)}  {_strongest(row, chart.keys)}"
        for query, row in zip(chart.queries, chart.rows, strict=True)
    )


def _strongest(row: Sequence[float], keys: Sequence[str]) -> str:
    most = max(row)
    if most == 0:
        return "looks nowhere"
    # equal scores may give weights that differ in the last bits
    best = [keys[key] for key, look in enumerate(row) if math.isclose(look, most, rel_tol=1e-5)]
    shared = " each" if len(best) > 1 else ""
    return f"looks most at {', '.join(best)} ({number(most)}{shared})"


def known_depth(colour: str) -> Depth:
    """Check the name of a number of colours."""
    for known in get_args(Depth):
        if colour == known:
            return cast(Depth, known)
    choices = ", ".join(map(repr, get_args(Depth)))
    raise ValueError(f"colour must be one of {choices}, or None, but it is {colour!r}")


def _number_room(colours: Depth) -> int:
    return SHADED_NUMBER if colours == "plain" else NUMBER


def _fit(chart: Grid, width: int, numbered: int) -> _Layout:
    """Prefer cells as wide as the key words, then cells with numbers, then squares."""
    words = min(max(map(columns, chart.queries)), max(width // 3, 1))
    room = max(width - words - 1, SQUARE)
    named = max(numbered, 2 + max(map(columns, chart.keys)))
    cell = next((c for c in (named, numbered) if c * len(chart.keys) <= room), SQUARE)
    return _Layout(words, cell, room // cell)


def _block(chart: Grid, shown: range, layout: _Layout, colours: Depth) -> str:
    """Draw the map of some of the keys."""
    margin = " " * (layout.words + 1)
    heads = _heads([chart.keys[key] for key in shown], layout.cell)
    lines = [(margin + head).rstrip() for head in heads]
    for query, row in zip(chart.queries, chart.rows, strict=True):
        cells = (_cell(row[key], chart.top, layout.cell, colours) for key in shown)
        lines.append(f"{left(query, layout.words)} {''.join(cells)}".rstrip())
    return "\n".join(lines)


def _heads(words: Sequence[str], cell: int) -> list[str]:
    """Write the key words above their cells: across where they fit, else downwards."""
    if max(map(columns, words)) <= cell - 1:
        return ["".join(centred(word, cell) for word in words)]
    stacks = [letters(cut(word, TALLEST)) for word in words]
    height = max(map(len, stacks))
    stacks = [[""] * (height - len(stack)) + stack for stack in stacks]
    return ["".join(centred(sign, cell) for sign in line) for line in zip(*stacks, strict=True)]


def _cell(weight: float, top: float, cell: int, colours: Depth) -> str:
    share = weight / top
    text = number(weight) if cell >= _number_room(colours) else ""
    if colours != "plain":
        return paint(centred(text, cell), share, colours)
    return centred(f"{text:>4} {shade(share) * 2}", cell) if text else shade(share) * cell


def scale(top: float, overflows: bool, colours: Depth) -> str:
    """Show the scale, and say when a weight is beyond it."""
    if colours == "plain":
        steps = f"[{SHADES}]"
    else:
        shares = (step / (LEGEND - 1) for step in range(LEGEND))
        steps = "".join(paint(" ", share, colours) for share in shares)
    return f" 0 {steps} {top:g}{' or more' if overflows else ''}"
