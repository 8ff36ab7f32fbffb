"""The panel that figures are made of: a matrix as a map, with its numbers written in the cells."""

from collections.abc import Sequence
from math import isnan
from typing import TYPE_CHECKING, Any

from regard.viz.colour import WHITE, contrast_colour
from regard.viz.fonts import font_families

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.image

SIGNED = "RdBu_r"  # of numbers below and above 0; weights are drawn in cividis


def cells(
    axes: "matplotlib.axes.Axes",
    numbers: Any,
    rows: Sequence[str] = (),
    columns: Sequence[str] = (),
    *,
    title: str = "",
    top: float | None = None,
    signed: bool = False,
    written: str = "",
    square: bool = True,
) -> "matplotlib.image.AxesImage":
    """Draw a matrix, rows and columns named; `written` is the format of numbers in the cells.

    Colours run from 0 to `top` (the greatest number by default), or from -top if `signed`.
    """
    matrix = numbers.tolist()
    top = top or max(abs(number) for row in matrix for number in row) or 1.0
    low, map_name = (-top, SIGNED) if signed else (0.0, "cividis")
    image = axes.imshow(
        matrix, cmap=map_name, vmin=low, vmax=top, aspect="equal" if square else "auto"
    )
    axes.set_title(title)
    axes.set_xticks(range(len(columns)), columns, fontfamily=font_families())
    axes.set_yticks(range(len(rows)), rows, fontfamily=font_families())
    axes.tick_params(length=0, labelsize=8, labeltop=bool(columns), labelbottom=False)
    axes.spines[:].set_visible(False)
    if written:
        _write(axes, image, matrix, written)
    return image


def _write(
    axes: "matplotlib.axes.Axes", image: "matplotlib.image.AxesImage", matrix: Any, written: str
) -> None:
    """Write each number in the ink that its colour wants; a plain 0 is exactly zero."""
    for row, line in enumerate(matrix):
        for column, number in enumerate(line):
            red, green, blue, _ = image.to_rgba(number, bytes=True)
            paper = WHITE if isnan(number) else (int(red), int(green), int(blue))
            colour = [part / 255 for part in contrast_colour(paper)]
            label = "NaN" if isnan(number) else format(number, written) if number else "0"
            axes.text(column, row, label, ha="center", va="center", color=colour, fontsize=8)
