"""Position encodings: sinusoidal, rotary and ALiBi, and which depend on distance alone."""

from typing import Any

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from torch import Tensor

from regard.attention import ScaledDot
from regard.gallery.figure_page import BLUE, GREY
from regard.gallery.plots import DIVERGING, matrix_heatmap
from regard.positions import ALiBi, Rotary, sinusoidal
from regard.viz import new_figure

LENGTH, WIDTH, STEP, MAX_DISTANCE = 64, 32, 5, 20


def draw() -> dict[str, Figure]:
    """Draw the sinusoidal table, its columns as rotations, its shift matrix, and three kinds."""
    return {"table": _table(), "turns": _turns(), "shift": _shift(), "kinds": _kinds()}


def _table() -> Figure:
    figure, table = new_figure(10.5, 4.4), sinusoidal(LENGTH, WIDTH)
    map_at, curves_at = figure.subplots(1, 2, width_ratios=[3, 4])
    image = map_at.imshow(table.numpy(), cmap=DIVERGING, vmin=-1, vmax=1, aspect="auto")
    map_at.set(title="the table", xlabel="column", ylabel="position")
    figure.colorbar(image, ax=map_at)
    for column, line in zip((6, 7, 8, 9), ("-", "--", "-", "--"), strict=True):
        name = f"column {column}: {'cos' if column % 2 else 'sin'}"
        curves_at.plot(table[:, column], line, label=name)
    curves_at.set(title="four of its columns", xlabel="position", ylim=(-1.1, 1.6))
    curves_at.legend(ncols=2, loc="upper center")
    return figure


def _turns() -> Figure:
    """Draw a binary counter, the sinusoids that smooth it, and pairs of columns as rotations."""
    figure, table = new_figure(10.5, 5.8), sinusoidal(LENGTH, WIDTH)
    parts: Any = figure.subfigures(2, 1, height_ratios=[3, 2])
    upper, lower = parts
    bits_at, waves_at = upper.subplots(1, 2)
    bits = torch.arange(LENGTH) // 2 ** torch.arange(6)[:, None] % 2
    waves = table[:, 0:24:4].T
    for axes, rows in ((bits_at, bits), (waves_at, waves)):
        axes.imshow(rows.numpy(), cmap="cividis", aspect="auto")
        axes.set(xlabel="position")
    bits_at.set(title="a binary counter", ylabel="bit")
    waves_at.set(title="sines of the table")
    waves_at.set_yticks(range(6), [f"column {column}" for column in range(0, 24, 4)])
    for pair, axes in zip((0, 2, 4, 6), lower.subplots(1, 4), strict=True):
        _draw_rotation(
            axes, table[:8, 2 * pair : 2 * pair + 2], f"columns {2 * pair} and {2 * pair + 1}"
        )
    return figure


def _draw_rotation(axes: Axes, pairs: Tensor, title: str) -> None:
    """Draw a radius for each position: (cosine, sine) is a point of the unit circle."""
    axes.add_patch(Circle((0, 0), 1, fill=False, color=GREY, alpha=0.5))
    for position, (sine, cosine) in enumerate(pairs.tolist()):
        axes.plot((0, cosine), (0, sine), color=BLUE, alpha=0.25 + 0.09 * position)
        if pairs[1, 0] > 0.2 or position in (0, 7):  # labels of slow rotations would overlap
            axes.text(1.2 * cosine, 1.2 * sine, str(position), ha="center", va="center")
    axes.set(title=title, aspect="equal", xlim=(-1.4, 1.4), ylim=(-1.4, 1.4))
    axes.set_axis_off()


def shift(table: Tensor, step: int) -> Tensor:
    """Return the matrix that maps the encoding of every position to that of position + step."""
    matrix: Tensor = torch.linalg.lstsq(table[:-step].double(), table[step:].double()).solution
    return matrix


def _shift() -> Figure:
    figure, table = new_figure(9.0, 4.0), sinusoidal(LENGTH, 8)
    matrix_at, products_at = figure.subplots(1, 2, width_ratios=[4, 5])
    matrix = shift(table, STEP)
    error = (table[:-STEP].double() @ matrix - table[STEP:]).abs().max()
    matrix_heatmap(matrix_at, matrix.round(decimals=2), diverging=True, vmax=1.0, cell_format=".2f")
    matrix_at.set(title=f"one matrix shifts every position by {STEP}")
    matrix_at.set(xlabel=f"eight columns; largest error {error:.0e}")
    wide = sinusoidal(LENGTH, WIDTH)
    image = products_at.imshow((wide @ wide.T).numpy(), cmap="cividis")
    products_at.set(title="dot products of positions", xlabel="position", ylabel="position")
    figure.colorbar(image, ax=products_at)
    return figure


def by_distance(kind: str, start: int) -> Tensor:
    """Score a query at `start` against one key at distances from -20 to 20."""
    query, key = torch.randn(2, 1, WIDTH, generator=torch.Generator().manual_seed(0))
    keys = key.expand(2 * MAX_DISTANCE + 1, WIDTH)
    if kind == "sinusoidal":
        query = query + sinusoidal(1, WIDTH, offset=start)
        keys = keys + sinusoidal(2 * MAX_DISTANCE + 1, WIDTH, offset=start - MAX_DISTANCE)
    elif kind == "rotary":
        query, keys = Rotary(WIDTH)(query, start), Rotary(WIDTH)(keys, start - MAX_DISTANCE)
    bias = ALiBi(4)(1, 2 * MAX_DISTANCE + 1, offset=MAX_DISTANCE)[0, 1, 0] if kind == "ALiBi" else 0
    score: Tensor = ScaledDot()(query, keys)[0] + bias
    return score


def _kinds() -> Figure:
    """Draw scores by distance at three places of a text: which depend on distance alone?"""
    figure, distances = new_figure(10.5, 3.6), range(-MAX_DISTANCE, MAX_DISTANCE + 1)
    panels = figure.subplots(1, 3)
    for axes, kind in zip(panels, ("sinusoidal", "rotary", "ALiBi"), strict=True):
        for start, width, line in ((20, 5, "-"), (60, 3, "-"), (200, 1.2, "--")):
            score = by_distance(kind, start)
            axes.plot(distances, score, line, linewidth=width, label=f"query at {start}")
        axes.set(title=kind, xlabel="key position − query position")
    panels[0].set_ylabel("score")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure
