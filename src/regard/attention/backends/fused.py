"""Scores that fold into a dot product, in torch's fused kernel."""

from contextlib import nullcontext

import torch
from torch import Tensor
from torch.nn.functional import pad, scaled_dot_product_attention

from regard._support.precision import no_autocast, upcast
from regard.attention.call import AttentionCall, stack_groups, unstack_groups
from regard.attention.scores.base import DotProductForm
from regard.masks.positional import is_plain_causal
from regard.masks.shape import AttentionShape
from regard.shapes import Context


def attend(job: AttentionCall, dropout: float) -> Context:
    """Gather the values in one kernel, without ever holding the weights."""
    folded = _folded(job)
    queries, keys, values = _one_width(*folded[:2], job.values.to(folded.queries.dtype))
    added, is_causal = _added(job, folded.key_bias, queries.dtype)
    groups = job.groups
    if added is None and not is_causal:
        groups = 1  # the grouped queries may stay below each other
    elif groups > 1:
        queries = unstack_groups(queries, groups)
    axes = len(job.shape.batch)
    with no_autocast(queries) if _widened(job, folded) else nullcontext():
        context = scaled_dot_product_attention(
            _four_axes(queries, axes),
            _four_axes(keys, axes),
            _four_axes(values, axes),
            attn_mask=added,
            dropout_p=dropout,
            is_causal=is_causal,
            scale=folded.scale,
            enable_gqa=groups > 1,
        )
    width = job.values.shape[-1]
    if axes != 2 or context.shape[-1] != width:
        context = context[..., :width].reshape(*queries.shape[:-1], width)
    context = unstack_groups(context, job.groups) if groups == 1 else context
    return context.to(job.values.dtype)


def _folded(job: AttentionCall) -> DotProductForm:
    queries, keys = stack_groups(job.queries, job.groups), job.keys
    if queries.dtype == torch.float16 and queries.device.type == "cpu":
        # processors do not compute in float16: float32 is both faster and closer
        queries, keys = upcast(queries), upcast(keys)
    folded = DotProductForm(*job.score.fold(queries, keys))  # type: ignore[attr-defined]
    return folded if folded.key_bias is None or _takes_lift(job) else folded.absorb_key_bias()


def _widened(job: AttentionCall, folded: DotProductForm) -> bool:
    """Tell whether a score folds in float32, to lose nothing: autocast must not round it again."""
    return (
        folded.keys.dtype == folded.queries.dtype == torch.float32 and folded.keys is not job.keys
    )


def _takes_lift(job: AttentionCall) -> bool:
    """Tell whether a lift may be added by the kernel, which is faster than one more column.

    It would then not pass gradients on, not know groups, and not skip what causal hides.
    """
    causal = is_plain_causal(job.mask, job.shape)
    return not (job.groups > 1 or causal or job.needs_grad())


def _one_width(queries: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Widen with zeros, which add nothing to a dot product: the kernel wants one width."""
    widths = queries.shape[-1], values.shape[-1]
    if widths[0] == widths[1]:
        return queries, keys, values
    queries, keys, values = (
        pad(vectors, (0, max(widths) - vectors.shape[-1])) for vectors in (queries, keys, values)
    )
    return queries, keys, values


def _added(
    job: AttentionCall, lift: Tensor | None, dtype: torch.dtype
) -> tuple[Tensor | None, bool]:
    """Write what is hidden or added as the kernel takes it: a tensor, or the word causal."""
    mask, bias, frame = job.mask, job.bias, job.shape
    if lift is not None:
        bias = lift[..., None, :] if bias is None else bias + lift[..., None, :]
    if mask is not None and mask.is_all_true(frame):
        mask = None
    if bias is None:
        if mask is None or is_plain_causal(mask, frame):
            return None, mask is not None
        return _on_four_axes(mask.materialize(frame), frame), False
    # torch's kernel for processors adds float32 to half precision, which loses nothing
    wide = dtype == torch.bfloat16 and bias.device.type == "cpu"
    bias = bias.float() if wide else bias.to(dtype)
    if mask is not None:
        bias = bias.masked_fill(~mask.materialize(frame), -torch.inf)
    return _on_four_axes(bias, frame), False


def _on_four_axes(numbers: Tensor, frame: AttentionShape) -> Tensor:
    """Bring what broadcasts to the frame to (batch, head, query, key)."""
    axes = len(frame.batch)
    numbers = numbers[(None,) * (axes + 2 - numbers.ndim)]
    return _four_axes(numbers.expand(*frame.batch, -1, -1) if axes > 2 else numbers, axes)


def _four_axes(numbers: Tensor, batch_axes: int) -> Tensor:
    """Bring the leading axes to (batch, head), the only form in which the kernel is fused."""
    if batch_axes == 2:
        return numbers
    if batch_axes > 2:
        return numbers.flatten(0, batch_axes - 2)
    return numbers.unsqueeze(-3) if batch_axes else numbers[None, None]
