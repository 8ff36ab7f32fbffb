"""Attention in three plain steps over all pairs at once: score, softmax, weighted sum."""

from math import prod

import torch
from torch import Tensor
from torch.nn.functional import dropout as apply_dropout

from regard._support.torch_modes import in_functorch, no_autocast, upcast
from regard.attention.backends.folding import fold
from regard.attention.backends.visibility import materialize_mask
from regard.attention.call import AttentionCall, stack_groups, unstack_groups
from regard.attention.scores.dot import dot_products
from regard.errors import RegardError
from regard.masks import AttentionShape, is_broadcastable
from regard.shapes import Context, Scores, Weights

MAX_SCORES = 2**22  # 16 MiB in float32; below this many, one dense block is the fastest


def attend(call: AttentionCall, dropout: float) -> Context:
    """Return the context from the weights of all pairs."""
    return weighted_sum(call, _weights(call), dropout)


def weights(call: AttentionCall) -> Weights:
    """Return the attention weights of all pairs, in the dtype of the queries."""
    return _weights(call).to(call.queries.dtype)


def look(call: AttentionCall, dropout: float) -> tuple[Context, Weights]:
    """Return context and weights, which are computed once."""
    computed = _weights(call)
    return weighted_sum(call, computed, dropout), computed.to(call.queries.dtype)


def has_few_scores(call: AttentionCall) -> bool:
    """Return whether there are few enough scores to compute all of them at once."""
    # `torch.Size.numel` would fix sizes that are dynamic while compiling
    return prod(call.shape.score_shape) < MAX_SCORES


def score(call: AttentionCall, queries: Tensor) -> Scores:
    """Score some of the call's queries against all its keys."""
    rows = stack_groups(queries, call.groups)
    if in_functorch() and call.score.is_dot_product:
        scores = _score_by_fold(call, rows)
    else:
        shape = (*rows.shape[:-1], call.keys.shape[-2])
        scores = _expand_scores(call.score(rows, call.keys), shape)
    # a caller's function may return half precision
    return unstack_groups(upcast(scores), call.groups)


def softmax(call: AttentionCall, scores: Scores, shape: AttentionShape) -> Weights:
    """Add the bias, apply the mask and normalise; a fully masked row becomes zeros.

    Args:
        scores: of the rows that `shape` selects; they may be overwritten.
        shape: the call's shape, or some rows of it.
    """
    if call.bias is not None:
        scores = scores + shape.slice_rows(call.bias).to(scores.dtype)
    if call.mask is not None:
        scores = scores.masked_fill(~call.mask.materialize(shape), -torch.inf)
    if scores.shape[-1] == 0 or has_finite_scores(call):
        # these scores belong to this call alone, so they may be overwritten without a gradient
        needs_grad = call.needs_grad() or scores.requires_grad
        return torch.softmax(scores, dim=-1, out=None if needs_grad else scores)
    # softmax of nothing but -inf is NaN, in the gradient too; such a row must read as "no weight"
    is_masked = scores.amax(dim=-1, keepdim=True) == -torch.inf
    return scores.masked_fill(is_masked, 0.0).softmax(dim=-1).masked_fill(is_masked, 0.0)


def weighted_sum(call: AttentionCall, weights: Weights, dropout: float) -> Context:
    """Sum the values by their weights, after dropout."""
    weights = stack_groups(apply_dropout(weights, dropout) if dropout else weights, call.groups)
    with no_autocast(weights):
        values = upcast(call.values)
        context = torch.einsum("...qk,...kv->...qv", weights.to(values.dtype), values)
    return unstack_groups(context, call.groups).to(call.values.dtype)


def has_finite_scores(call: AttentionCall) -> bool:
    """Return whether no score can be -inf: a dot product without mask and bias."""
    return call.mask is None and call.bias is None and call.score.is_dot_product


def _weights(call: AttentionCall) -> Weights:
    """Return the weights in float32 or more."""
    return softmax(call, score(call, call.queries), call.shape)


def _score_by_fold(call: AttentionCall, queries: Tensor) -> Scores:
    """Score by the dot product that a score folds into, which has every derivative.

    The terms it leaves out are the same for all keys, so the softmax is the same.
    """
    form = fold(call, queries, materialize_mask(call))
    assert form is not None, "under a transform no values are read, so there is always a form"
    scores = form.scale * dot_products(form.queries, form.keys)
    return scores if form.key_bias is None else scores + form.key_bias[..., None, :]


def _expand_scores(scores: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Expand axes of size one; raise unless there is a score for each query and key."""
    if scores.shape == shape:
        return scores
    if not (scores.ndim == len(shape) and is_broadcastable(tuple(scores.shape), shape)):
        raise RegardError(
            f"score must return one score for each query and key, {shape}, where the queries of "
            f"heads that share keys are stacked, but the shape is {tuple(scores.shape)}"
        )
    return scores.expand(shape).contiguous()  # so that they may be overwritten
