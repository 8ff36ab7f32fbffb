"""Attention as textbooks write it, in float64 and with no regard for speed: the reference."""

import math

import torch
from torch import Tensor

NAMES = ("dot", "scaled_dot", "capped", "cosine", "gaussian", "boxcar", "triangular")
NAMES += ("epanechnikov", "average", "bilinear", "additive")


def scores(name: str, queries: Tensor, keys: Tensor, score=None) -> Tensor:
    """Score each pair by the formula of this name, with the parameters of `score`, if any."""
    q, k = queries.double()[..., :, None, :], keys.double()[..., None, :, :]
    match name:
        case "dot":
            return (q * k).sum(-1)
        case "scaled_dot":
            return (q * k).sum(-1) / math.sqrt(q.shape[-1])
        case "capped":
            return 5 * torch.tanh((q * k).sum(-1) / math.sqrt(q.shape[-1]) / 5)
        case "cosine":
            norms = (q.norm(dim=-1) * k.norm(dim=-1)).clamp(min=1e-12)
            return (q * k).sum(-1) / norms / score.temperature.double()
        case "average":
            return torch.zeros_like((q * k).sum(-1))
        case "bilinear":
            return ((q @ score.matrix.double()) * k).sum(-1)
        case "additive":
            a = q @ score.query_projection.weight.double().T
            b = k @ score.key_projection.weight.double().T
            return torch.tanh(a + b) @ score.pairwise.v.double()
    distance = (q - k).norm(dim=-1) / score.bandwidth.double()
    match name:
        case "gaussian":
            return -(distance**2) / 2
        case "boxcar":
            return torch.where(distance <= 1, 0.0, -math.inf).double()
        case "triangular":
            return (1 - distance).clamp(min=0).log()
        case "epanechnikov":
            return (1 - distance**2).clamp(min=0).log()
    raise AssertionError(name)


def weights(scores: Tensor, mask: Tensor | None = None, bias: Tensor | None = None) -> Tensor:
    """Normalise row by row, by the definition of softmax over the keys that are not masked."""
    scores = scores if bias is None else scores + bias.double()
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    top = scores.amax(-1, keepdim=True) if scores.shape[-1] else scores
    exponentials = torch.where(scores == -math.inf, 0.0, (scores - top).exp())
    total = exponentials.sum(-1, keepdim=True)
    return torch.where(total > 0, exponentials / total, 0.0)
