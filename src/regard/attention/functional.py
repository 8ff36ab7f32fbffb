"""The one door: attend, weights and look, and which backend is taken."""

from typing import Literal, NamedTuple

import torch
from torch import Tensor

from regard._support.functorch import in_vmap_or_jvp
from regard.attention.backends import blockwise, dense, fused
from regard.attention.call import AttentionCall, prepare_call
from regard.attention.observer import told
from regard.attention.scores.base import folds
from regard.attention.scores.registry import Score
from regard.masks.base import Mask

BackendName = Literal["fused", "blockwise", "dense"]
BACKENDS = ("fused", "blockwise", "dense")
_ATTEND = {"fused": fused.attend, "blockwise": blockwise.attend, "dense": dense.attend}

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
    score: str | Score = "scaled_dot",
    mask: Mask | Tensor | None = None,
    bias: Tensor | None = None,
    dropout: float = 0.0,
    offset: int | None = None,
    backend: BackendName | None = None,
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
        backend: "fused", "blockwise" or "dense", to overrule the choice by size and score.
    """
    _check_dropout(dropout)
    job = prepare_call(queries, keys, values, score, mask, bias, offset)
    chosen = _choose(job, backend)
    return job.restore_shape(told(job, lambda: _ATTEND[chosen](job, dropout)))


def weights(
    queries: Tensor,
    keys: Tensor | None = None,
    *,
    score: str | Score = "scaled_dot",
    mask: Mask | Tensor | None = None,
    bias: Tensor | None = None,
    offset: int | None = None,
) -> Tensor:
    """Tell where queries look: one weight per head, query and key, each row summing to 1 or 0."""
    job = prepare_call(queries, keys, None, score, mask, bias, offset)
    return job.restore_shape(_weights(job))


def look(
    queries: Tensor,
    keys: Tensor | None = None,
    values: Tensor | None = None,
    *,
    score: str | Score = "scaled_dot",
    mask: Mask | Tensor | None = None,
    bias: Tensor | None = None,
    dropout: float = 0.0,
    offset: int | None = None,
    backend: BackendName | None = None,
) -> AttentionOutput:
    """Attend, and tell where: the context is `attend`'s own, bit for bit.

    The weights are those before dropout.
    """
    _check_dropout(dropout)
    job = prepare_call(queries, keys, values, score, mask, bias, offset)
    chosen = _choose(job, backend)
    context, looks = told(job, lambda: _looked(job, chosen, dropout))
    return AttentionOutput(job.restore_shape(context), job.restore_shape(looks))


def _looked(job: AttentionCall, backend: BackendName, dropout: float) -> tuple[Tensor, Tensor]:
    if backend == "dense":
        looks = dense.weights(job)
        return dense.gather(job, looks, dropout), looks.to(job.queries.dtype)
    with job.preserve_rng():
        looks = _weights(job)
    return _ATTEND[backend](job, dropout), looks


def _weights(job: AttentionCall) -> Tensor:
    """Weigh all pairs at once, or block by block where many would be moved through memory."""
    if _few(job) or job.needs_grad():
        return dense.weights(job).to(job.queries.dtype)
    return blockwise.weights(job)


def _few(job: AttentionCall) -> bool:
    return torch.Size(job.shape.score_shape).numel() < STREAM_FROM


def _choose(job: AttentionCall, backend: BackendName | None) -> BackendName:
    """Take the fused path for a score that folds; else hold all scores, unless they are many."""
    folded = folds(job.score)
    if backend is None:
        if in_vmap_or_jvp():
            return "dense"
        return "fused" if folded else "dense" if _few(job) else "blockwise"
    if backend not in BACKENDS:
        raise ValueError(
            f"path must be one of {', '.join(BACKENDS)}, or None, but it is {backend!r}"
        )
    if backend == "fused" and not folded:
        name = getattr(job.score, "__name__", type(job.score).__name__)
        raise ValueError(f"{name} does not fold into a dot product; backend=None would do")
    return backend


def _check_dropout(dropout: float) -> None:
    if not 0 <= dropout <= 1:
        raise ValueError(f"dropout must be a share from 0 to 1, but it is {dropout}")
