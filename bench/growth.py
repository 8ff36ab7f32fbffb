"""Growth with length: time and peak memory of one attention, recurrent or convolution layer."""

from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from torch import nn

from memory import cost
from regard.attention import attend

LAYERS = ("dense", "fused", "blockwise", "GRU", "convolution")
LENGTHS = (256, 512, 1024, 2048, 4096, 8192, 16384)
QUICK_LENGTH = 2048  # the greatest when there is less than a second
SMOKE_LENGTHS = (16, 32)  # when there is no time at all
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#555555")
MEASURES = (("time, ms", 1e3), ("peak memory, MiB", 1.0))  # with the unit's factor

Costs = dict[tuple[str, int], tuple[float, float]]
"""Seconds and MiB, by layer and length."""


def growth(seconds: float, out: Path) -> Iterator[str]:
    """Measure layers of width 64: self-attention on three backends, a GRU, a convolution."""
    lengths = [n for n in LENGTHS if seconds >= 1 or n <= QUICK_LENGTH]
    lengths = lengths if seconds else list(SMOKE_LENGTHS)
    costs = {
        (name, n): cost(_layer_factory(name, n), min(seconds, 1.0))
        for name in LAYERS
        for n in lengths
    }
    for index, (title, unit) in enumerate(MEASURES):
        yield f"| {title} | " + " | ".join(f"n = {n}" for n in lengths) + " |"
        yield "|---" * (len(lengths) + 1) + "|"
        for name in LAYERS:
            values = (f"{unit * costs[name, n][index]:.3g}" for n in lengths)
            yield f"| {name} | " + " | ".join(values) + " |"
        yield ""
    _plot(costs, lengths, out / "growth.png")
    yield "![Time and peak memory against length](growth.png)"


def _layer_factory(name: str, n: int, width: int = 64) -> Callable[[], Callable[[], object]]:
    """Return a function that makes one layer over n tokens, in a process of its own."""

    def make() -> Callable[[], object]:
        x = torch.randn(1, n, width)
        if name == "GRU":
            recurrence = nn.GRU(width, width, batch_first=True)
            return torch.no_grad()(lambda: recurrence(x))
        if name == "convolution":
            convolution = nn.Conv1d(width, width, 3, padding=1)
            return torch.no_grad()(lambda: convolution(x.mT))
        return torch.no_grad()(lambda: attend(x, backend=name))

    return make


def _plot(costs: Costs, lengths: list[int], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4), layout="constrained")
    panels = figure.subplots(1, 2)
    for index, (panel, (title, unit)) in enumerate(zip(panels, MEASURES, strict=True)):
        for name, colour, marker in zip(LAYERS, COLOURS, "os^Dv", strict=True):
            values = [unit * costs[name, n][index] for n in lengths]
            panel.loglog(lengths, values, marker=marker, color=colour, label=name, linewidth=1.5)
        panel.set_title(title, loc="left")
        panel.set_xlabel("tokens")
        panel.set_xticks(lengths, [str(n) for n in lengths])
        panel.minorticks_off()
        panel.spines[["top", "right"]].set_visible(False)
        panel.grid(True, which="major", color="#dddddd", linewidth=0.6)
    panels[0].legend(frameon=False)
    figure.savefig(path, dpi=110)
