"""Residual connections and normalisation: gradients by depth, and what each norm averages."""

import torch
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor, nn

import regard
from regard.gallery.plots import matrix_heatmap
from regard.models import FeedForward, Residual
from regard.viz import new_figure

DEPTH, WIDTH, SAMPLES = 24, 32, 5
VARIANTS = ("plain", "post", "pre")
NAMES = {
    "plain": "no residual: layer(x)",
    "post": "post: norm(x + layer(x))",
    "pre": "pre: x + layer(norm(x))",
}
LINES = {"plain": "s-", "post": "o-", "pre": "^-"}


class LayerVariant(nn.Module):
    """Self-attention and feed-forward, each with the given residual and norm."""

    def __init__(self, variant: str) -> None:
        super().__init__()
        self.attention = regard.MultiHeadAttention(WIDTH, heads=4)
        self.feed = FeedForward(WIDTH, 2 * WIDTH)
        wraps = [Residual(WIDTH, pre_norm=variant == "pre") for _ in range(2)]
        self.wraps = nn.ModuleList() if variant == "plain" else nn.ModuleList(wraps)

    def forward(self, rows: Tensor) -> Tensor:
        """Apply the layer."""
        for part, wrap in zip((self.attention, self.feed), self.wraps or (None, None), strict=True):
            rows = part(rows) if wrap is None else wrap(rows, part)
        return rows


def norms_by_depth(variant: str) -> tuple[Tensor, Tensor]:
    """Return the norms of activations and gradients between the layers of an untrained stack."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        samples = [_forward_and_backward(variant) for _ in range(SAMPLES)]
    activations, gradients = (torch.stack(norms) for norms in zip(*samples, strict=True))
    return activations.log().mean(0).exp(), gradients.log().mean(0).exp()


def _forward_and_backward(variant: str) -> tuple[Tensor, Tensor]:
    states = [torch.randn(4, 10, WIDTH, requires_grad=True)]
    for layer in nn.ModuleList(LayerVariant(variant) for _ in range(DEPTH)):
        states.append(layer(states[-1]))
    target = torch.randn(4, 10, WIDTH)
    gradients = torch.autograd.grad((states[-1] * target).mean(), states)
    return (
        torch.stack([state.detach().norm() for state in states]),
        torch.stack([gradient.norm() for gradient in gradients]),
    )


def draw() -> dict[str, Figure]:
    """Draw gradients by depth, and what layer norm and batch norm average over."""
    return {"depth": _depth(), "norms": _norms()}


def _depth() -> Figure:
    figure = new_figure(10.5, 3.8)
    gradients_at, activations_at = figure.subplots(1, 2, sharex=True)
    for variant in VARIANTS:
        activations, gradients = norms_by_depth(variant)
        line, name = LINES[variant], NAMES[variant]
        gradients_at.semilogy(gradients / gradients[-1], line, markersize=4, label=name)
        activations_at.semilogy(activations / activations[0], line, markersize=4)
    gradients_at.set(title="gradient norm, relative to the last layer", xlabel="layer")
    activations_at.set(title="activation norm, relative to the input", xlabel="layer")
    gradients_at.legend(loc="lower right")
    return figure


def batch() -> Tensor:
    """Sample six words of five features; words differ in scale, features in mean."""
    generator = torch.Generator().manual_seed(0)
    sizes = torch.tensor([0.5, 1.0, 2.0, 0.5, 1.0, 3.0])[:, None]
    return sizes * (torch.randn(6, 5, generator=generator) + torch.tensor([0.0, 1, -1, 2, 0]))


def _norms() -> Figure:
    figure, rows = new_figure(10.5, 3.9), batch()
    with torch.no_grad():
        by_layer, by_batch = nn.LayerNorm(5)(rows), nn.BatchNorm1d(5)(rows)
    titles = ("before", "layer norm: word by word", "batch norm: feature by feature")
    words = [f"sentence {1 + word // 3}, word {1 + word % 3}" for word in range(6)]
    panels = figure.subplots(1, 3)
    for axes, values, title in zip(panels, (rows, by_layer, by_batch), titles, strict=True):
        names = words if axes is panels[0] else ()
        image = matrix_heatmap(
            axes, values, names, title=title, diverging=True, vmax=4.0, cell_format=".1f"
        )
        axes.set_xlabel("features")
    for axes, width, height in ((panels[1], 5, 1), (panels[2], 1, 6)):
        axes.add_patch(Rectangle((-0.5, -0.5), width, height, fill=False, linewidth=2.5))
    figure.colorbar(image, ax=panels, extend="both", shrink=0.8)
    return figure
