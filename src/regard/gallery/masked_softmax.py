"""The masked softmax: hidden keys weigh nothing, and who may look nowhere sees nothing."""

import math

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle
from torch import Tensor

import regard
from regard.gallery.plots import cells
from regard.masks import Mask, causal, lengths, padding, window
from regard.viz.heatmap import new_figure

WORDS = ("the", "cat", "sat", "down", ".", "[pad]")
KEEP = [[True] * 5 + [False]]


def tokens() -> Tensor:
    """Draw one sentence of six tokens."""
    return 0.7 * torch.randn(1, 6, 8, generator=torch.Generator().manual_seed(3))


def masks() -> dict[str, Mask | None]:
    """Name the masks to compare."""
    return {
        "no mask": None,
        "lengths([5]): per sentence": lengths([5]),
        "lengths([[1, 2, 2, 4, 5, 0]]): per query": lengths([[1, 2, 2, 4, 5, 0]]),
        "padding(token is not [pad])": padding(KEEP),
        "causal()": causal(),
        "window(1)": window(1),
        "causal() & padding(…)": causal() & padding(KEEP),
        "window(2, ahead=0) & padding(…)": window(2, ahead=0) & padding(KEEP),
    }


def draw() -> dict[str, Figure]:
    """Draw the weights behind each mask, and three ways to treat a row that may look nowhere."""
    return {"masks": _masks(), "nowhere": _nowhere()}


def _masks() -> Figure:
    figure = new_figure(10.5, 5.3)
    panels = figure.subplots(2, 4)
    for axes, (name, mask) in zip(panels.flat, masks().items(), strict=True):
        weights = regard.weights(tokens(), mask=mask)[0]
        image = _panel(axes, weights, name)
    figure.colorbar(image, ax=panels, label="weight", shrink=0.6)
    return figure


def _nowhere() -> Figure:
    """Hide every key from the last query, and take the softmax in three ways."""
    may_look = lengths([[6, 5, 4, 3, 1, 0]])
    queries = tokens()
    allowed = (torch.arange(6) < torch.tensor([6, 5, 4, 3, 1, 0])[:, None])[None]
    scores = regard.ScaledDot()(queries, queries)
    ways = {
        "softmax with -∞: NaN": scores.masked_fill(~allowed, -math.inf).softmax(-1),
        "softmax with -1e9: looks at what is hidden": scores.masked_fill(~allowed, -1e9).softmax(
            -1
        ),
        "regard: looks nowhere": regard.weights(queries, mask=may_look),
    }
    figure = new_figure(10.5, 3.7)
    panels = figure.subplots(1, 3)
    for axes, (name, weights) in zip(panels, ways.items(), strict=True):
        image = _panel(axes, weights[0], name, ~allowed[0])
    figure.colorbar(image, ax=panels, label="weight", shrink=0.8)
    return figure


def _panel(axes: Axes, weights: Tensor, title: str, hidden: Tensor | None = None) -> AxesImage:
    """Draw weights; hidden cells, those of exactly 0 unless told, are hatched."""
    image = cells(axes, weights, WORDS, WORDS, top=1.0, written=".2f")
    axes.set_title(title, fontsize=9)
    for query, key in (weights == 0 if hidden is None else hidden).nonzero().tolist():
        corner = (key - 0.5, query - 0.5)
        axes.add_patch(Rectangle(corner, 1, 1, fill=False, hatch="////", edgecolor="#5c7090", lw=0))
    return image
