"""All heads of one attention in a terminal: small maps without labels, a row of them per layer."""

from functools import reduce
from shutil import get_terminal_size

from regard._support.text import escape_control
from regard.trace import Array, Rows, Trace
from regard.viz.colour import ColourDepth, colour_scale, resolve_depth, shade
from regard.viz.half_blocks import draw_lines, max_pool
from regard.viz.matrix import check_vmax
from regard.viz.selected_head import axis_titles, caption, find_group, head_weights, resolve_head
from regard.viz.text_layout import display_width, side_by_side

MAX_SIDE = 24  # rows and columns of a map; larger ones are pooled
GAP = 3  # columns between two maps
SELECTED = "*"


def render_all_heads(
    trace: Trace,
    kind: str | None = None,
    *,
    rows: Rows = "output",
    vmax: float | None = None,
    colour: str | None = None,
    width: int | None = None,
) -> str:
    """Draw all layers and heads of one attention as text, as `plot_all_heads` does as a figure.

    Each map is named layer.head, and marked with * if `analysis.select_head` selects it.

    Args:
        trace: the trace.
        kind: "encoder", "decoder", "cross", …; by default cross-attention, else the first.
        rows: "output" if rows of a decoder's cross-attention are the words written there, "input"
            if they are the words read there.
        vmax: weight at the end of the colour scale; 1 by default.
        colour: "24-bit", "256" or "plain"; by default what the terminal supports.
        width: columns to fill; by default those of the terminal.

    Raises:
        RegardError: if there is no such attention, `rows` is neither, or `vmax` is not above 0.

    Example:
        >>> from regard.trace import build_translation_trace
        >>> trace = build_translation_trace(["the", "cat"], ["chat"], cross=[[[[0.25, 0.75]]]])
        >>> print(render_all_heads(trace, colour="plain"))
        Cross-attention: layer.head, * selected
        writing ↓  reading →
        <BLANKLINE>
        0.0*
        |::xx|
        <BLANKLINE>
         0 [ .:-=+*x#@] 1
    """
    group, selected_layer, selected_head = resolve_head(trace, find_group(trace, kind).name)
    depth, end = resolve_depth(colour), 1.0 if vmax is None else check_vmax(vmax)
    blocks = []
    for layer, attention_map in enumerate(group.maps):
        maps = []
        for position, head in enumerate(attention_map.heads):
            is_selected = (layer, head) == (selected_layer, selected_head)
            name = f"{layer}.{head}{SELECTED if is_selected else ''}"
            maps.append(_thumbnail(name, head_weights(attention_map, position) / end, depth))
        blocks += _join(maps, width or get_terminal_size().columns)
    trace.row_tokens(group.maps[0], rows)  # raises if `rows` is unknown
    heading = (
        f"{escape_control(caption(trace, group.name))}: layer.head, {SELECTED} selected\n"
        f"{'  '.join(axis_titles(group.maps[0], rows))}"
    )
    has_overflow = any(
        m.weights is not None and bool(m.weights.max(initial=0) > end + 1e-6) for m in group.maps
    )
    return "\n\n".join([heading, *blocks, colour_scale(end, has_overflow, depth)])


def _thumbnail(name: str, intensities: Array, depth: ColourDepth) -> str:
    rows, columns = (min(size, MAX_SIDE) for size in intensities.shape)
    pooled = max_pool(intensities, rows, columns)
    if depth == "plain":  # two characters per cell are about a square
        lines = ["".join(2 * shade(x) for x in row) for row in pooled.tolist()]
        return "\n".join([name, *(f"|{line}|" for line in lines)])
    return "\n".join([name, *draw_lines(pooled, depth)])


def _join(maps: list[str], width: int) -> list[str]:
    """Put maps side by side, as many as fit into a width, in one block of lines each."""
    columns = max(display_width(line) for drawn in maps for line in drawn.splitlines())
    per_block = max(1, (width + GAP) // (columns + GAP))
    return [
        reduce(lambda left, right: side_by_side(left, right, GAP), maps[first : first + per_block])
        for first in range(0, len(maps), per_block)
    ]
