"""Scores: the same queries and keys, compared in six ways; and why the dot product is scaled."""

import torch
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from torch import Tensor, nn

import regard
from regard.gallery.figure_page import BLUE, GREY, ORANGE
from regard.gallery.plots import SIGNED, cells
from regard.viz.heatmap import new_figure

QUERY = torch.tensor([[1.2, 0.8]])
KEYS = torch.tensor([[1.5, 0.9], [0.45, 0.3], [2.4, 1.6], [-0.6, 1.6], [-1.6, -0.9]])
HALO = [withStroke(linewidth=2.5, foreground="w")]
NAMES = ("near", "short", "long", "aside", "opposite")
WIDTHS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


def scores() -> dict[str, nn.Module]:
    """Make the six scores; the additive one is as random as before learning."""
    bilinear = regard.Bilinear(2)
    bilinear.matrix.data = torch.tensor([[0.0, 1.0], [-1.0, 0.0]])  # a quarter turn
    with torch.random.fork_rng():
        torch.manual_seed(4)
        additive = regard.Additive(2, hidden_width=8)
    return {
        "dot": regard.Dot(),
        "scaled_dot": regard.ScaledDot(),
        "cosine": regard.Cosine(),
        "bilinear": bilinear,
        "additive": additive,
        "gaussian": regard.Gaussian(),
    }


def draw() -> dict[str, Figure]:
    """Draw each score over the plane of keys, the weights it gives, and scores as width grows."""
    with torch.no_grad():
        return {"fields": _fields(), "weights": _weights(), "width": _width()}


def _fields() -> Figure:
    """Draw the score of one query with every key of the plane: contours join equal scores."""
    figure, line = new_figure(10.5, 6.2), torch.linspace(-3, 3, 121)
    plane = torch.cartesian_prod(line, line)
    for axes, (name, score) in zip(figure.subplots(2, 3).flat, scores().items(), strict=True):
        field = score(QUERY, plane)[0].view(121, 121).T
        top = field.abs().max().item()
        levels = torch.linspace(-top, top, 17)
        filled = axes.contourf(line, line, field, levels, cmap=SIGNED)
        axes.annotate("", QUERY[0], (0, 0), arrowprops={"width": 2, "headwidth": 8, "color": "k"})
        axes.scatter(*KEYS.T, s=26, color="k", edgecolor="w", zorder=3)
        for key, (x, y) in zip(NAMES, KEYS.tolist(), strict=True):
            axes.text(x, y + 0.38, key, ha="center", va="center", path_effects=HALO, zorder=4)
        axes.set(title=name, aspect="equal", xticks=(-2, 0, 2), yticks=(-2, 0, 2))
        figure.colorbar(filled, ax=axes, ticks=[-top, 0, top], format="%.1f", shrink=0.8)
    return figure


def _weights() -> Figure:
    figure = new_figure(10.5, 2.6)
    looks = torch.cat([regard.weights(QUERY, KEYS, score=score) for score in scores().values()])
    axes = figure.subplots()
    image = cells(axes, looks, tuple(scores()), NAMES, top=1.0, written=".2f", square=False)
    figure.colorbar(image, ax=axes, label="weight")
    return figure


def _width() -> Figure:
    """Let random queries look at 16 random keys: how do scores and weights change with width?"""
    figure, chance = new_figure(10.5, 3.3), torch.Generator().manual_seed(0)
    spread_at, greatest_at, slope_at = figure.subplots(1, 3)
    pairs = [torch.randn(2, 400, 16, width, generator=chance) for width in WIDTHS]
    for name, colour in (("dot", ORANGE), ("scaled_dot", BLUE)):
        score = scores()[name]
        spread = [score(queries[:, :1], keys).std().item() for queries, keys in pairs]
        looks = [regard.weights(queries[:, :1], keys, score=score) for queries, keys in pairs]
        spread_at.loglog(WIDTHS, spread, "o-", color=colour, label=name, base=2)
        greatest = [weights.amax(-1).mean().item() for weights in looks]
        greatest_at.semilogx(WIDTHS, greatest, "o-", color=colour, base=2)
        slope_at.semilogx(
            WIDTHS, [_slope(weights) for weights in looks], "o-", color=colour, base=2
        )
    spread_at.plot(WIDTHS, [width**0.5 for width in WIDTHS], ":", color=GREY, label="√d")
    spread_at.set(title="standard deviation of the scores", xlabel="width d")
    greatest_at.set(title="greatest of 16 weights", xlabel="width d", ylim=(0, 1))
    slope_at.set(title="slope of the softmax, on average", xlabel="width d", ylim=(0, None))
    spread_at.legend()
    return figure


def _slope(weights: Tensor) -> float:
    """Measure how much weights change with scores: the norm of diag(w) - w wᵀ."""
    jacobian = weights.diag_embed() - weights[..., :, None] * weights[..., None, :]
    return float(jacobian.norm(dim=(-2, -1)).mean())
