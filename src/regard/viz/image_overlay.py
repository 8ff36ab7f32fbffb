"""Attention drawn over the image whose patches are its keys."""

from collections.abc import Sequence
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np

from regard.errors import RegardError
from regard.trace import Array, PatchImage, Rows, Trace
from regard.viz.fonts import font_families
from regard.viz.heatmap import new_figure, set_titles
from regard.viz.matrix import LabelledMatrix
from regard.viz.selected_head import group_maps, label_head, resolve_head
from regard.viz.text_layout import truncate

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure

PANELS_PER_ROW = 6
MAX_PANELS = 24  # queries that are drawn if none are named
PANEL_INCHES = 1.7
MAX_TITLE_COLUMNS = 18
HIGHLIGHT = "#ff7a59"
LUMINANCE = np.array([0.299, 0.587, 0.114])  # of red, green and blue


def plot_over_image(
    trace: Trace,
    kind: str | None = None,
    layer: int | None = None,
    head: int | None = None,
    *,
    queries: Sequence[int] | None = None,
    opacity: float = 0.6,
    rows: Rows = "output",
) -> "matplotlib.figure.Figure":
    """Plot one head over an image: a panel for each query, with the weights of its patches.

    The keys must be patches of an image of the trace (`Trace.images`), as in a vision Transformer,
    or in cross-attention from words or object queries to an image. If the queries are patches of
    the same image, each is outlined. The colour scale ends at the largest weight of a patch that is
    drawn: other tokens, such as a class token, may have more.

    Args:
        trace: the trace.
        kind: "self", "cross", …; by default the first attention whose keys have an image.
        layer: layer within that attention; by default that of the head.
        head: index of a head; by default the one that `analysis.select_head` selects.
        queries: positions of the queries to draw; by default the first 24.
        opacity: of the weights over the image, which is shown in grey, from 0 to 1.
        rows: how rows of a decoder's cross-attention are named.

    Returns:
        A figure, which a notebook displays and `savefig` writes.

    Raises:
        RegardError: if there is no such head or query, or the keys have no image.

    Example:
        >>> from dataclasses import replace
        >>> from regard.trace import build_translation_trace
        >>> trace = build_translation_trace("abcd", ["x"], cross=[[[[0.1, 0.2, 0.3, 0.4]]]])
        >>> trace = replace(trace, images={"source": PatchImage(np.zeros((8, 8)), grid=(2, 2))})
        >>> plot_over_image(trace).axes[0].get_title()
        'x'
    """
    if not 0 <= opacity <= 1:
        raise RegardError(f"opacity must be from 0 to 1, but it is {opacity}")
    group, layer, head = resolve_head(trace, kind or _kind_with_image(trace), layer, head)
    attention_map = group.maps[layer]
    image = trace.images.get(attention_map.keys)
    if image is None:
        raise RegardError(
            f"the keys of {attention_map.name} are {attention_map.keys!r}, which has no image; the "
            f"trace has images of: {', '.join(trace.images) or 'none'}"
        )
    matrix = label_head(trace, group.name, layer, head, rows=rows)
    chosen = _choose_queries(queries, len(matrix.queries))
    columns = min(PANELS_PER_ROW, len(chosen))
    num_rows = ceil(len(chosen) / columns)
    height = PANEL_INCHES * image.pixels.shape[0] / image.pixels.shape[1] + 0.35
    figure = new_figure(1.0 + PANEL_INCHES * columns, 0.9 + height * num_rows)
    panels = figure.subplots(num_rows, columns, squeeze=False)
    vmax = max(float(image.patch_values(matrix.weights[n]).max()) for n in chosen) or 1.0
    own_image = image if attention_map.queries == attention_map.keys else None
    drawn: Any = None
    for axes, query in zip(panels.flat, chosen, strict=False):
        drawn = _plot_panel(axes, matrix, image, query, opacity, vmax)
        if own_image is not None:
            _outline_patch(axes, own_image, query)
    for axes in panels.flat[len(chosen) :]:
        axes.set_axis_off()
    bar = figure.colorbar(drawn, ax=panels, label="weight", fraction=0.05, shrink=0.9)
    bar.outline.set_visible(False)
    caption = matrix.caption
    if queries is None and len(chosen) < len(matrix.queries):
        caption += f" · the first {len(chosen)} of {len(matrix.queries)} queries"
    set_titles(figure, matrix.title, caption)
    return figure


def _kind_with_image(trace: Trace) -> str | None:
    """Return the name of the first attention whose keys have an image."""
    names = (g.name for g in group_maps(trace) if g.maps[0].keys in trace.images)
    return next(names, None)


def _choose_queries(queries: Sequence[int] | None, count: int) -> list[int]:
    if queries is None:
        return list(range(min(count, MAX_PANELS)))
    chosen = list(queries)
    if not chosen or not all(0 <= n < count for n in chosen):
        raise RegardError(f"queries must be positions from 0 to {count - 1}, but they are {chosen}")
    return chosen


def _plot_panel(
    axes: "matplotlib.axes.Axes",
    matrix: LabelledMatrix,
    image: PatchImage,
    query: int,
    opacity: float,
    vmax: float,
) -> Any:
    """Plot the image, and the weights of a query over it."""
    height, width, _ = image.pixels.shape
    extent = (0.0, float(width), float(height), 0.0)
    weights: Array = image.patch_values(matrix.weights[query])
    grey = image.pixels @ LUMINANCE
    axes.imshow(grey, cmap="gray", vmin=0, vmax=255, extent=extent, interpolation="nearest")
    drawn = axes.imshow(
        weights,
        cmap="cividis",
        vmin=0.0,
        vmax=vmax,
        alpha=opacity,
        extent=extent,
        interpolation="nearest",
    )
    title = truncate(matrix.queries[query], MAX_TITLE_COLUMNS)
    axes.set_title(title, fontsize=9, parse_math=False, fontfamily=font_families())
    axes.set(xticks=[], yticks=[])
    from matplotlib.cm import ScalarMappable

    return ScalarMappable(drawn.norm, drawn.cmap)  # opaque, for the colour bar


def _outline_patch(axes: "matplotlib.axes.Axes", image: PatchImage, query: int) -> None:
    from matplotlib.patches import Rectangle

    patch = query - image.first
    if not 0 <= patch < image.num_patches:
        return  # a class token
    row, column = divmod(patch, image.grid[1])
    height, width = (size / n for size, n in zip(image.pixels.shape, image.grid, strict=False))
    corner = (column * width, row * height)
    style: dict[str, Any] = {"fill": False, "edgecolor": HIGHLIGHT, "linewidth": 1.8}
    axes.add_patch(Rectangle(corner, width, height, **style))
