"""Attention compared with torch's: ratios of interleaved runs, and growth with length.

    python bench/attention.py [--out DIR] [--only SECTION ...] [--quick] [--smoke]

Prints tables and writes them, with a plot of time and memory by length, into DIR.
"""

import argparse
import platform
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, scaled_dot_product_attention

from growth import growth
from memory import cost
from regard.attention import Additive, Bilinear, Cosine, Gaussian, MultiHeadAttention, attend, look
from regard.masks import causal
from timing import median_ratio, time_interleaved

Lines = Iterator[str]
SIZES = ((8, 8, 128, 64), (2, 8, 1024, 64), (1, 8, 4096, 64))
SMOKE_SIZES = ((2, 2, 16, 8),)
ADDITIVE_SIZE = (4, 256, 256)  # batch, queries and keys, width
ADDITIVE_MEMORY_LENGTH = 16384
MULTIHEAD_SIZES = ((32, 32, 256, 4), (8, 128, 512, 8), (2, 1024, 512, 8), (1, 4096, 512, 8))


def vectors(*size: int) -> list[Tensor]:
    """Sample queries, keys and values."""
    torch.manual_seed(0)
    return [torch.randn(size) for _ in range(3)]


@torch.no_grad()
def fused(seconds: float, out: Path) -> Lines:
    """`attend` relative to SDPA (goals: 1.05 × the time; other scores that fold: 1.5 ×)."""
    yield "| batch × head × n × width | mask | score | × SDPA | ms | dense, × SDPA |"
    yield "|---|---|---|---|---|---|"
    for size in SIZES if seconds else SMOKE_SIZES:
        qkv = vectors(*size)
        scores = {"scaled_dot": "scaled_dot", "gaussian": Gaussian(4.0), "cosine": Cosine(0.2)}
        scores["bilinear"] = Bilinear(size[-1])
        for mask_name, mask in (("none", None), ("causal", causal())):
            for name, score in scores.items():
                ours = partial(attend, *qkv, score=score, mask=mask)
                times = time_interleaved(
                    {
                        "theirs": partial(
                            scaled_dot_product_attention, *qkv, is_causal=mask is not None
                        ),
                        "ours": ours,
                        "dense": partial(ours, backend="dense"),
                    },
                    seconds,
                )
                yield (
                    f"| {'×'.join(map(str, size))} | {mask_name} | {name} "
                    f"| {median_ratio(times, 'ours', 'theirs'):.2f} "
                    f"| {min(times['ours']) * 1e3:.1f} "
                    f"| {median_ratio(times, 'dense', 'theirs'):.2f} |"
                )


@torch.no_grad()
def weights(seconds: float, out: Path) -> Lines:
    """`look` relative to the core of nn.MultiheadAttention with weights per head (goal: 1 ×)."""
    yield "| batch × head × n × width | × torch's core | ms |"
    yield "|---|---|---|"
    for size in SIZES if seconds else SMOKE_SIZES:
        qkv = vectors(*size)
        core = partial(_core_with_weights, *(x.flatten(0, 1) for x in qkv))
        times = time_interleaved({"theirs": core, "ours": partial(look, *qkv)}, seconds)
        yield (
            f"| {'×'.join(map(str, size))} | {median_ratio(times, 'ours', 'theirs'):.2f} "
            f"| {min(times['ours']) * 1e3:.1f} |"
        )


def _core_with_weights(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """Compute what torch computes between its projections when weights are requested."""
    attention = torch.bmm(q * q.shape[-1] ** -0.5, k.transpose(-2, -1)).softmax(dim=-1)
    return torch.bmm(attention, v), attention


def additive(seconds: float, out: Path) -> Lines:
    """Additive attention relative to the textbook's broadcast (goals: 4 ×, 12 ×; 2 ×, 5 ×)."""
    batch, n, width = ADDITIVE_SIZE if seconds else (2, 5, 12)
    score = Additive(width)
    inputs = [x.requires_grad_() for x in vectors(batch, n, width)]
    compile = torch.compile if seconds else partial(torch.compile, backend="eager")

    def textbook(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        a, b = score.project_queries(q), score.project_keys(k)
        scores = torch.tanh(a[:, :, None] + b[:, None]) @ score.pairwise.v
        return scores.softmax(-1) @ v

    def forward_and_backward(run: Callable[..., Tensor]) -> tuple[Tensor, ...]:
        return torch.autograd.grad(run(*inputs).square().sum(), (*inputs, *score.parameters()))

    variants = {"textbook": textbook, "regard": partial(attend, score=score)}
    variants |= {f"{name}, compiled": compile(run) for name, run in tuple(variants.items())}
    forward = {name: partial(torch.no_grad()(run), *inputs) for name, run in variants.items()}
    forward_times = time_interleaved(forward, 2 * seconds)
    both_times = time_interleaved(
        {name: partial(forward_and_backward, run) for name, run in variants.items()}, 3 * seconds
    )
    size = f"{batch}×{n}×{n} pairs, width {width}"
    yield f"| {size} | forward ms | speed-up | with backward ms | speed-up |"
    yield "|---|---|---|---|---|"
    for name in variants:
        cells = (
            f"{min(times[name]) * 1e3:.1f} | {median_ratio(times, 'textbook', name):.1f} ×"
            for times in (forward_times, both_times)
        )
        yield f"| {name} | {' | '.join(cells)} |"


def additive_memory(seconds: float, out: Path) -> Lines:
    """Additive attention over 16384 × 16384 pairs, hidden width 64 (goal: under 1024 MiB)."""

    n = ADDITIVE_MEMORY_LENGTH if seconds else 16

    def make() -> Callable[[], Tensor]:
        return torch.no_grad()(partial(attend, *vectors(1, n, 64), score=Additive(64)))

    duration, peak = cost(make, min(seconds, 1.0))
    yield f"{duration:.1f} s, peak {peak:.0f} MiB"


def multihead(seconds: float, out: Path) -> Lines:
    """`MultiHeadAttention`: speed-up over torch's (goals: 1.3 ×; in training 1 ×).

    The last column is the speed-up if everything but the four projections took no time.
    """
    yield "| batch × n × width, heads | eval | eval with autograd | train | projections alone |"
    yield "|---|---|---|---|---|"
    for batch, n, width, heads in MULTIHEAD_SIZES if seconds else ((2, 5, 12, 3),):
        theirs = nn.MultiheadAttention(width, heads, batch_first=True)
        ours = MultiHeadAttention.from_torch(theirs)
        x = torch.randn(batch, n, width)
        projections = (ours.query, ours.key, ours.value, ours.out)

        def run(module: nn.Module, x: Tensor = x) -> Tensor:
            if isinstance(module, nn.MultiheadAttention):
                return module(x, x, x, need_weights=False)[0]
            return module(x)

        def train(module: nn.Module, run: Callable[[nn.Module], Tensor] = run) -> None:
            run(module).sum().backward()

        def project(x: Tensor = x, projections: tuple[nn.Linear, ...] = projections) -> None:
            for projection in projections:
                linear(x, projection.weight, projection.bias)

        pair = {"theirs": theirs, "ours": ours}
        running = {name: partial(run, module.eval()) for name, module in pair.items()}
        with torch.no_grad():
            plain = time_interleaved(running | {"floor": project}, seconds)
        graded = time_interleaved(running, seconds)
        trained = time_interleaved(
            {name: partial(train, m.train()) for name, m in pair.items()}, seconds
        )
        faster = [median_ratio(times, "theirs", "ours") for times in (plain, graded, trained)]
        cells = " | ".join(f"{f:.2f} ×" for f in (*faster, median_ratio(plain, "theirs", "floor")))
        yield f"| {batch}×{n}×{width}, {heads} | {cells} |"


# growth and memory first: their processes fork before torch starts threads
SECTIONS = (growth, additive_memory, fused, weights, additive, multihead)


def main() -> None:
    """Run the selected sections."""
    names = [section.__name__ for section in SECTIONS]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "out")
    parser.add_argument("--only", nargs="+", choices=names, default=names)
    parser.add_argument("--quick", action="store_true", help="shorter sequences, fewer rounds")
    parser.add_argument("--smoke", action="store_true", help="tiny inputs, a few rounds")
    arguments = parser.parse_args()
    seconds = 0.0 if arguments.smoke else 0.3 if arguments.quick else 4.0
    arguments.out.mkdir(parents=True, exist_ok=True)
    lines = []
    for section in SECTIONS:
        if section.__name__ not in arguments.only:
            continue
        rows = section(seconds, arguments.out)
        for line in chain([f"## {section.__doc__.splitlines()[0]}", ""], rows, [""]):
            print(line, flush=True)
            lines.append(line)
    host = f"torch {torch.__version__}, {torch.get_num_threads()} threads, {platform.machine()}"
    text = "\n".join([f"# Attention\n\n{host}. Command: `python bench/attention.py`.\n", *lines])
    (arguments.out / "attention.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
