"""Inputs of attention for tests: random vectors, masks, and every score with every backend."""

import torch
from torch import Tensor

from helpers import formulas
from regard.attention import (
    BACKENDS,
    Additive,
    Bilinear,
    Cosine,
    Gaussian,
    Kernel,
    ScaledDot,
    Score,
    make_score,
)
from regard.attention.scores import boxcar, epanechnikov, triangular

BATCH, HEADS, QUERIES, KEYS, WIDTH, VALUE = 2, 3, 5, 7, 12, 6


def build_score(name: str, dtype: torch.dtype = torch.float32) -> Score:
    """Build the score of a name of `formulas.NAMES`."""
    builders = {
        "capped": lambda: ScaledDot(cap=5.0),
        "cosine": lambda: Cosine(temperature=0.25),
        "gaussian": lambda: Gaussian(bandwidth=2.0),
        "boxcar": lambda: Kernel(boxcar, 4.0),
        "triangular": lambda: Kernel(triangular, 5.0),
        "epanechnikov": lambda: Kernel(epanechnikov, 5.0),
        "bilinear": lambda: Bilinear(WIDTH),
        "additive": lambda: Additive(WIDTH, hidden_width=9),
    }
    return builders.get(name, lambda: make_score(name))().to(dtype)


def random_vectors(
    dtype: torch.dtype = torch.float32, heads: int = HEADS, key_heads: int = HEADS
) -> tuple[Tensor, Tensor, Tensor]:
    """Draw queries, keys and values."""
    return (
        torch.randn(BATCH, heads, QUERIES, WIDTH).to(dtype),
        torch.randn(BATCH, key_heads, KEYS, WIDTH).to(dtype),
        torch.randn(BATCH, key_heads, KEYS, VALUE).to(dtype),
    )


def random_mask() -> Tensor:
    """Draw a mask in which one query is fully masked."""
    mask = torch.rand(BATCH, HEADS, QUERIES, KEYS) > 0.4
    mask[1, 2, 3] = False
    return mask


SCORES_AND_BACKENDS = [
    (name, backend)
    for name in formulas.NAMES
    for backend in BACKENDS
    if backend != "fused" or build_score(name).is_dot_product
]
