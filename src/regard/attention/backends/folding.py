"""A call's score as a dot product, centred on the keys that some query may attend to."""

import math

import torch
from torch import Tensor

from regard._support.torch_modes import can_read_values, max_squarable, upcast
from regard.attention.backends.visibility import visible_keys
from regard.attention.call import AttentionCall
from regard.attention.scores import DotProductForm
from regard.shapes import Keys

# A score that is expanded into larger terms is rounded by 2**-11 or more in float32, and in float64
# it has lost half of its digits.
MAX_TERM, MAX_TERM64 = 2.0**12, 2.0**26
SAMPLED_KEYS = 8  # enough to find the middle of the keys


def fold(call: AttentionCall, queries: Tensor, allowed: Tensor | None) -> DotProductForm | None:
    """Return queries and keys whose dot product has the same softmax as the call's score.

    A translation-invariant score is expanded around a centre of the visible keys. Softmax does not
    change when both sides are shifted; the precision of the terms does. Hidden keys have no part
    in it.

    Args:
        call: of a score that is a dot product.
        queries: some of the call's, stacked by key head.
        allowed: what `materialize_mask` returned.

    Returns:
        None if the terms are so large that their sum would lose its digits: then the scores must
        be computed by the score itself.
    """
    if not call.score.is_translation_invariant:
        return call.score.fold(queries, call.keys)
    queries, keys, visible = upcast(queries), upcast(call.keys), visible_keys(call, allowed)
    centre = _centre(keys, visible)
    queries, keys = queries - centre, keys - centre
    if not can_read_values(keys):
        keys = keys if visible is None else keys.masked_fill(~visible[..., None], 0.0)
        return call.score.fold(_limit(queries), _limit(keys))
    form = call.score.fold(queries, keys)
    if _has_small_terms(form):
        return form
    if visible is not None:
        form = call.score.fold(queries, keys.masked_fill(~visible[..., None], 0.0))
        if _has_small_terms(form):
            return form
    return None


def _centre(keys: Keys, visible: Tensor | None) -> Tensor:
    """Return the median of about eight visible keys, per component; 0 where none is visible."""
    if not keys.shape[-2]:
        return keys.new_zeros(())
    keys = keys.detach()
    if visible is None:
        sample = keys[..., :: max(keys.shape[-2] // SAMPLED_KEYS, 1), :]
        return sample.median(dim=-2, keepdim=True).values
    visible = visible[(None,) * (keys.ndim - 1 - visible.ndim)]
    ranks, count = visible.cumsum(dim=-1), visible.sum(dim=-1, keepdim=True)
    sampled_ranks = torch.arange(SAMPLED_KEYS, device=keys.device) * count // SAMPLED_KEYS
    # the index of the key of a rank is the number of keys before it
    index = (ranks[..., None, :] <= sampled_ranks[..., None]).sum(dim=-1).where(count > 0, 0)
    # gather, as `take_along_dim` would fix sizes that are dynamic while compiling
    index = index[..., None].expand(*keys.shape[:-2], SAMPLED_KEYS, keys.shape[-1])
    sample = keys.gather(-2, index)
    return sample.median(dim=-2, keepdim=True).values.where(count[..., None] > 0, 0.0)


def _limit(vectors: Tensor) -> Tensor:
    """Limit components to finite squares, where values may not be read."""
    limit = max_squarable(vectors.dtype)
    return vectors.clamp(-limit, limit)


@torch.no_grad()
def _has_small_terms(form: DotProductForm) -> bool:
    """Return whether the terms of an expanded square keep the digits of their sum."""
    if form.key_bias is None or not (form.queries.numel() and form.keys.numel()):
        return True
    # the key bias is half the square of a key's norm, which need not be computed again
    half_square = -form.key_bias.amin().item()
    query_norm = torch.linalg.vector_norm(form.queries, dim=-1).amax().item()
    product = query_norm * math.sqrt(2 * form.scale * max(half_square, 0.0))
    limit = MAX_TERM64 if form.keys.dtype == torch.float64 else MAX_TERM
    return 2 * half_square <= limit and product <= limit
