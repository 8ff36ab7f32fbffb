"""Attention weights as a matplotlib figure: one labelled heat map, saved as PNG, SVG or PDF."""

from collections.abc import Iterable, Sequence
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings, filterwarnings

from rich.cells import cell_len

from regard._support.extras import needs_extra
from regard._support.files import atomic_write
from regard._support.text import escape_control
from regard.errors import RegardError
from regard.viz.colour import NORMALISED_NOTE, cividis, contrast_colour
from regard.viz.fonts import font_families, missing_glyphs
from regard.viz.matrix import (
    QUERY_KEY,
    AxisTitles,
    LabelledMatrix,
    format_weight,
    label_matrix,
)
from regard.viz.text_layout import truncate, wrap

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure
    import matplotlib.image

MAX_NUMBERED_SIDE = 12  # a map with more rows or columns shows no numbers
MIN_NUMBERED_WEIGHT = 0.005  # a smaller one would be written as 0.00; its cell stays empty
NUMBERED_CELL_INCHES, PLAIN_CELL_INCHES = 0.6, 0.25
MAX_SIDE_INCHES = 24.0  # of the map; its cells shrink to stay within
LABEL_PITCH_INCHES = 0.17  # least distance of two labels of 10 points
CHARACTER_INCHES = 0.085  # width of a character of 10 points
MAX_LABEL_COLUMNS = 24  # a longer label is truncated
MIN_TITLE_COLUMNS = 40  # even if the figure is narrower
MAX_TITLE_LINES = 3
AXIS_TITLE_COLOUR = "#555555"


def plot_heatmap(
    weights: Any,
    queries: Sequence[str],
    keys: Sequence[str],
    *,
    title: str | None = None,
    axis_titles: AxisTitles = QUERY_KEY,
    vmax: float | None = None,
    caption: str | None = None,
    outlined: Iterable[tuple[int, int]] = (),
) -> "matplotlib.figure.Figure":
    """Plot a heat map: one row per query, one column per key.

    Args:
        weights: one matrix (query, key), as a tensor, an array or nested lists.
        queries: labels of the rows.
        keys: labels of the columns.
        title: text above the map.
        axis_titles: what a row and what a column is.
        vmax: weight at the end of the colour scale; by default 1, or the largest weight if that is
            below 0.5.
        caption: text below the map.
        outlined: cells (query, key) to outline, such as a gold alignment.

    Returns:
        A figure, which a notebook displays and `savefig` or `save_figure` writes.

    Raises:
        RegardError: if labels and weights do not fit together, a cell to outline is not in the
            matrix, or matplotlib is not installed.

    Example:
        >>> figure = plot_heatmap([[0.25, 0.75]], ["chat"], ["the", "cat"])
        >>> [label.get_text() for label in figure.axes[0].get_xticklabels()]
        ['the', 'cat']
    """
    matrix = label_matrix(
        weights,
        queries,
        keys,
        vmax,
        title=title or "",
        caption=caption or "",
        outlined=tuple(outlined),
        axis_titles=axis_titles,
    )
    return plot_matrix(matrix)


def plot_matrix(matrix: LabelledMatrix) -> "matplotlib.figure.Figure":
    """Plot a labelled matrix as a heat map."""
    cell = _cell_inches(matrix)
    left = _label_inches((*matrix.queries, matrix.axis_titles[0]))
    above = 0.0 if _fits_upright(matrix) else _label_inches(matrix.keys)
    queries, keys = matrix.weights.shape
    # The constants leave space for the colour bar and for the axis titles.
    width = max(1.9 + left + cell * keys, MIN_TITLE_COLUMNS * CHARACTER_INCHES)
    figure = new_figure(width, 1.3 + above + cell * queries)
    axes = figure.add_subplot()
    image = axes.imshow(matrix.weights, cmap="cividis", vmin=0.0, vmax=matrix.vmax)
    _add_labels(axes, matrix)
    if _is_small(matrix):
        _add_numbers(axes, matrix)
    outline_cells(axes, matrix, matrix.outlined)
    _add_colour_bar(image, axes, matrix)
    caption = matrix.caption
    if matrix.is_normalised and not _bar_has_note(matrix):
        caption = " · ".join(filter(None, (caption, f"colours {NORMALISED_NOTE}")))
    set_titles(figure, matrix.title, caption)
    return figure


def save_figure(
    figure: "matplotlib.figure.Figure", path: Path | str, format: str | None = None
) -> None:
    """Write a figure to a file.

    Args:
        figure: the figure.
        path: where to write it.
        format: "png", "svg", "pdf", …; by default that of the file's extension, or PNG.

    Raises:
        RegardError: if the format is unknown, no font has some character, or writing fails.

    Example:
        >>> figure = plot_heatmap([[0.25, 0.75]], ["chat"], ["the", "cat"])
        >>> save_figure(figure, Path("head.svg"))
        >>> Path("head.svg").read_text(encoding="utf-8")[:5]
        '<?xml'
    """
    from matplotlib import rc_context
    from matplotlib.text import Text

    path = Path(path)
    format = format or path.suffix[1:].lower() or "png"
    formats = figure.canvas.get_supported_filetypes()
    if format not in formats:
        choices = ", ".join(sorted(formats))
        raise RegardError(f"no picture format is called {format!r} ({path}). Choose: {choices}.")
    missing = missing_glyphs(text.get_text() for text in figure.findobj(Text))
    if missing and format not in ("svg", "svgz"):
        raise RegardError(
            f"no installed font has {missing[:20]!r}, so {path} would show boxes; save an .svg or "
            ".html, which use the reader's fonts, or install Noto Sans CJK"
        )
    with (
        atomic_write(path, make_folder=False) as temp,
        rc_context({"svg.fonttype": "none"}),  # text stays text
        catch_warnings(),
    ):
        filterwarnings("ignore", "Glyph .* missing from", UserWarning)
        figure.savefig(temp, format=format, dpi=160, bbox_inches="tight")


def new_figure(width: float, height: float) -> "matplotlib.figure.Figure":
    """Return an empty figure of a size in inches, without pyplot: no window, no global state."""
    with needs_extra("pictures", "figures need"):
        from regard.viz.notebook_figure import NotebookFigure

        return NotebookFigure(width, height)


def set_titles(figure: "matplotlib.figure.Figure", title: str | None, caption: str | None) -> None:
    """Write a title above and a caption below a figure."""
    style: dict[str, Any] = {"parse_math": False, "fontfamily": font_families()}
    width = figure.get_size_inches()[0]
    if title:
        # 12 points are 1.2 times as wide as 10.
        figure.suptitle(_wrap_title(title, width / (1.2 * CHARACTER_INCHES)), **style)
    if caption:
        wrapped = _wrap_title(caption, width / CHARACTER_INCHES)
        figure.supxlabel(wrapped, fontsize="medium", **style)


def outline_cells(
    axes: "matplotlib.axes.Axes", matrix: LabelledMatrix, cells: Iterable[tuple[int, int]]
) -> None:
    """Outline cells (query, key), in black or white as their colour requires."""
    from matplotlib.patches import Rectangle

    for query, key in cells:
        colour = _contrast_rgb(float(matrix.weights[query, key]) / matrix.vmax)
        corner = (key - 0.42, query - 0.42)
        axes.add_patch(Rectangle(corner, 0.84, 0.84, fill=False, edgecolor=colour, linewidth=1.2))


def _wrap_title(text: str, columns: float) -> str:
    """Wrap a title to the width of its figure, and truncate it after a few lines."""
    width = max(int(columns), MIN_TITLE_COLUMNS)
    return "\n".join(wrap(escape_control(text), width, MAX_TITLE_LINES))


def _is_small(matrix: LabelledMatrix) -> bool:
    return matrix.longest_side <= MAX_NUMBERED_SIDE


def _cell_inches(matrix: LabelledMatrix) -> float:
    """Return the side of a cell."""
    if _is_small(matrix):
        return NUMBERED_CELL_INCHES
    return min(PLAIN_CELL_INCHES, MAX_SIDE_INCHES / matrix.longest_side)


def _label_inches(labels: Sequence[str]) -> float:
    """Return the length of the longest label."""
    return CHARACTER_INCHES * min(max(map(cell_len, labels)), MAX_LABEL_COLUMNS)


def _label_step(matrix: LabelledMatrix) -> int:
    """Return how many cells a label takes: every label is shown, or every second, …"""
    return ceil(LABEL_PITCH_INCHES / _cell_inches(matrix))


def _fits_upright(matrix: LabelledMatrix) -> bool:
    """Return whether key labels fit without rotation."""
    available = _cell_inches(matrix) * _label_step(matrix)
    return _label_inches(matrix.keys) + CHARACTER_INCHES <= available


def _add_labels(axes: "matplotlib.axes.Axes", matrix: LabelledMatrix) -> None:
    step = _label_step(matrix)
    queries = [truncate(label, MAX_LABEL_COLUMNS) for label in matrix.queries[::step]]
    keys = [truncate(label, MAX_LABEL_COLUMNS) for label in matrix.keys[::step]]
    # Labels are never markup: "$" would start a formula.
    style: dict[str, Any] = {"parse_math": False, "fontfamily": font_families()}
    rotated: dict[str, Any] = {"rotation": 60, "ha": "left", "rotation_mode": "anchor"}
    axes.set_yticks(range(0, len(matrix.queries), step), queries, **style)
    rotation = {} if _fits_upright(matrix) else rotated
    axes.set_xticks(range(0, len(matrix.keys), step), keys, **style, **rotation)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    add_axis_titles(axes, matrix.axis_titles)


def add_axis_titles(
    axes: "matplotlib.axes.Axes", titles: AxisTitles, fontsize: int | None = None
) -> None:
    """Write what a row is above the row labels, and what a column is above the column labels.

    Both are upright: turned by 90 degrees, an arrow would point elsewhere.
    """
    from matplotlib.transforms import ScaledTranslation

    style: dict[str, Any] = {"parse_math": False, "fontfamily": font_families()}
    style |= {"color": AXIS_TITLE_COLOUR, "fontsize": fontsize}
    rows, columns = titles
    offset = ScaledTranslation(-5 / 72, 7 / 72, axes.figure.dpi_scale_trans)  # in points
    axes.set_ylabel(rows, rotation=0, ha="right", va="baseline", **style)
    axes.yaxis.set_label_coords(0, 1, transform=axes.transAxes + offset)
    axes.xaxis.set_label_position("top")
    axes.set_xlabel(columns, loc="left", **style)


def _add_numbers(axes: "matplotlib.axes.Axes", matrix: LabelledMatrix) -> None:
    for query, row in enumerate(matrix.weights.tolist()):
        for key, weight in enumerate(row):
            if weight < MIN_NUMBERED_WEIGHT:
                continue
            colour = _contrast_rgb(weight / matrix.vmax)
            axes.text(key, query, format_weight(weight), ha="center", va="center", color=colour)


def _contrast_rgb(intensity: float) -> tuple[float, float, float]:
    red, green, blue = contrast_colour(cividis(intensity))
    return red / 255, green / 255, blue / 255


def _add_colour_bar(
    image: "matplotlib.image.AxesImage", axes: "matplotlib.axes.Axes", matrix: LabelledMatrix
) -> None:
    """Put the colour bar next to the map, as high as the map; an arrow shows overflow."""
    inch = 1 / (_cell_inches(matrix) * len(matrix.keys))  # as a share of the map's width
    bar_axes = axes.inset_axes((1 + 0.2 * inch, 0, 0.17 * inch, 1))
    extend = "max" if matrix.has_overflow else "neither"
    label = f"weight, {NORMALISED_NOTE}" if _bar_has_note(matrix) else "weight"
    axes.figure.colorbar(image, cax=bar_axes, label=label, extend=extend)


def _bar_has_note(matrix: LabelledMatrix) -> bool:
    """Return whether the scale was chosen for this map, and the bar is long enough to say so."""
    height = _cell_inches(matrix) * len(matrix.queries)
    return matrix.is_normalised and height >= CHARACTER_INCHES * len(f"weight, {NORMALISED_NOTE}")
