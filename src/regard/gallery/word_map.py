"""A small map of where words look: gold alignments outlined, what a mask hides hatched."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from regard.gallery.plots import cells
from regard.viz.grid import grid
from regard.viz.heatmap import outline_cells

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage

HIDDEN: dict[str, Any] = {
    "facecolor": "#f1f2f5",
    "edgecolor": "#b3b8c2",
    "hatch": "/////",
    "linewidth": 0,
}


def word_map(
    axes: "Axes",
    weights: Any,
    queries: Sequence[str],
    keys: Sequence[str],
    *,
    title: str = "",
    gold: Iterable[tuple[int, int]] = (),
) -> "AxesImage":
    """Draw weights from 0 to 1; a weight that is exactly zero is hidden, and so hatched.

    Gold are cells (query, key).
    """
    from matplotlib.patches import Rectangle

    chart = grid(weights, queries, keys)
    image = cells(axes, weights, chart.queries, chart.keys, title=title, top=1.0)
    axes.tick_params(axis="x", labelrotation=90)
    for query, row in enumerate(chart.rows):
        for key, weight in enumerate(row):
            if weight == 0:
                axes.add_patch(Rectangle((key - 0.5, query - 0.5), 1, 1, **HIDDEN))
    outline_cells(axes, chart, gold)
    return image
