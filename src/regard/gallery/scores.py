"""Six scores of the same queries and keys, and why the dot product is scaled."""

import torch
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from torch import Tensor, nn

import regard
from regard.gallery.figure_page import BLUE, GREY, ORANGE
from regard.gallery.plots import DIVERGING, matrix_heatmap
from regard.viz import new_figure

QUERY = torch.tensor([[1.2, 0.8]])
KEYS = torch.tensor([[1.5, 0.9], [0.45, 0.3], [2.4, 1.6], [-0.6, 1.6], [-1.6, -0.9]])
HALO = [withStroke(linewidth=2.5, foreground="w")]
NAMES = ("near", "short", "long", "orthogonal", "opposite")
WIDTHS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


def scores() -> dict[str, nn.Module]:
    """Return the six scores; the additive one is untrained."""
    bilinear = regard.Bilinear(2)
    bilinear.matrix.data = torch.tensor([[0.0, 1.0], [-1.0, 0.0]])  # a rotation by 90°
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
    """Draw each score over the plane of keys, its weights, and scores by width."""
    with torch.no_grad():
        return {"fields": _fields(), "weights": _weights(), "width": _width()}


def _fields() -> Figure:
    """Draw the score of one query with every key of the plane, as contours."""
    figure, line = new_figure(10.5, 6.2), torch.linspace(-3, 3, 121)
    plane = torch.cartesian_prod(line, line)
    for axes, (name, score) in zip(figure.subplots(2, 3).flat, scores().items(), strict=True):
        field = score(QUERY, plane)[0].view(121, 121).T
        top = field.abs().max().item()
        levels = torch.linspace(-top, top, 17)
        filled = axes.contourf(line, line, field, levels, cmap=DIVERGING)
        axes.annotate("", QUERY[0], (0, 0), arrowprops={"width": 2, "headwidth": 8, "color": "k"})
        axes.scatter(*KEYS.T, s=26, color="k", edgecolor="w", zorder=3)
        for key, (x, y) in zip(NAMES, KEYS.tolist(), strict=True):
            axes.text(x, y + 0.38, key, ha="center", va="center", path_effects=HALO, zorder=4)
        axes.set(title=name.replace("_", " "), aspect="equal", xticks=(-2, 0, 2), yticks=(-2, 0, 2))
        figure.colorbar(filled, ax=axes, ticks=[-top, 0, top], format="%.1f", shrink=0.8)
    return figure


def _weights() -> Figure:
    figure = new_figure(10.5, 2.6)
    weights = torch.cat([regard.weights(QUERY, KEYS, score=score) for score in scores().values()])
    axes = figure.subplots()
    image = matrix_heatmap(
        axes,
        weights,
        [name.replace("_", " ") for name in scores()],
        NAMES,
        vmax=1.0,
        cell_format=".2f",
        square=False,
    )
    figure.colorbar(image, ax=axes, label="weight")
    return figure


def _width() -> Figure:
    """Draw how scores and weights of random queries over 16 random keys change with width."""
    figure, generator = new_figure(10.5, 3.3), torch.Generator().manual_seed(0)
    spread_at, largest_at, gradient_at = figure.subplots(1, 3)
    pairs = [torch.randn(2, 400, 16, width, generator=generator) for width in WIDTHS]
    for name, colour in (("dot", ORANGE), ("scaled_dot", BLUE)):
        score = scores()[name]
        spread = [score(queries[:, :1], keys).std().item() for queries, keys in pairs]
        maps = [regard.weights(queries[:, :1], keys, score=score) for queries, keys in pairs]
        spread_at.loglog(WIDTHS, spread, "o-", color=colour, label=name.replace("_", " "), base=2)
        largest = [weights.amax(-1).mean().item() for weights in maps]
        largest_at.semilogx(WIDTHS, largest, "o-", color=colour, base=2)
        gradients = [softmax_jacobian_norm(weights) for weights in maps]
        gradient_at.semilogx(WIDTHS, gradients, "o-", color=colour, base=2)
    spread_at.plot(WIDTHS, [width**0.5 for width in WIDTHS], ":", color=GREY, label="√d")
    spread_at.set(title="standard deviation of the scores", xlabel="width d")
    largest_at.set(title="largest of 16 weights", xlabel="width d", ylim=(0, 1))
    gradient_at.set(title="mean gradient of the softmax", xlabel="width d", ylim=(0, None))
    spread_at.legend()
    return figure


def softmax_jacobian_norm(weights: Tensor) -> float:
    """Return the mean norm of the softmax Jacobian, diag(w) - w wᵀ."""
    jacobian = weights.diag_embed() - weights[..., :, None] * weights[..., None, :]
    return float(jacobian.norm(dim=(-2, -1)).mean())
