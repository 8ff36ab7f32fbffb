"""The cost of watching: time and peak memory of a forward pass, watched and unwatched.

    python bench/watch.py [--tokens N]

The goal: with keep="summary", 4096 tokens through 4 layers of 8 heads take at most 1.2 times the
memory and 3 times the time of the unwatched pass.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from memory import cost
from regard import watch
from timing import median_ratio, time_interleaved

LAYERS, HEADS, WIDTH = 4, 8, 512


class Layer(nn.Module):
    """A decoder layer on torch's fused kernel."""

    def __init__(self, causal: bool) -> None:
        super().__init__()
        self.causal = causal
        self.norms = nn.ModuleList([nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)])
        self.project, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.feed_forward = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
        )

    def forward(self, rows: Tensor) -> Tensor:
        """Apply attention and feed-forward, each with a residual connection."""
        projected = self.project(self.norms[0](rows)).unflatten(-1, (3, HEADS, -1))
        q, k, v = projected.permute(2, 0, 3, 1, 4)
        context = scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        rows = rows + self.out(context.transpose(1, 2).flatten(2))
        return rows + self.feed_forward(self.norms[1](rows))


def make_passes(tokens: int, causal: bool) -> dict[str, Callable[[], object]]:
    """Return the unwatched and the watched pass."""
    torch.manual_seed(0)
    model = nn.Sequential(*(Layer(causal) for _ in range(LAYERS))).eval()
    rows = torch.randn(1, tokens, WIDTH)

    @torch.no_grad()
    def unwatched() -> object:
        return model(rows)

    @torch.no_grad()
    def watched() -> object:
        with watch(model, keep="summary") as capture:
            model(rows)
        return capture

    return {"unwatched": unwatched, "watched": watched}


def make_warm_pass(name: str, tokens: int, causal: bool) -> Callable[[], object]:
    """Return a pass after small ones have loaded what torch loads once, above all its compiler."""
    for run in make_passes(64, causal).values():
        run()
    return make_passes(tokens, causal)[name]


def print_peaks(tokens: int) -> None:
    """Print peaks in MiB: causal unwatched and watched, then the same without a mask."""
    peaks = [
        cost(partial(make_warm_pass, name, tokens, causal))[1]
        for causal in (True, False)
        for name in ("unwatched", "watched")
    ]
    print(*peaks)


def measure_peaks(tokens: int) -> list[float]:
    """Measure peaks in a process that returns freed memory to the system at once.

    Otherwise fragmentation adds 10 to 60 MiB, differently each time.
    """
    command = [sys.executable, __file__, "--peaks", "--tokens", str(tokens)]
    environment = os.environ | {"MALLOC_MMAP_THRESHOLD_": "65536"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return [float(peak) for peak in done.stdout.split()]


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=4096)
    parser.add_argument("--peaks", action="store_true", help="print the peaks only")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.peaks:
        return print_peaks(arguments.tokens)
    peaks = iter(measure_peaks(arguments.tokens))
    print("| mask | unwatched s | watched s | ratio | unwatched MiB | watched MiB | ratio |")
    print("|---|---|---|---|---|---|---|")
    for causal in (True, False):
        unwatched, watched = next(peaks), next(peaks)
        times = time_interleaved(make_passes(arguments.tokens, causal), seconds=1.0, min_rounds=3)
        print(
            f"| {'causal' if causal else 'none'} | {min(times['unwatched']):.2f} "
            f"| {min(times['watched']):.2f} | {median_ratio(times, 'watched', 'unwatched'):.2f} "
            f"| {unwatched:.0f} | {watched:.0f} | {watched / unwatched:.2f} |"
        )
    return None


if __name__ == "__main__":
    main()
