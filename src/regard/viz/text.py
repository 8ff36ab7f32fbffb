"""A trace as text for a terminal: one head as a map, and its strongest links in words."""

from shutil import get_terminal_size

import numpy as np

from regard.trace import Trace
from regard.viz.columns import columns, left
from regard.viz.grid import number, safe
from regard.viz.half_blocks import half_blocks
from regard.viz.terminal import SQUARE, render_heatmap
from regard.viz.view import View, view

MOST_ROWS = 40  # a map of more queries is drawn by half blocks
LINKS = 12  # lines of links below a map drawn by half blocks


def render_head(
    trace: Trace,
    kind: str | None = None,
    layer: int = 0,
    head: int | None = None,
    *,
    top: float | None = None,
    colour: str | None = None,
    width: int | None = None,
) -> str:
    """Draw one head: with its words where they fit, else by half blocks and its strongest links."""
    seen = view(trace, kind, layer, head)
    room = width or get_terminal_size().columns
    names = max(map(columns, seen.queries)) + 1
    if len(seen.queries) <= MOST_ROWS and names + SQUARE * len(seen.keys) <= room:
        return render_heatmap(
            seen.rows,
            seen.queries,
            seen.keys,
            title=seen.caption,
            top=top,
            colour=colour,
            width=room,
        )
    drawn = half_blocks(seen.rows, title=seen.caption, top=top, colour=colour, width=room)
    return f"{drawn}\n\n{_links(seen, LINKS)}"


def render_links(
    trace: Trace,
    kind: str | None = None,
    layer: int = 0,
    head: int | None = None,
    *,
    count: int = LINKS,
) -> str:
    """List the strongest links of one head, strongest first: query, key and weight."""
    return _links(view(trace, kind, layer, head), count)


def _links(seen: View, count: int) -> str:
    order = np.argsort(-seen.rows, axis=None, kind="stable")[:count]
    queries, keys = np.unravel_index(order, seen.rows.shape)
    strong = [
        (safe(seen.queries[query]), safe(seen.keys[key]), seen.rows[query, key], query, key)
        for query, key in zip(queries, keys, strict=True)
        if seen.rows[query, key] > 0
    ]
    room = max((columns(query) for query, *_ in strong), default=0)
    return "\n".join(
        f"{left(query, room)}  looks at {key}  ({number(float(weight))}; {i} to {j})"
        for query, key, weight, i, j in strong
    )
