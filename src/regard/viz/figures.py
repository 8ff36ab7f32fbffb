"""Matplotlib figures of a trace: one head, a layer, all heads, or the three attentions."""

from collections.abc import Sequence
from dataclasses import replace
from math import ceil
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len

from regard._support.text import escape_control
from regard.errors import RegardError
from regard.trace import Rows, Trace
from regard.viz.fonts import font_families
from regard.viz.half_blocks import max_pool
from regard.viz.heatmap import CHARACTER_INCHES as TITLE_CHARACTER_INCHES
from regard.viz.heatmap import (
    MIN_TITLE_COLUMNS,
    add_axis_titles,
    new_figure,
    outline_cells,
    plot_matrix,
    set_titles,
)
from regard.viz.matrix import LabelledMatrix
from regard.viz.selected_head import (
    axis_titles,
    caption,
    find_group,
    group_maps,
    label_head,
    resolve_head,
)
from regard.viz.text_layout import truncate

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure

HEADS_PER_ROW = 4
LABEL_PITCH_INCHES = 0.18  # from one label of 8 points to the next
CHARACTER_INCHES = 0.07  # width of a character of 8 points
PANEL_INCHES = (1.4, 4.2)  # least and greatest side of one map among several
THUMBNAIL_INCHES = (0.45, 1.3)  # the same, if all heads are shown
MAX_LABEL_COLUMNS = 12
PANEL_TITLES_INCHES = 0.6  # height of a panel's title and of its axis titles
MIN_WIDTH_INCHES = MIN_TITLE_COLUMNS * TITLE_CHARACTER_INCHES  # of a figure, for its caption
PANEL_CELLS_PER_INCH = 40  # at 100 pixels per inch, the frame hides less than half a cell
ALL_HEADS_INCHES = 16.0  # width to which thumbnails shrink

GOLD_NOTE = "outlined: gold alignment"
OWN_SCALE_NOTE = "maps with (0–…) have colours up to their largest weight"


def plot_head(
    trace: Trace,
    kind: str | None = None,
    layer: int | None = None,
    head: int | None = None,
    *,
    rows: Rows = "output",
    vmax: float | None = None,
) -> "matplotlib.figure.Figure":
    """Plot one head with labels and numbers; the gold alignment is outlined.

    Args:
        trace: the trace.
        kind: "encoder", "decoder", "cross", …; by default cross-attention, else the first.
        layer: layer within that attention; -1 is the last. By default that of the head.
        head: index of a head; by default the one that `analysis.select_head` selects.
        rows: "output" names rows of a decoder's cross-attention by the word written there, "input"
            by the word read there.
        vmax: weight at the end of the colour scale; by default 1, or the largest weight if that is
            below 0.5.

    Returns:
        A figure, which a notebook displays and `savefig` or `save_figure` writes.

    Raises:
        RegardError: if there is no such head, or matplotlib is not installed.

    Example:
        >>> from regard.trace import build_translation_trace
        >>> trace = build_translation_trace(["the", "cat"], ["chat"], cross=[[[[0.25, 0.75]]]])
        >>> plot_head(trace, "cross", layer=0, head=0).savefig("head.png")
    """
    matrix = label_head(trace, kind, layer, head, vmax, rows)
    return plot_matrix(replace(matrix, caption=_with_gold_note(matrix.caption, [matrix])))


def plot_layer(
    trace: Trace,
    kind: str | None = None,
    layer: int | None = None,
    *,
    rows: Rows = "output",
    vmax: float | None = None,
) -> "matplotlib.figure.Figure":
    """Plot all heads of one layer.

    Args:
        trace: the trace.
        kind: as for `plot_head`.
        layer: as for `plot_head`; by default that of the head that `analysis.select_head` selects.
        rows: as for `plot_head`.
        vmax: as for `plot_head`.

    Returns:
        A figure with one map for each head.

    Raises:
        RegardError: if there is no such layer, or matplotlib is not installed.

    Example:
        >>> from regard.trace import build_translation_trace
        >>> heads = [[[0.25, 0.75]], [[0.5, 0.5]]]
        >>> trace = build_translation_trace(["the", "cat"], ["chat"], cross=[heads])
        >>> [axes.get_title() for axes in plot_layer(trace, "cross", 0).axes[:2]]
        ['head 0', 'head 1']
    """
    group, layer, _ = resolve_head(trace, kind, layer)
    heads = group.maps[layer].heads
    matrices = [label_head(trace, group.name, layer, head, vmax, rows) for head in heads]
    panels = [matrices[n : n + HEADS_PER_ROW] for n in range(0, len(matrices), HEADS_PER_ROW)]
    titles = [f"head {head}" for head in heads]
    note = _with_gold_note(caption(trace, group.name, layer), matrices)
    return _plot_panels(panels, titles, trace.title, note, _panel_inches(matrices))


def plot_all_heads(
    trace: Trace,
    kind: str | None = None,
    *,
    rows: Rows = "output",
    vmax: float | None = None,
) -> "matplotlib.figure.Figure":
    """Plot all layers and heads of one attention as thumbnails, one row per layer.

    Args:
        trace: the trace.
        kind: as for `plot_head`.
        rows: as for `plot_head`; thumbnails have no labels, but the caption names the rows.
        vmax: as for `plot_head`.

    Returns:
        A figure whose maps are named layer.head.

    Raises:
        RegardError: if there is no such attention, or matplotlib is not installed.

    Example:
        >>> from regard.trace import build_translation_trace
        >>> layer = [[[0.25, 0.75]], [[0.5, 0.5]]]
        >>> trace = build_translation_trace(["the", "cat"], ["chat"], cross=[layer, layer])
        >>> [axes.get_title() for axes in plot_all_heads(trace).axes[:4]]
        ['0.0', '0.1', '1.0', '1.1']
    """
    group = find_group(trace, kind)
    panels = [
        [label_head(trace, group.name, layer, head, vmax, rows) for head in layer_map.heads]
        for layer, layer_map in enumerate(group.maps)
    ]
    titles = [f"{layer}.{head}" for layer, m in enumerate(group.maps) for head in m.heads]
    smallest, largest = THUMBNAIL_INCHES
    side = min(largest, max(smallest, ALL_HEADS_INCHES / max(map(len, panels))))
    axes = "  ".join(axis_titles(group.maps[0], rows))
    note = f"{caption(trace, group.name)}: layer.head · {axes}"
    return _plot_panels(panels, titles, trace.title, note, side, has_labels=False)


def plot_translation(
    trace: Trace,
    layer: int | None = None,
    head: int | None = None,
    *,
    rows: Rows = "output",
    vmax: float | None = None,
) -> "matplotlib.figure.Figure":
    """Plot encoder, decoder and cross-attention of a translation, a head of each, side by side.

    Args:
        trace: the trace.
        layer: as for `plot_head`.
        head: as for `plot_head`.
        rows: as for `plot_head`.
        vmax: as for `plot_head`.

    Returns:
        A figure with one map for each attention.

    Raises:
        RegardError: if there is no such head, or matplotlib is not installed.

    Example:
        >>> from regard.trace import build_translation_trace
        >>> trace = build_translation_trace(
        ...     ["the", "cat"],
        ...     ["chat"],
        ...     encoder=[[[[0.5, 0.5], [0.1, 0.9]]]],
        ...     decoder=[[[[1.0]]]],
        ...     cross=[[[[0.25, 0.75]]]],
        ... )
        >>> [axes.get_title() for axes in plot_translation(trace).axes[:2]]
        ['Encoder · layer 0, head 0', 'Decoder · layer 0, head 0']
    """
    groups = group_maps(trace)[:3]
    if not groups:
        raise RegardError("the trace has no attention maps, so there is nothing to draw")
    matrices = [label_head(trace, group.name, layer, head, vmax, rows) for group in groups]
    titles = [matrix.caption.removeprefix(f"{trace.model} · ") for matrix in matrices]
    note = _with_gold_note(trace.model, matrices)
    return _plot_panels([matrices], titles, trace.title, note, _panel_inches(matrices))


def _with_gold_note(note: str, matrices: Sequence[LabelledMatrix]) -> str:
    has_gold = any(matrix.outlined for matrix in matrices)
    return f"{note} ({GOLD_NOTE})".strip() if has_gold else note


def _panel_inches(matrices: Sequence[LabelledMatrix]) -> float:
    smallest, largest = PANEL_INCHES
    longest = max(matrix.longest_side for matrix in matrices)
    return min(max(LABEL_PITCH_INCHES * longest, smallest), largest)


def _plot_panels(
    rows: Sequence[Sequence[LabelledMatrix]],
    titles: Sequence[str],
    title: str,
    note: str,
    side: float,
    has_labels: bool = True,
) -> "matplotlib.figure.Figure":
    """Plot maps in rows, with one colour bar; maps of small weights have their own scale."""
    columns = max(map(len, rows))
    labels = [label for row in rows for m in row for label in m.queries + m.keys]
    longest = min(max(map(cell_len, labels)), MAX_LABEL_COLUMNS)
    margin = CHARACTER_INCHES * longest if has_labels else 0.0
    titles_inches = PANEL_TITLES_INCHES if has_labels else 0.3
    width, height = columns * (side + margin + 0.15), len(rows) * (side + margin + titles_inches)
    figure = new_figure(max(1.2 + width, MIN_WIDTH_INCHES), 1.0 + height)
    panels = figure.subplots(len(rows), columns, squeeze=False)
    remaining_titles = iter(titles)
    bar_matrix = max((m for row in rows for m in row), key=lambda matrix: matrix.vmax)
    image: Any = None
    for row, row_panels in zip(rows, panels, strict=True):
        for n, axes in enumerate(row_panels):
            if n >= len(row):
                axes.set_axis_off()
                continue
            drawn = _plot_panel(axes, row[n], next(remaining_titles), bar_matrix.vmax, side)
            image = drawn if row[n] is bar_matrix else image
            if has_labels:
                _add_labels(axes, row[n], side)
            else:
                axes.set(xticks=[], yticks=[])
    bar = figure.colorbar(image, ax=panels, label="weight", fraction=0.05, shrink=0.8, aspect=30)
    bar.outline.set_visible(False)
    if any(m.vmax < bar_matrix.vmax for row in rows for m in row):
        note = f"{note} · {OWN_SCALE_NOTE}".removeprefix(" · ")
    set_titles(figure, title, note)
    return figure


def _plot_panel(
    axes: "matplotlib.axes.Axes", matrix: LabelledMatrix, title: str, bar_vmax: float, side: float
) -> Any:
    """Plot a map; its title has the end of its colour scale where that is not the colour bar's.

    Of a map with more cells than pixels, each pixel shows the largest weight it covers: a mean, or
    every nth cell, would lose a line that is one cell wide.
    """
    if matrix.vmax < bar_vmax:
        title = f"{title} (0–{matrix.vmax:.2g})"
    queries, keys = matrix.weights.shape
    cells = int(side * PANEL_CELLS_PER_INCH)
    image = axes.imshow(
        max_pool(matrix.weights, min(queries, cells), min(keys, cells)),
        cmap="cividis",
        vmin=0.0,
        vmax=matrix.vmax,
        extent=(-0.5, keys - 0.5, queries - 0.5, -0.5),
        interpolation="nearest",
    )
    font: dict[str, Any] = {"parse_math": False, "fontfamily": font_families()}
    axes.set_title(escape_control(title), fontsize="small", **font)
    axes.tick_params(length=0, labelsize=8)
    return image


def _add_labels(axes: "matplotlib.axes.Axes", matrix: LabelledMatrix, side: float) -> None:
    """Label as many rows and columns as have space, and outline gold cells if all have."""
    step = ceil(LABEL_PITCH_INCHES * matrix.longest_side / side)
    style: dict[str, Any] = {"parse_math": False, "fontfamily": font_families()}
    queries = [truncate(label, MAX_LABEL_COLUMNS) for label in matrix.queries[::step]]
    keys = [truncate(label, MAX_LABEL_COLUMNS) for label in matrix.keys[::step]]
    axes.set_yticks(range(0, len(matrix.queries), step), queries, **style)
    axes.set_xticks(range(0, len(matrix.keys), step), keys, rotation=90, **style)
    axes.xaxis.tick_top()  # below their title, as in a figure of one head
    add_axis_titles(axes, matrix.axis_titles, fontsize=8)
    if step == 1:
        outline_cells(axes, matrix, matrix.outlined)
