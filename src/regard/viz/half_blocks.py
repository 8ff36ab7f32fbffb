"""Large maps for a terminal: two queries to a line, drawn by half blocks in two colours."""

import os
import sys
from shutil import get_terminal_size
from typing import Any

import numpy as np

from regard.trace import Array, to_array
from regard.viz.colour import Depth, depth, paint_halves, shade
from regard.viz.grid import safe
from regard.viz.terminal import known_depth, scale

APART = 10  # columns between two positions on the upper edge
LINES = 40  # a taller map is made coarser


def half_blocks(
    weights: Any,
    *,
    title: str | None = None,
    top: float | None = None,
    colour: str | None = None,
    width: int | None = None,
    lines: int = LINES,
) -> str:
    """Draw one matrix (query, key): a column per key, half a line per query, edges numbered.

    What does not fit is made coarser: a sign then shows the strongest of the weights it covers.
    Without colours a whole line shows what two halves would.
    """
    whole = _checked(to_array(weights))
    colours = depth(os.environ, sys.stdout.isatty()) if colour is None else known_depth(colour)
    margin = len(str(whole.shape[0])) + 1
    room = max((width or get_terminal_size().columns) - margin, 1)
    across, down = min(whole.shape[1], room), min(whole.shape[0], 2 * lines)
    shares = pooled(whole, down, across) / (top or 1.0)
    heading = [f"{safe(title)}\n"] if title else []
    drawn = [
        f"{_position(n, down, whole.shape[0]):>{margin - 1}} {_line(shares[n : n + 2], colours)}"
        for n in range(0, down, 2)
    ]
    upper = " " * margin + _edge(across, whole.shape[1])
    overflows = bool(whole.max(initial=0) > (top or 1.0) + 1e-6)
    legend = " " * (margin - 1) + scale(top or 1.0, overflows, colours)
    return "\n".join([*heading, upper.rstrip(), *(line.rstrip() for line in drawn), "", legend])


def pooled(whole: Array, rows: int, columns: int) -> Array:
    """Make a matrix coarser: each cell of the result is the largest of those it covers."""
    down, across = (
        np.arange(count) * size // count
        for count, size in zip((rows, columns), whole.shape, strict=True)
    )
    return np.asarray(np.maximum.reduceat(np.maximum.reduceat(whole, down, axis=0), across, axis=1))


def _checked(whole: Array) -> Array:
    if whole.ndim != 2 or 0 in whole.shape:
        raise ValueError(
            f"weights must be one matrix of queries and keys, but their shape is {whole.shape}; "
            "(50, 70) would do"
        )
    wrong = np.argwhere(~((whole >= 0) & np.isfinite(whole)))
    if len(wrong):
        query, key = wrong[0].tolist()
        raise ValueError(
            f"weights must be 0 or more, but weights[{query}, {key}] is {whole[query, key]}; "
            "scores become weights in a softmax"
        )
    return whole


def _position(line: int, down: int, queries: int) -> str:
    """Number every fifth line by its first query."""
    return str(line * queries // down) if line % 10 == 0 else ""


def _edge(across: int, keys: int) -> str:
    """Number some columns by their first key."""
    return "".join(
        f"{column * keys // across:<{APART}}" for column in range(0, across, APART)
    ).rstrip()


def _line(pair: Array, colours: Depth) -> str:
    if colours == "plain":
        return "".join(map(shade, pair.max(axis=0).tolist()))
    upper, lower = pair[0].tolist(), (pair[1].tolist() if len(pair) == 2 else None)
    below = [None] * len(upper) if lower is None else lower
    return "".join(paint_halves(a, b, colours) for a, b in zip(upper, below, strict=True))
