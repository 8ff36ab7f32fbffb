"""Residual and norm: how gradients reach the first layer, and which numbers a norm looks at."""

import torch
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor, nn

import regard
from regard.gallery.plots import cells
from regard.models import FeedForward, Residual
from regard.viz.heatmap import new_figure

DEPTH, WIDTH, TRIES = 24, 32, 5
WAYS = ("plain", "post", "pre")
NAMES = {
    "plain": "no residual: layer(x)",
    "post": "post: norm(x + layer(x))",
    "pre": "pre: x + layer(norm(x))",
}
LINES = {"plain": "s-", "post": "o-", "pre": "^-"}


class Layer(nn.Module):
    """Self-attention and feed-forward, each wrapped as told."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.attention = regard.MultiHeadAttention(WIDTH, heads=4)
        self.feed = FeedForward(WIDTH, 2 * WIDTH)
        wraps = [Residual(WIDTH, pre_norm=way == "pre") for _ in range(2)]
        self.wraps = nn.ModuleList() if way == "plain" else nn.ModuleList(wraps)

    def forward(self, rows: Tensor) -> Tensor:
        """Change the rows."""
        for part, wrap in zip((self.attention, self.feed), self.wraps or (None, None), strict=True):
            rows = part(rows) if wrap is None else wrap(rows, part)
        return rows


def passes(way: str) -> tuple[Tensor, Tensor]:
    """Go through a fresh stack and back; give the size of rows and gradients between layers."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        found = [_pass(way) for _ in range(TRIES)]
    sizes, slopes = zip(*found, strict=True)
    return torch.stack(sizes).log().mean(0).exp(), torch.stack(slopes).log().mean(0).exp()


def _pass(way: str) -> tuple[Tensor, Tensor]:
    rows = [torch.randn(4, 10, WIDTH, requires_grad=True)]
    for layer in nn.ModuleList(Layer(way) for _ in range(DEPTH)):
        rows.append(layer(rows[-1]))
    goal = torch.randn(4, 10, WIDTH)
    slopes = torch.autograd.grad((rows[-1] * goal).mean(), rows)
    return torch.stack([one.detach().norm() for one in rows]), torch.stack(
        [slope.norm() for slope in slopes]
    )


def draw() -> dict[str, Figure]:
    """Draw gradients by depth, and the numbers that two norms bring together."""
    return {"depth": _depth(), "norms": _norms()}


def _depth() -> Figure:
    figure = new_figure(10.5, 3.8)
    slopes_at, sizes_at = figure.subplots(1, 2, sharex=True)
    for way in WAYS:
        sizes, slopes = passes(way)
        slopes_at.semilogy(slopes / slopes[-1], LINES[way], markersize=4, label=NAMES[way])
        sizes_at.semilogy(sizes / sizes[0], LINES[way], markersize=4)
    slopes_at.set(title="gradient, relative to that at the last layer", xlabel="layer")
    sizes_at.set(title="size of the rows, relative to the input", xlabel="layer")
    slopes_at.legend(loc="lower right")
    return figure


def batch() -> Tensor:
    """Draw six words of five features; words differ in size, and features in mean."""
    chance = torch.Generator().manual_seed(0)
    sizes = torch.tensor([0.5, 1.0, 2.0, 0.5, 1.0, 3.0])[:, None]
    return sizes * (torch.randn(6, 5, generator=chance) + torch.tensor([0.0, 1, -1, 2, 0]))


def _norms() -> Figure:
    figure, rows = new_figure(10.5, 3.9), batch()
    with torch.no_grad():
        by_layer, by_batch = nn.LayerNorm(5)(rows), nn.BatchNorm1d(5)(rows)
    titles = ("before", "layer norm: word by word", "batch norm: feature by feature")
    words = [f"sentence {1 + word // 3}, word {1 + word % 3}" for word in range(6)]
    panels = figure.subplots(1, 3)
    for axes, numbers, title in zip(panels, (rows, by_layer, by_batch), titles, strict=True):
        names = words if axes is panels[0] else ()
        image = cells(axes, numbers, names, title=title, signed=True, top=4.0, written=".1f")
        axes.set_xlabel("features")
    for axes, width, height in ((panels[1], 5, 1), (panels[2], 1, 6)):
        axes.add_patch(Rectangle((-0.5, -0.5), width, height, fill=False, linewidth=2.5))
    figure.colorbar(image, ax=panels, extend="both", shrink=0.8)
    return figure
