"""Attention as the textbooks write it, in float64 and without any care for speed."""

import math

import torch
from torch import Tensor

NAMES = ("dot", "scaled_dot", "capped", "cosine", "gaussian", "boxcar", "triangular")
NAMES += ("epanechnikov", "average", "bilinear", "additive")


def scores(name: str, queries: Tensor, keys: Tensor, score=None) -> Tensor:
    """Score each pair by the formula of that name, with the weights of `score` if it has some."""
    q, k = queries.double()[..., :, None, :], keys.double()[..., None, :, :]
    match name:
        case "dot":
            return (q * k).sum(-1)
        case "scaled_dot":
            return (q * k).sum(-1) / math.sqrt(q.shape[-1])
        case "capped":
            return 5 * torch.tanh((q * k).sum(-1) / math.sqrt(q.shape[-1]) / 5)
        case "cosine":
            lengths = (q.norm(dim=-1) * k.norm(dim=-1)).clamp(min=1e-12)
            return (q * k).sum(-1) / lengths / score.temperature.double()
        case "average":
            return torch.zeros_like((q * k).sum(-1))
        case "bilinear":
            return ((q @ score.matrix.double()) * k).sum(-1)
        case "additive":
            a = q @ score.project_queries.weight.double().T
            b = k @ score.project_keys.weight.double().T
            return torch.tanh(a + b) @ score.compare.v.double()
    apart = (q - k).norm(dim=-1) / score.bandwidth.double()
    match name:
        case "gaussian":
            return -(apart**2) / 2
        case "boxcar":
            return torch.where(apart <= 1, 0.0, -math.inf).double()
        case "triangular":
            return (1 - apart).clamp(min=0).log()
        case "epanechnikov":
            return (1 - apart**2).clamp(min=0).log()
    raise AssertionError(name)


def weights(scores: Tensor, may_look: Tensor | None = None, bias: Tensor | None = None) -> Tensor:
    """Weigh row by row, by the definition of softmax over what may be seen."""
    scores = scores if bias is None else scores + bias.double()
    if may_look is not None:
        scores = scores.masked_fill(~may_look, -math.inf)
    top = scores.amax(-1, keepdim=True) if scores.shape[-1] else scores
    heights = torch.where(scores == -math.inf, 0.0, (scores - top).exp())
    total = heights.sum(-1, keepdim=True)
    return torch.where(total > 0, heights / total, 0.0)
