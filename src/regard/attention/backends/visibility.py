"""Which keys some query may attend to, and hidden keys that must not overflow."""

from dataclasses import replace

import torch
from torch import Tensor

from regard._support.torch_modes import can_read_values, is_symbolic, max_squarable
from regard.attention.call import AttentionCall

MAX_FLOAT16 = 2.0**12  # a learned projection of longer vectors may overflow in float16


def materialize_mask(call: AttentionCall) -> Tensor | None:
    """Return the mask of all pairs; None if it allows all, or is torch's `is_causal`."""
    mask, shape = call.mask, call.shape
    if mask is None or mask.is_all_true(shape):
        return None
    return None if call.bias is None and mask.is_causal(shape) else mask.materialize(shape)


def visible_keys(call: AttentionCall, allowed: Tensor | None) -> Tensor | None:
    """Return which keys some query may attend to, `(*batch, key)`; None if all.

    Args:
        call: the call.
        allowed: what `materialize_mask` returned.
    """
    shape, bias = call.shape, call.bias
    if bias is not None:
        finite = bias > -torch.inf
        allowed = finite if allowed is None else allowed & finite
    if allowed is None:
        # the mask was not materialized: it allows all, or is a causal one from the first key on
        if call.mask is None or call.mask.is_all_true(shape):
            return None
        # to compare dynamic sizes would limit an export to those that compare like the example's
        if not is_symbolic(shape.queries) and shape.queries >= shape.keys:
            return None
        return shape.key_positions() < shape.queries
    visible = allowed.any(dim=-2)
    if call.groups > 1 and visible.ndim > 1 and visible.shape[-2] > 1:
        visible = visible.unflatten(-2, (-1, call.groups)).any(dim=-2)
    return visible


def zero_large_hidden_keys(call: AttentionCall) -> AttentionCall:
    """Return the call with zeros for the hidden keys and their values, if one is very large.

    A hidden key's score becomes -inf and its weight 0, whatever they were. But inf - inf, 0 · inf
    and 0 · NaN are NaN, in the context or in the gradients. Padding may hold anything, such as
    memory that was never written.
    """
    keys, values = call.keys, call.values
    # the order matters: while tracing, the sizes that may hide keys must not become a guard
    if not (can_read_values(keys) and _may_hide_keys(call)):
        return call
    if keys.device.type != "cpu" and call.score.is_dot_product:
        return call  # reading a value would wait for the device
    if not (_may_overflow(keys) or _may_overflow(values)):
        return call
    visible = visible_keys(call, materialize_mask(call))
    if visible is None:
        return call
    is_hidden = ~visible[..., None]
    return replace(
        call, keys=keys.masked_fill(is_hidden, 0.0), values=values.masked_fill(is_hidden, 0.0)
    )


def _may_hide_keys(call: AttentionCall) -> bool:
    """Return whether there is a mask or bias, other than a causal mask up to the last key."""
    mask, shape = call.mask, call.shape
    if call.bias is not None or mask is None:
        return call.bias is not None
    return shape.queries < shape.keys or not mask.is_causal(shape)


def _may_overflow(vectors: Tensor) -> bool:
    """Return whether scores or gradients of some vectors may overflow; those of NaN do, too."""
    limit = MAX_FLOAT16 if vectors.dtype == torch.float16 else max_squarable(vectors.dtype)
    norm = torch.linalg.vector_norm(vectors.detach())  # of all; the fastest reduction
    return not norm.item() <= limit
