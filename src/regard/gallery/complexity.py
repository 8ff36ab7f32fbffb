"""Complexity: recurrence, convolution and self-attention as texts grow, counted and measured."""

from collections.abc import Callable
from time import thread_time

import torch
from matplotlib.figure import Figure
from torch import Tensor, nn

import regard
from regard.attention import complexity
from regard.gallery.one_thread import one_thread
from regard.viz.heatmap import new_figure

LENGTHS = (16, 32, 64, 128, 256, 512, 1024, 2048)
WIDTH, REACH = 64, 3
LINES = {"self-attention": "o-", "recurrence": "s-", "convolution": "^--"}


def layers() -> dict[str, Callable[[Tensor], object]]:
    """Make one layer of each kind, for rows (batch, position, width)."""
    convolution = nn.Conv1d(WIDTH, WIDTH, REACH, padding="same")
    return {
        "self-attention": regard.MultiHeadAttention(WIDTH, heads=1),
        "recurrence": nn.GRU(WIDTH, WIDTH, batch_first=True),
        "convolution": lambda rows: convolution(rows.mT),
    }


def draw() -> dict[str, Figure]:
    """Draw measured time beside counted work, sequential steps and longest path."""
    figure = new_figure(10.5, 6.4)
    work_at, time_at, steps_at, path_at = figure.subplots(2, 2, sharex=True).flat
    costs = [complexity(length, WIDTH, REACH) for length in LENGTHS]
    for kind, (name, layer) in enumerate(layers().items()):
        line, size = LINES[name], {"markersize": 8 - 2 * kind}  # equal counts lie on one another
        work_at.loglog(LENGTHS, [cost[kind].work for cost in costs], line, **size, label=name)
        time_at.loglog(LENGTHS, [1000 * seconds(layer, length) for length in LENGTHS], line, **size)
        steps_at.loglog(LENGTHS, [cost[kind].steps for cost in costs], line, **size)
        path_at.loglog(LENGTHS, [cost[kind].path for cost in costs], line, **size)
    work_at.set(title=f"work: multiplications (d = {WIDTH}, k = {REACH})")
    time_at.set(title="measured here: milliseconds of one processor")
    steps_at.set(title="sequential steps", xlabel="words n")
    path_at.set(title="longest path between two words", xlabel="words n")
    path_at.set_xticks(LENGTHS, [str(length) for length in LENGTHS])
    path_at.minorticks_off()
    work_at.legend()
    return {"costs": figure}


@torch.no_grad()
def seconds(layer: Callable[[Tensor], object], length: int, tries: int = 10) -> float:
    """Measure the fastest of some passes, after one to warm up."""
    rows = torch.randn(1, length, WIDTH, generator=torch.Generator().manual_seed(0))
    times = []
    with one_thread():
        for _ in range(tries + 1):
            start = thread_time()
            layer(rows)
            times.append(thread_time() - start)
    return min(times[1:])
