"""Weights as a figure for a page: a heat map in PNG, SVG or PDF."""

from collections.abc import Iterable, Sequence
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings, filterwarnings

from regard.errors import RegardError
from regard.viz.colour import cividis, contrast_colour
from regard.viz.columns import columns, cut, wrapped
from regard.viz.fonts import font_families, missing_glyphs
from regard.viz.grid import Grid, Matrix, grid, number, safe

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure
    import matplotlib.image

MOST_NUMBERS = 12  # a map of more rows or columns than this shows colours only
# inches
ROOMY, TIGHT = 0.6, 0.25  # cells with and without a number
LONGEST_SIDE = 24.0  # of the map; its cells shrink to stay within
WORD_APART = 0.17  # least distance of two words of 10 points
COLUMN = 0.085  # width of a letter of 10 points
LONGEST_WORD = 24  # columns; the rest of a longer one is cut
NARROWEST_TITLE = 40  # columns, also of a figure that is narrower
TITLE_LINES = 3


def plot_heatmap(
    weights: Matrix,
    queries: Sequence[str],
    keys: Sequence[str],
    *,
    title: str | None = None,
    top: float | None = None,
    caption: str | None = None,
    marked: Iterable[tuple[int, int]] = (),
) -> "matplotlib.figure.Figure":
    """Draw where each query looks: a row per query, a column per key.

    `top` is the weight at the end of the colour scale, 1 by default; `marked` are cells
    (query, key) to outline, and the caption stands below.
    """
    chart = grid(weights, queries, keys, top)
    cell = _cell(chart)
    across, up = _reach(chart.queries), 0.0 if _fits(chart) else _reach(chart.keys)
    # the rest is for the scale and the three titles
    figure = new_figure(1.9 + across + cell * len(chart.keys), 1.3 + up + cell * len(chart.queries))
    axes = figure.add_subplot()
    image = axes.imshow(chart.rows, cmap="cividis", vmin=0.0, vmax=chart.top)
    _write_words(axes, chart)
    if _is_small(chart):
        _write_numbers(axes, chart)
    outline_cells(axes, chart, marked)
    _add_scale(image, axes, chart)
    set_titles(figure, title, caption)
    return figure


def save_figure(figure: "matplotlib.figure.Figure", path: Path, kind: str | None = None) -> None:
    """Write a figure to a file, in a format or that of the file's ending (PNG if it has none)."""
    from matplotlib import rc_context
    from matplotlib.text import Text

    kind = kind or path.suffix[1:].lower() or "png"
    known = figure.canvas.get_supported_filetypes()
    if kind not in known:
        choices = ", ".join(sorted(known))
        raise RegardError(f"no picture format is called {kind!r} ({path}). Choose from: {choices}.")
    unknown = missing_glyphs(text.get_text() for text in figure.findobj(Text))
    if unknown and kind not in ("svg", "svgz"):
        raise RegardError(
            f"no font of this computer has {unknown[:20]!r}, and {path} would show boxes; an .svg "
            "or .html is shown in its reader's fonts, and so would do, or install Noto Sans CJK"
        )
    try:
        with rc_context({"svg.fonttype": "none"}), catch_warnings():  # text stays text
            filterwarnings("ignore", "Glyph .* missing from", UserWarning)
            figure.savefig(path, format=kind, dpi=160, bbox_inches="tight")
    except OSError as error:
        raise RegardError(f"cannot write {path}: {error.strerror}") from error


def new_figure(width: float, height: float) -> "matplotlib.figure.Figure":
    """Open an empty figure of so many inches."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise RegardError(
            "a figure is drawn by matplotlib, which is not installed; "
            "pip install 'regard[pictures]' would do"
        ) from error
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)  # no pyplot: nothing is kept alive, no window is opened
    return figure


def set_titles(figure: "matplotlib.figure.Figure", title: str | None, caption: str | None) -> None:
    """Write the title above and the caption below."""
    style: dict[str, Any] = {"parse_math": False, "fontfamily": font_families()}
    width = figure.get_size_inches()[0]
    if title:
        figure.suptitle(_broken(title, width / (1.2 * COLUMN)), **style)  # of 12 points
    if caption:
        figure.supxlabel(_broken(caption, width / COLUMN), fontsize="medium", **style)


def _broken(text: str, room: float) -> str:
    """Break a title into lines as wide as its figure, and cut what is more than a few."""
    return "\n".join(wrapped(safe(text), max(int(room), NARROWEST_TITLE), TITLE_LINES))


def outline_cells(
    axes: "matplotlib.axes.Axes", chart: Grid, cells: Iterable[tuple[int, int]]
) -> None:
    """Draw a frame within cells (query, key), in the ink that their colour wants."""
    from matplotlib.patches import Rectangle

    for query, key in cells:
        colour = _ink(chart.rows[query][key] / chart.top)
        corner = (key - 0.42, query - 0.42)
        axes.add_patch(Rectangle(corner, 0.84, 0.84, fill=False, edgecolor=colour, linewidth=1.2))


def _is_small(chart: Grid) -> bool:
    return max(len(chart.queries), len(chart.keys)) <= MOST_NUMBERS


def _cell(chart: Grid) -> float:
    """Give the side of a cell in inches."""
    longest = max(len(chart.queries), len(chart.keys))
    return ROOMY if _is_small(chart) else min(TIGHT, LONGEST_SIDE / longest)


def _reach(words: Sequence[str]) -> float:
    """Give the length of the longest word in inches."""
    return COLUMN * min(max(map(columns, words)), LONGEST_WORD)


def _every(chart: Grid) -> int:
    """Tell which words there is room to show: every one, every second, ..."""
    return ceil(WORD_APART / _cell(chart))


def _fits(chart: Grid) -> bool:
    """Key words stay upright; otherwise they are turned."""
    return _reach(chart.keys) + COLUMN <= _cell(chart) * _every(chart)


def _write_words(axes: "matplotlib.axes.Axes", chart: Grid) -> None:
    every = _every(chart)
    queries = [cut(word, LONGEST_WORD) for word in chart.queries[::every]]
    keys = [cut(word, LONGEST_WORD) for word in chart.keys[::every]]
    # a word is never markup: "$" would start a formula
    style: dict[str, Any] = {"parse_math": False, "fontfamily": font_families()}
    turn: dict[str, Any] = {"rotation": 60, "ha": "left", "rotation_mode": "anchor"}
    axes.set_yticks(range(0, len(chart.queries), every), queries, **style)
    axes.set_xticks(
        range(0, len(chart.keys), every), keys, **style, **({} if _fits(chart) else turn)
    )
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.tick_params(length=0)
    axes.set(xlabel="key: is looked at", ylabel="query: looks")


def _write_numbers(axes: "matplotlib.axes.Axes", chart: Grid) -> None:
    for query, row in enumerate(chart.rows):
        for key, weight in enumerate(row):
            colour = _ink(weight / chart.top)
            axes.text(key, query, number(weight), ha="center", va="center", color=colour)


def _ink(share: float) -> tuple[float, float, float]:
    red, green, blue = contrast_colour(cividis(share))
    return red / 255, green / 255, blue / 255


def _add_scale(
    image: "matplotlib.image.AxesImage", axes: "matplotlib.axes.Axes", chart: Grid
) -> None:
    """Put the colour bar beside the map, as high as the map; a tip says that weights go beyond."""
    inch = 1 / (_cell(chart) * len(chart.keys))  # as a share of the map's width
    beside = axes.inset_axes((1 + 0.2 * inch, 0, 0.17 * inch, 1))
    extend = "max" if chart.overflows else "neither"
    axes.figure.colorbar(image, cax=beside, label="weight", extend=extend)
