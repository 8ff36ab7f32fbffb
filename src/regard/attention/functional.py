"""The one door: attend, weights and look, and which path is taken."""

from typing import Literal, NamedTuple

import torch
from torch import Tensor

from regard._support.functorch import beyond_gradients
from regard.attention.backends import blockwise, dense, fused
from regard.attention.call import AttentionCall, prepare_call
from regard.attention.observer import told
from regard.attention.scores.base import folds
from regard.attention.scores.registry import Score
from regard.masks.base import Mask

Path = Literal["fused", "streamed", "dense"]
PATHS = ("fused", "streamed", "dense")
_ATTEND = {"fused": fused.attend, "streamed": blockwise.attend, "dense": dense.attend}

STREAM_FROM = 2**22  # scores; below this many (16 MiB in float32) one dense block is faster


class AttentionOutput(NamedTuple):
    """What attention gathered, and where it looked."""

    context: Tensor
    weights: Tensor


def attend(
    queries: Tensor,
    keys: Tensor | None = None,
    values: Tensor | None = None,
    *,
    score: str | Score = "scaled dot",
    mask: Mask | Tensor | None = None,
    bias: Tensor | None = None,
    dropout: float = 0.0,
    offset: int | None = None,
    path: Path | None = None,
) -> Tensor:
    """Let queries look at keys and gather their values.

    Queries are (*batch, query, width), keys (*batch, key, width) and values
    (*batch, key, value width), with heads, if any, at axis -3. Queries alone look at
    themselves; keys without values are their own values; one axis fewer makes a single query.

    Args:
        score: a name of the table, a score module, or any function (queries, keys) -> scores. It
            is given some of the queries at a time, and must score each pair by itself.
        mask: True where a query may look; see `regard.masks`.
        bias: numbers to add to the scores, shaped like a mask.
        dropout: the share of weights to drop, always: a module passes 0 when it is not training.
        offset: the key on which the first query stands, when earlier keys come from a cache.
        path: "fused", "streamed" or "dense", to overrule the choice by size and score.
    """
    _check_dropout(dropout)
    job = prepare_call(queries, keys, values, score, mask, bias, offset)
    path = _choose(job, path)
    return job.shaped(told(job, lambda: _ATTEND[path](job, dropout)))


def weights(
    queries: Tensor,
    keys: Tensor | None = None,
    *,
    score: str | Score = "scaled dot",
    mask: Mask | Tensor | None = None,
    bias: Tensor | None = None,
    offset: int | None = None,
) -> Tensor:
    """Tell where queries look: one weight per head, query and key, each row summing to 1 or 0."""
    job = prepare_call(queries, keys, None, score, mask, bias, offset)
    return job.shaped(_weights(job))


def look(
    queries: Tensor,
    keys: Tensor | None = None,
    values: Tensor | None = None,
    *,
    score: str | Score = "scaled dot",
    mask: Mask | Tensor | None = None,
    bias: Tensor | None = None,
    dropout: float = 0.0,
    offset: int | None = None,
    path: Path | None = None,
) -> AttentionOutput:
    """Attend, and tell where: the context is `attend`'s own, bit for bit.

    The weights are those before dropout.
    """
    _check_dropout(dropout)
    job = prepare_call(queries, keys, values, score, mask, bias, offset)
    path = _choose(job, path)
    context, looks = told(job, lambda: _looked(job, path, dropout))
    return AttentionOutput(job.shaped(context), job.shaped(looks))


def _looked(job: AttentionCall, path: Path, dropout: float) -> tuple[Tensor, Tensor]:
    if path == "dense":
        looks = dense.weights(job)
        return dense.gather(job, looks, dropout), looks.to(job.queries.dtype)
    with job.chance_kept():
        looks = _weights(job)
    return _ATTEND[path](job, dropout), looks


def _weights(job: AttentionCall) -> Tensor:
    """Weigh all pairs at once, or block by block where many would be moved through memory."""
    if _few(job) or job.differentiated():
        return dense.weights(job).to(job.queries.dtype)
    return blockwise.weights(job)


def _few(job: AttentionCall) -> bool:
    return torch.Size(job.frame.shape).numel() < STREAM_FROM


def _choose(job: AttentionCall, path: Path | None) -> Path:
    """Take the fused path for a score that folds; else hold all scores, unless they are many."""
    folded = folds(job.score)
    if path is None:
        if beyond_gradients():
            return "dense"
        return "fused" if folded else "dense" if _few(job) else "streamed"
    if path not in PATHS:
        raise ValueError(f"path must be one of {', '.join(PATHS)}, or None, but it is {path!r}")
    if path == "fused" and not folded:
        name = getattr(job.score, "__name__", type(job.score).__name__)
        raise ValueError(f"{name} does not fold into a dot product; path=None would do")
    return path


def _check_dropout(dropout: float) -> None:
    if not 0 <= dropout <= 1:
        raise ValueError(f"dropout must be a share from 0 to 1, but it is {dropout}")
