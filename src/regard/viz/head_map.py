"""Maps of layers × heads: one number per head, such as its importance or the effect of ablation."""

from collections.abc import Sequence
from math import floor, log10
from typing import TYPE_CHECKING, Any

import numpy as np

from regard._support.text import escape_control
from regard.errors import RegardError
from regard.trace import Array
from regard.viz.colour import contrast_colour
from regard.viz.fonts import font_families
from regard.viz.heatmap import add_axis_titles, new_figure, set_titles
from regard.viz.matrix import check_vmax

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure
    import matplotlib.image

AXIS_TITLES = ("layer ↓", "head →")
CELL_INCHES = 0.55
MAX_NUMBERED_SIDE = 16  # a map with more layers or heads shows no numbers
MAX_SIDE_INCHES = 12.0
MARGIN_INCHES = (2.2, 1.4)  # for labels, titles and colour bar
# cividis from 0 upwards; purple to orange if values have both signs, which readers with colour
# vision deficiency can distinguish, too
SEQUENTIAL, DIVERGING = "cividis", "PuOr_r"


def plot_head_map(
    values: Any,
    *,
    title: str = "",
    label: str = "",
    layers: Sequence[str] | None = None,
    vmax: float | None = None,
) -> "matplotlib.figure.Figure":
    """Plot one number per head: a row for each layer, a column for each head.

    Values from 0 upwards are coloured from 0 to the largest. If some are negative, the colours
    diverge from 0, with the same range on both sides.

    Args:
        values: (layer, head), as a tensor, an array or nested lists; NaN where there is no head.
        title: text above the map.
        label: what a value means and its unit, next to the colour bar.
        layers: labels of the rows; by default their numbers.
        vmax: value at the end of the colour scale, to compare maps; by default the largest.

    Returns:
        A figure, which a notebook displays and `savefig` writes.

    Raises:
        RegardError: if the values are not a matrix, or labels or `vmax` do not fit.

    Example:
        >>> figure = plot_head_map([[0.1, 0.0], [0.7, 0.2]], title="BLEU lost", label="BLEU")
        >>> [text.get_text() for text in figure.axes[0].texts]
        ['0.10', '0', '0.70', '0.20']
    """
    array = _check_values("values", values)
    scale = _scale([array], vmax)
    figure = _new_figure(array, 1)
    axes = figure.add_subplot()
    image = _plot(axes, array, scale, _layer_labels(array, layers))
    _add_colour_bar(image, axes, label)
    set_titles(figure, title, None)
    return figure


def plot_head_map_difference(
    first: Any,
    second: Any,
    *,
    titles: tuple[str, str] = ("first", "second"),
    title: str = "",
    label: str = "",
    layers: Sequence[str] | None = None,
) -> "matplotlib.figure.Figure":
    """Plot two maps of layers × heads on one scale, and the second minus the first next to them.

    Args:
        first: (layer, head), see `plot_head_map`.
        second: the same for what it is compared with.
        titles: of the two maps.
        title: text above all.
        label: what a value means and its unit, next to the colour bar.
        layers: labels of the rows; by default their numbers.

    Returns:
        A figure, which a notebook displays and `savefig` writes.

    Raises:
        RegardError: if the maps have different shapes, or the labels do not fit.

    Example:
        >>> figure = plot_head_map_difference([[0.1, 0.5]], [[0.4, 0.5]], titles=("old", "new"))
        >>> [text.get_text() for text in figure.axes[2].texts]
        ['0.30', '0']
    """
    arrays = [_check_values("first", first), _check_values("second", second)]
    if arrays[0].shape != arrays[1].shape:
        raise RegardError(
            "first and second must have the same layers and heads, but their shapes are "
            f"{arrays[0].shape} and {arrays[1].shape}"
        )
    change = arrays[1] - arrays[0]
    labels = _layer_labels(change, layers)
    scale = _scale(arrays, None)
    largest = _largest([change])
    figure = _new_figure(change, 3)
    panels = figure.subplots(1, 3)
    panel_titles = (*titles, f"{titles[1]} − {titles[0]}")
    images = [_plot(axes, x, scale, labels) for axes, x in zip(panels, arrays, strict=False)]
    images.append(_plot(panels[2], change, (-largest, largest), labels))
    for axes in panels[1:]:
        axes.set_yticklabels([])
        axes.set_ylabel("")
    for axes, text in zip(panels, panel_titles, strict=True):
        axes.set_title(escape_control(text), fontfamily=font_families(), parse_math=False)
    _add_colour_bar(images[1], panels[:2], label)
    _add_colour_bar(images[2], panels[2], "difference")
    set_titles(figure, title, None)
    return figure


def _check_values(name: str, values: Any) -> Array:
    if hasattr(values, "detach"):
        values = values.detach().cpu().numpy()
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 2 or 0 in array.shape or np.isinf(array).any():
        raise RegardError(
            f"{name} must be finite numbers (layer, head), but the shape is {array.shape}"
            + (" and one is infinite" if np.isinf(array).any() else "")
        )
    return array


def _layer_labels(values: Array, layers: Sequence[str] | None) -> list[str]:
    if layers is None:
        return [str(n) for n in range(len(values))]
    if len(layers) != len(values):
        raise RegardError(
            f"layers must have one label per row of values, {len(values)}, not {len(layers)}"
        )
    return [escape_control(label) for label in layers]


def _largest(arrays: Sequence[Array]) -> float:
    """Return the largest absolute value, or 1 if there is none above 0."""
    known = np.concatenate([array[np.isfinite(array)] for array in arrays])
    return float(np.abs(known).max(initial=0.0)) or 1.0


def _scale(arrays: Sequence[Array], vmax: float | None) -> tuple[float, float]:
    """Return both ends of the colour scale."""
    end = _largest(arrays) if vmax is None else check_vmax(vmax)
    return (-end if any((array < 0).any() for array in arrays) else 0.0), end


def _new_figure(values: Array, panels: int) -> "matplotlib.figure.Figure":
    cell = min(CELL_INCHES, MAX_SIDE_INCHES / max(values.shape))
    width, height = MARGIN_INCHES
    num_layers, num_heads = values.shape
    return new_figure(panels * (width + cell * num_heads), height + cell * num_layers)


def _plot(
    axes: "matplotlib.axes.Axes", values: Array, scale: tuple[float, float], layers: list[str]
) -> "matplotlib.image.AxesImage":
    """Plot a map with labels, and with numbers if it is small."""
    vmin, vmax = scale
    image = axes.imshow(values, cmap=DIVERGING if vmin < 0 else SEQUENTIAL, vmin=vmin, vmax=vmax)
    step = -(-max(values.shape) // MAX_NUMBERED_SIDE)
    style: dict[str, Any] = {"parse_math": False, "fontfamily": font_families()}
    axes.set_yticks(range(0, len(layers), step), layers[::step], **style)
    axes.set_xticks(range(0, values.shape[1], step))
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    add_axis_titles(axes, AXIS_TITLES)
    if step == 1:
        _add_numbers(axes, values, image)
    return image


def _add_colour_bar(image: "matplotlib.image.AxesImage", axes: Any, label: str) -> None:
    """Add a colour bar next to a map or several, labelled in the fonts of titles."""
    figure = image.figure
    assert figure is not None, "the map was drawn"
    bar = figure.colorbar(image, ax=axes, shrink=0.9)
    style: dict[str, Any] = {"parse_math": False, "fontfamily": font_families()}
    bar.set_label(escape_control(label), **style)


def _add_numbers(
    axes: "matplotlib.axes.Axes", values: Array, image: "matplotlib.image.AxesImage"
) -> None:
    """Write the values, with two significant digits of the largest."""
    decimals = max(0, 1 - floor(log10(_largest([values]))))
    for (layer, head), value in np.ndenumerate(values):
        if not np.isfinite(value):
            continue
        red, green, blue, _ = image.to_rgba(value, bytes=True)
        colour = tuple(x / 255 for x in contrast_colour((int(red), int(green), int(blue))))
        rounded = round(float(value), decimals)
        text = f"{rounded:.{decimals}f}".replace("-", "−") if rounded else "0"
        axes.text(head, layer, text, ha="center", va="center", color=colour, fontsize=8)
