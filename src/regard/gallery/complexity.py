"""Complexity of self-attention, recurrence and convolution by length, counted and measured."""

from collections.abc import Callable
from time import thread_time

import torch
from matplotlib.figure import Figure
from torch import Tensor, nn

import regard
from regard.attention import complexity
from regard.gallery.single_thread import single_thread
from regard.viz import new_figure

LENGTHS = (16, 32, 64, 128, 256, 512, 1024, 2048)
WIDTH, KERNEL_SIZE = 64, 3
LINES = {"self-attention": "o-", "recurrence": "s-", "convolution": "^--"}


def layers() -> dict[str, Callable[[Tensor], object]]:
    """Return one layer of each kind, for inputs (batch, position, width)."""
    convolution = nn.Conv1d(WIDTH, WIDTH, KERNEL_SIZE, padding="same")
    return {
        "self-attention": regard.MultiHeadAttention(WIDTH, heads=1),
        "recurrence": nn.GRU(WIDTH, WIDTH, batch_first=True),
        "convolution": lambda inputs: convolution(inputs.mT),
    }


def draw() -> dict[str, Figure]:
    """Draw counted operations, measured time, sequential steps and maximum path length."""
    figure = new_figure(10.5, 6.4)
    work_at, time_at, steps_at, path_at = figure.subplots(2, 2, sharex=True).flat
    costs = [complexity(length, WIDTH, KERNEL_SIZE) for length in LENGTHS]
    for kind, (name, layer) in enumerate(layers().items()):
        line, size = LINES[name], {"markersize": 8 - 2 * kind}  # equal counts overlap
        work_at.loglog(LENGTHS, [cost[kind].operations for cost in costs], line, **size, label=name)
        time_at.loglog(LENGTHS, [1000 * seconds(layer, length) for length in LENGTHS], line, **size)
        steps_at.loglog(LENGTHS, [cost[kind].sequential_operations for cost in costs], line, **size)
        path_at.loglog(LENGTHS, [cost[kind].max_path_length for cost in costs], line, **size)
    work_at.set(title=f"operations: multiplications (d = {WIDTH}, k = {KERNEL_SIZE})")
    time_at.set(title="measured: CPU milliseconds, one thread")
    steps_at.set(title="sequential steps", xlabel="sequence length n")
    path_at.set(title="maximum path length", xlabel="sequence length n")
    path_at.set_xticks(LENGTHS, [str(length) for length in LENGTHS])
    path_at.minorticks_off()
    work_at.legend()
    return {"costs": figure}


@torch.no_grad()
def seconds(layer: Callable[[Tensor], object], length: int, tries: int = 10) -> float:
    """Return the CPU time of the fastest of several passes, after a warm-up pass."""
    inputs = torch.randn(1, length, WIDTH, generator=torch.Generator().manual_seed(0))
    times = []
    with single_thread():
        for _ in range(tries + 1):
            start = thread_time()
            layer(inputs)
            times.append(thread_time() - start)
    return min(times[1:])
