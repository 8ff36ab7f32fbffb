"""Heat maps that the figures share: matrices with values in the cells, and maps over words."""

from collections.abc import Iterable, Sequence
from math import isnan
from typing import TYPE_CHECKING, Any

from regard.viz import (
    QUERY_KEY,
    add_axis_titles,
    contrast_colour,
    font_families,
    label_matrix,
    outline_cells,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage

DIVERGING = "RdBu_r"  # for values of both signs; weights are drawn in cividis
MASKED_CELL: dict[str, Any] = {
    "facecolor": "#f1f2f5",
    "edgecolor": "#b3b8c2",
    "hatch": "/////",
    "linewidth": 0,
}


def matrix_heatmap(
    axes: "Axes",
    values: Any,
    rows: Sequence[str] = (),
    columns: Sequence[str] = (),
    *,
    title: str = "",
    vmax: float | None = None,
    diverging: bool = False,
    cell_format: str = "",
    square: bool = True,
) -> "AxesImage":
    """Draw a matrix with row and column labels, and with values in the cells on request.

    Args:
        vmax: upper end of the colour scale, which starts at 0, or at -vmax if diverging; the
            largest absolute value by default.
        cell_format: format of the values in the cells, such as ".2f"; empty for none.
    """
    matrix = values.tolist()
    vmax = vmax or max(abs(value) for row in matrix for value in row) or 1.0
    vmin, colormap = (-vmax, DIVERGING) if diverging else (0.0, "cividis")
    image = axes.imshow(
        matrix, cmap=colormap, vmin=vmin, vmax=vmax, aspect="equal" if square else "auto"
    )
    axes.set_title(title)
    axes.set_xticks(range(len(columns)), columns, fontfamily=font_families())
    axes.set_yticks(range(len(rows)), rows, fontfamily=font_families())
    axes.tick_params(length=0, labelsize=8, labeltop=bool(columns), labelbottom=False)
    axes.spines[:].set_visible(False)
    if cell_format:
        _annotate_cells(axes, image, matrix, cell_format)
    return image


def _annotate_cells(axes: "Axes", image: "AxesImage", matrix: Any, cell_format: str) -> None:
    """Write each value in a readable colour; a bare 0 marks an exact zero."""
    for row, values in enumerate(matrix):
        for column, value in enumerate(values):
            red, green, blue, _ = image.to_rgba(value, bytes=True)
            background = (255, 255, 255) if isnan(value) else (int(red), int(green), int(blue))
            colour = [part / 255 for part in contrast_colour(background)]
            label = "NaN" if isnan(value) else format(value, cell_format) if value else "0"
            axes.text(column, row, label, ha="center", va="center", color=colour, fontsize=8)


def word_heatmap(
    axes: "Axes",
    weights: Any,
    queries: Sequence[str],
    keys: Sequence[str],
    *,
    title: str = "",
    axis_titles: tuple[str, str] = QUERY_KEY,
    gold: Iterable[tuple[int, int]] = (),
) -> "AxesImage":
    """Draw attention weights over words, on a scale from 0 to 1.

    `axis_titles` are what a row and what a column is; where rows have no labels, theirs is left
    out. Weights that are exactly 0 are masked and drawn hatched; `gold` are the (query, key) cells
    of the gold alignment, which are outlined.
    """
    from matplotlib.patches import Rectangle

    matrix = label_matrix(weights, queries, keys)
    image = matrix_heatmap(axes, weights, matrix.queries, matrix.keys, title=title, vmax=1.0)
    axes.tick_params(axis="x", labelrotation=90)
    rows, columns = axis_titles
    add_axis_titles(axes, (rows if any(queries) else "", columns), fontsize=8)
    for query, row in enumerate(matrix.weights.tolist()):
        for key, weight in enumerate(row):
            if weight == 0:
                axes.add_patch(Rectangle((key - 0.5, query - 0.5), 1, 1, **MASKED_CELL))
    outline_cells(axes, matrix, gold)
    return image
