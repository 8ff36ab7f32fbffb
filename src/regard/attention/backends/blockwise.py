"""Attention for a block of queries at a time, when the scores of all would not fit in memory."""

from collections.abc import Iterator
from functools import partial
from math import prod

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from regard._support.torch_modes import in_functorch, upcast
from regard.attention.backends import dense
from regard.attention.call import AttentionCall, stack_groups
from regard.masks import AttentionShape
from regard.shapes import Context, Weights

BLOCK_SCORES = 2**20  # scores held at a time, 4 MiB in float32: they stay in the cache


def attend(call: AttentionCall, dropout: float) -> Context:
    """Return the context with memory that grows with the keys, not with queries × keys.

    For the backward pass each block is recomputed (gradient checkpointing) instead of stored,
    except under `torch.func`, which cannot do so.
    """

    def attend_block(queries: Tensor, shape: AttentionShape) -> Context:
        weights = dense.softmax(call, dense.score(call, queries), shape)
        return dense.weighted_sum(call, weights, dropout)

    if call.needs_grad():
        if in_functorch():
            run = attend_block
        else:
            run = partial(checkpoint, attend_block, use_reentrant=False)
        return torch.cat([run(*block) for block in _blocks(call)], dim=-2)
    # written in place: small results between large blocks would keep their memory from reuse
    context = call.values.new_empty(*call.shape.score_shape[:-1], call.values.shape[-1])
    for queries, shape in _blocks(call):
        rows = context.narrow(-2, shape.row_start, queries.shape[-2])
        rows.copy_(attend_block(queries, shape))
    return context


def weights(call: AttentionCall) -> Weights:
    """Return the weights of all pairs, holding nothing else of that size.

    Few weights, and weights that need a gradient, are computed by the dense backend.
    """
    if dense.has_few_scores(call) or call.needs_grad():
        return dense.weights(call)
    weights = call.queries.new_empty(call.shape.score_shape)
    if dense.has_finite_scores(call) and call.score.is_head_independent:
        _write_unmasked(call, stack_groups(weights, call.groups))
    else:
        for queries, shape in _blocks(call):
            rows = weights.narrow(-2, shape.row_start, queries.shape[-2])
            rows.copy_(dense.softmax(call, dense.score(call, queries), shape))
    return weights


def _write_unmasked(call: AttentionCall, weights: Weights) -> None:
    """Write weights without mask and bias, some heads at a time: more rows of fewer heads."""
    tensors = (weights, stack_groups(call.queries, call.groups), call.keys)
    weights, queries, keys = (x.reshape(-1, *x.shape[-2:]) for x in tensors)
    rows = max(1, min(BLOCK_SCORES // keys.shape[-2], queries.shape[-2]))
    heads = max(1, BLOCK_SCORES // (rows * keys.shape[-2]))
    for h in range(0, len(weights), heads):
        for q in range(0, queries.shape[-2], rows):
            block = (slice(h, h + heads), slice(q, q + rows))
            scores = upcast(call.score(queries[block], keys[h : h + heads]))
            if scores.dtype == weights.dtype:
                torch.softmax(scores, dim=-1, out=weights[block])
            else:
                weights[block] = scores.softmax(dim=-1)


def _blocks(call: AttentionCall) -> Iterator[tuple[Tensor, AttentionShape]]:
    """Split the queries into blocks of BLOCK_SCORES scores, at least one query each."""
    scores_per_row = prod(call.shape.batch) * call.shape.keys
    rows = max(1, BLOCK_SCORES // max(1, scores_per_row))
    for block, queries in enumerate(call.queries.split(rows, dim=-2)):
        yield queries, call.shape.with_rows(block * rows, queries.shape[-2])
