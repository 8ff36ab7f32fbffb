"""Masked softmax: masked keys get zero weight, and a fully masked query gets zeros."""

import math

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle
from torch import Tensor

import regard
from regard.gallery.plots import matrix_heatmap
from regard.masks import Mask, causal, lengths, padding, window
from regard.viz import new_figure

WORDS = ("the", "cat", "sat", "down", ".", "[pad]")
KEEP = [[True] * 5 + [False]]


def tokens() -> Tensor:
    """Sample one sentence of six tokens."""
    return 0.7 * torch.randn(1, 6, 8, generator=torch.Generator().manual_seed(3))


def masks() -> dict[str, Mask | None]:
    """Return the masks to compare, by title."""
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
    """Draw the weights under each mask, and three treatments of a fully masked row."""
    return {"masks": _masks(), "fully-masked": _fully_masked()}


def _masks() -> Figure:
    figure = new_figure(10.5, 5.3)
    panels = figure.subplots(2, 4)
    for axes, (name, mask) in zip(panels.flat, masks().items(), strict=True):
        weights = regard.weights(tokens(), mask=mask)[0]
        image = _panel(axes, weights, name)
    figure.colorbar(image, ax=panels, label="weight", shrink=0.6)
    return figure


def _fully_masked() -> Figure:
    """Mask every key of the last query, and take the softmax in three ways."""
    mask = lengths([[6, 5, 4, 3, 1, 0]])
    queries = tokens()
    allowed = (torch.arange(6) < torch.tensor([6, 5, 4, 3, 1, 0])[:, None])[None]
    scores = regard.ScaledDot()(queries, queries)
    treatments = {
        "softmax with -∞: NaN": scores.masked_fill(~allowed, -math.inf).softmax(-1),
        "softmax with -1e9: uniform": scores.masked_fill(~allowed, -1e9).softmax(-1),
        "regard: zeros": regard.weights(queries, mask=mask),
    }
    figure = new_figure(10.5, 3.7)
    panels = figure.subplots(1, 3)
    for axes, (name, weights) in zip(panels, treatments.items(), strict=True):
        image = _panel(axes, weights[0], name, ~allowed[0])
    figure.colorbar(image, ax=panels, label="weight", shrink=0.8)
    return figure


def _panel(axes: Axes, weights: Tensor, title: str, masked: Tensor | None = None) -> AxesImage:
    """Draw weights with masked cells hatched; by default those with weight exactly 0."""
    image = matrix_heatmap(axes, weights, WORDS, WORDS, vmax=1.0, cell_format=".2f")
    axes.set_title(title, fontsize=9)
    for query, key in (weights == 0 if masked is None else masked).nonzero().tolist():
        corner = (key - 0.5, query - 0.5)
        axes.add_patch(Rectangle(corner, 1, 1, fill=False, hatch="////", edgecolor="#5c7090", lw=0))
    return image
