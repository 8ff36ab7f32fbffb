"""Rounding errors in half precision, compared with torch's SDPA given the same scores.

    python bench/half_precision.py [--length N]

For each score: the largest error of the context against float64, for `attend`, and for
`scaled_dot_product_attention` as one would write it in this dtype: queries and keys of a score that
is a dot product, all other scores as its `attn_mask`. Scores are saturated by larger queries and
keys, or by narrower kernels.
"""

import argparse
from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn.functional import normalize, scaled_dot_product_attention

from regard.attention import SCORE_NAMES, Cosine, Gaussian, Score, attend, make_score

BATCH, HEADS, WIDTH = 2, 4, 32
KERNEL_WIDTHS = {"boxcar": 9.0, "triangular": 12.0, "epanechnikov": 12.0, "average": 1.0}


def build(name: str, saturated: bool) -> Score:
    """Build a score; a saturated one has most of its weight on one key."""
    if name == "cosine":
        return Cosine(0.02 if saturated else 0.5)
    if name == "gaussian":
        return Gaussian(0.5 if saturated else 4.0)
    if name in KERNEL_WIDTHS:
        score = make_score(name)
        score._bandwidth.initial = KERNEL_WIDTHS[name] * (0.8 if saturated else 1.0)
        return score
    return make_score(name, (WIDTH, WIDTH))


def with_sdpa(name: str, score: Score, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Compute the same attention by SDPA, everything in the dtype of the inputs."""
    if name in ("dot", "scaled_dot"):
        return scaled_dot_product_attention(q, k, v, scale=1.0 if name == "dot" else None)
    if name == "cosine":
        q, k = normalize(q, dim=-1), normalize(k, dim=-1)
        return scaled_dot_product_attention(q, k, v, scale=1 / score.temperature.item())
    if name == "bilinear":
        return scaled_dot_product_attention(q @ score.matrix, k, v, scale=1.0)
    if name == "additive":
        a, b = score.project_queries(q), score.project_keys(k)
        scores = torch.tanh(a[..., :, None, :] + b[..., None, :, :]) @ score.pairwise.v
    else:
        difference = q[..., :, None, :] - k[..., None, :, :]
        distance = difference.norm(dim=-1) / score.bandwidth.to(q.dtype)
        if name == "gaussian":
            scores = -(distance**2) / 2
        else:
            scores = score.profile(distance).clamp(min=0).log()
    return scaled_dot_product_attention(torch.zeros_like(q), k, v, attn_mask=scores)


def largest_error(computed: Tensor, expected: Tensor) -> float:
    """Return the largest error; a NaN, where torch has no key left, counts as zeros."""
    return (computed.double().nan_to_num() - expected).abs().max().item()


@torch.no_grad()
def rows(length: int) -> Iterator[str]:
    """Yield a line of the table for each score, dtype and saturation."""
    yield "| score | dtype | scores | `attend` | SDPA | ratio |"
    yield "|---|---|---|---|---|---|"
    for name in SCORE_NAMES:
        for dtype in (torch.bfloat16, torch.float16):
            for saturated in (False, True):
                torch.manual_seed(0)
                factor = 6.0 if saturated and name not in KERNEL_WIDTHS else 1.0
                size = (BATCH, HEADS, length, WIDTH)
                q, k, v = (x * torch.randn(size) for x in (factor, factor, 1.0))
                score = build(name, saturated).to(dtype)
                inputs = [x.to(dtype) for x in (q, k, v)]
                ours = attend(*inputs, score=score)
                theirs = with_sdpa(name, score, *inputs)
                expected = attend(*(x.double() for x in inputs), score=score.double())
                errors = [largest_error(x, expected) for x in (ours, theirs)]
                kind = "saturated" if saturated else "ordinary"
                yield (
                    f"| {name} | {str(dtype).removeprefix('torch.')} | {kind} "
                    f"| {errors[0]:.1e} | {errors[1]:.1e} | {errors[0] / errors[1]:.2f} |"
                )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--length", type=int, default=96, help="number of queries and keys")
    for line in rows(parser.parse_args().length):
        print(line, flush=True)


if __name__ == "__main__":
    main()
