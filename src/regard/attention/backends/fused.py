"""Scores that are a dot product, in torch's fused scaled_dot_product_attention."""

from contextlib import nullcontext

import torch
from torch import Tensor
from torch.nn.functional import pad, scaled_dot_product_attention

from regard._support.torch_modes import no_autocast
from regard.attention.backends import blockwise
from regard.attention.backends.folding import fold
from regard.attention.backends.visibility import materialize_mask
from regard.attention.call import AttentionCall, stack_groups, unstack_groups
from regard.attention.scores import DotProductForm
from regard.masks import AttentionShape
from regard.shapes import Context, Weights


def attend(call: AttentionCall, dropout: float) -> Context:
    """Return the context from one kernel, which never holds the weights."""
    allowed = materialize_mask(call)
    queries = stack_groups(call.queries, call.groups)
    form = fold(call, queries, allowed)
    if form is None:
        return blockwise.attend(call, dropout)
    form = _prepare(call, form)
    is_computed = form.queries is not queries or form.keys is not call.keys
    queries, keys, values = _pad_to_one_width(*form[:2], call.values.to(form.queries.dtype))
    attn_mask, is_causal = _mask_arguments(call, allowed, form.key_bias, queries.dtype)
    groups = call.groups
    if attn_mask is None and not is_causal:
        groups = 1  # the query heads of a group may stay stacked
    elif groups > 1:
        queries = unstack_groups(queries, groups)
    batch_axes = len(call.shape.batch)
    # autocast must not round what was computed in float32
    is_float32 = is_computed and form.queries.dtype == torch.float32
    with no_autocast(queries) if is_float32 else nullcontext():
        context = scaled_dot_product_attention(
            _to_four_axes(queries, batch_axes),
            _to_four_axes(keys, batch_axes),
            _to_four_axes(values, batch_axes),
            attn_mask=attn_mask,
            dropout_p=dropout,
            is_causal=is_causal,
            scale=form.scale,
            enable_gqa=groups > 1,
        )
    width = call.values.shape[-1]
    if batch_axes != 2 or context.shape[-1] != width:
        context = context[..., :width].reshape(*queries.shape[:-1], width)
    context = unstack_groups(context, call.groups) if groups == 1 else context
    return context.to(call.values.dtype)


def weights(call: AttentionCall) -> Weights:
    """Return the weights, computed from the score: torch's kernel does not return them."""
    return blockwise.weights(call)


def _prepare(call: AttentionCall, form: DotProductForm) -> DotProductForm:
    """Return an equal form that the kernel takes: of one dtype, which the device computes in."""
    dtype = torch.promote_types(form.queries.dtype, form.keys.dtype)
    if dtype == torch.float16 and form.keys.device.type == "cpu":
        dtype = torch.float32  # CPUs do not compute in float16: float32 is both faster and closer
    if form.queries.dtype != form.keys.dtype or dtype != form.keys.dtype:
        form = form._replace(queries=form.queries.to(dtype), keys=form.keys.to(dtype))
    if form.key_bias is None or _kernel_takes_key_bias(call):
        return form
    return form.absorb_key_bias()


def _kernel_takes_key_bias(call: AttentionCall) -> bool:
    """Return whether the key bias may be the kernel's mask, which is faster than one more column.

    A mask gets no gradient, is not broadcast to groups, and keeps the kernel from skipping what a
    causal mask hides.
    """
    is_causal = call.mask is not None and call.mask.is_causal(call.shape)
    return not (call.groups > 1 or is_causal or call.needs_grad())


def _pad_to_one_width(
    queries: Tensor, keys: Tensor, values: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Pad with zeros, which add nothing to a dot product: the kernel needs one width."""
    widths = queries.shape[-1], values.shape[-1]
    if widths[0] == widths[1]:
        return queries, keys, values
    queries, keys, values = (
        pad(vectors, (0, max(widths) - vectors.shape[-1])) for vectors in (queries, keys, values)
    )
    return queries, keys, values


def _mask_arguments(
    call: AttentionCall, allowed: Tensor | None, key_bias: Tensor | None, dtype: torch.dtype
) -> tuple[Tensor | None, bool]:
    """Return mask, bias and key bias as the kernel's `attn_mask` and `is_causal`."""
    mask, bias, shape = call.mask, call.bias, call.shape
    if key_bias is not None:
        bias = key_bias[..., None, :] if bias is None else bias + key_bias[..., None, :]
    if bias is None:
        if allowed is None:
            return None, mask is not None and not mask.is_all_true(shape)
        return _expand_to_four_axes(allowed, shape), False
    # torch's CPU kernel adds float32 to half precision, which loses nothing
    keeps_float32 = dtype == torch.bfloat16 and bias.device.type == "cpu"
    bias = bias.float() if keeps_float32 else bias.to(dtype)
    if allowed is not None:
        bias = bias.masked_fill(~allowed, -torch.inf)
    return _expand_to_four_axes(bias, shape), False


def _expand_to_four_axes(tensor: Tensor, shape: AttentionShape) -> Tensor:
    """Return a tensor that broadcasts to the scores as (batch, head, query, key)."""
    batch_axes = len(shape.batch)
    tensor = tensor[(None,) * (batch_axes + 2 - tensor.ndim)]
    if batch_axes > 2:
        tensor = tensor.expand(*shape.batch, -1, -1)
    return _to_four_axes(tensor, batch_axes)


def _to_four_axes(tensor: Tensor, batch_axes: int) -> Tensor:
    """Reshape the leading axes to (batch, head), for which alone the kernel is fused."""
    if batch_axes == 2:
        return tensor
    if batch_axes > 2:
        return tensor.flatten(0, batch_axes - 2)
    return tensor.unsqueeze(-3) if batch_axes else tensor[None, None]
