"""What watching costs: memory and time of a forward pass with and without it.

    python bench/watch.py [--tokens N]

The goal: reduced watching of 4096 tokens, 4 layers of 8 heads, within 1.2 times the memory and 3
times the time of the plain pass.
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
from timing import ratio, rounds

LAYERS, HEADS, WIDTH = 4, 8, 512


class Layer(nn.Module):
    """One layer of a decoder, on torch's fused kernel."""

    def __init__(self, causal: bool) -> None:
        super().__init__()
        self.causal = causal
        self.norms = nn.ModuleList([nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)])
        self.project, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.wide = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
        )

    def forward(self, rows: Tensor) -> Tensor:
        """Look, then think."""
        parts = self.project(self.norms[0](rows)).unflatten(-1, (3, HEADS, -1))
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        context = scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        rows = rows + self.out(context.transpose(1, 2).flatten(2))
        return rows + self.wide(self.norms[1](rows))


def passes(tokens: int, causal: bool) -> dict[str, Callable[[], object]]:
    """Give the plain pass and the watched one."""
    torch.manual_seed(0)
    model = nn.Sequential(*(Layer(causal) for _ in range(LAYERS))).eval()
    rows = torch.randn(1, tokens, WIDTH)

    @torch.no_grad()
    def plain() -> object:
        return model(rows)

    @torch.no_grad()
    def watched() -> object:
        with watch(model, keep="reduced") as seen:
            model(rows)
        return seen

    return {"plain": plain, "watched": watched}


def warm(name: str, tokens: int, causal: bool) -> Callable[[], object]:
    """Give one of the passes when torch has loaded what it loads once, its compiler above all."""
    for run in passes(64, causal).values():
        run()
    return passes(tokens, causal)[name]


def peaks(tokens: int) -> None:
    """Print the peaks in MiB: causal plain and watched, then the same without a mask."""
    found = [
        cost(partial(warm, name, tokens, causal))[1]
        for causal in (True, False)
        for name in ("plain", "watched")
    ]
    print(*found)


def measured_peaks(tokens: int) -> list[float]:
    """Measure peaks where what is freed goes back to the system at once.

    Otherwise the holes that are left between tensors add 10 to 60 MiB, never twice the same.
    """
    command = [sys.executable, __file__, "--peaks", "--tokens", str(tokens)]
    place = os.environ | {"MALLOC_MMAP_THRESHOLD_": "65536"}
    done = subprocess.run(command, env=place, capture_output=True, text=True, check=True)
    return [float(number) for number in done.stdout.split()]


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=4096)
    parser.add_argument("--peaks", action="store_true", help="print the peaks only")
    given = parser.parse_args()
    torch.set_num_threads(1)
    if given.peaks:
        return peaks(given.tokens)
    numbers = iter(measured_peaks(given.tokens))
    print("| mask | plain s | watched s | times | plain MiB | watched MiB | times |")
    print("|---|---|---|---|---|---|---|")
    for causal in (True, False):
        plain, watched = next(numbers), next(numbers)
        times = rounds(passes(given.tokens, causal), seconds=1.0, least=3)
        print(
            f"| {'causal' if causal else 'none'} | {min(times['plain']):.2f} "
            f"| {min(times['watched']):.2f} | {ratio(times, 'watched', 'plain'):.2f} "
            f"| {plain:.0f} | {watched:.0f} | {watched / plain:.2f} |"
        )
    return None


if __name__ == "__main__":
    main()
