"""Masks of torch and Hugging Face, converted to this library's convention."""

import torch
from torch import Tensor

from regard.errors import RegardError
from regard.masks.base import Mask, as_mask
from regard.masks.sequence import padding


def from_torch(
    attn_mask: Tensor | None = None,
    key_padding_mask: Tensor | None = None,
    heads: int | None = None,
) -> Mask | None:
    """Convert the masks of `nn.MultiheadAttention`, where True means *may not attend*.

    Args:
        attn_mask: (query, key), or (batch * heads, query, key), boolean or float. A float mask
            must hold 0 and -inf only; anything else is a bias, not a mask.
        key_padding_mask: (batch, key), boolean or float.
        heads: number of heads, to split a 3-D `attn_mask`.

    Returns:
        The mask, or None if there was none.

    Raises:
        RegardError: if a float mask holds other values, or `heads` is missing or does not fit.
        TypeError: if a mask is neither boolean nor float.

    Example:
        >>> from_torch(torch.tensor([[False, True], [False, False]])).to_tensor(2)
        tensor([[ True, False],
                [ True,  True]])
    """
    mask = None
    if attn_mask is not None:
        mask = as_mask(~_split_heads(_masked_pairs("attn_mask", attn_mask), heads))
    if key_padding_mask is None:
        return mask
    keep = padding(~_masked_pairs("key_padding_mask", key_padding_mask))
    return keep if mask is None else mask & keep


def from_hf(attention_mask: Tensor) -> Mask:
    """Convert an `attention_mask` of Hugging Face transformers.

    Args:
        attention_mask: (batch, key) with 1 to attend, or (batch, head, query, key), boolean with
            True to attend or float with 0 to attend.

    Raises:
        RegardError: if it has another shape or holds other values.
        TypeError: if a 4-D mask is neither boolean nor float.

    Example:
        >>> from_hf(torch.tensor([[1, 1, 0]])).to_tensor(queries=1, keys=3, batch=(1,))
        tensor([[[ True,  True, False]]])
    """
    if attention_mask.ndim == 2:
        if ((attention_mask != 0) & (attention_mask != 1)).any():
            raise RegardError(
                "a (batch, key) attention_mask must hold 1 to attend and 0 to mask, but it holds "
                "other values; documents(ids) separates packed texts, bias= is added to the scores"
            )
        return padding(attention_mask.bool())
    if attention_mask.ndim != 4:
        raise RegardError(
            f"attention_mask must be (batch, key) or (batch, head, query, key), "
            f"but its shape is {tuple(attention_mask.shape)}"
        )
    if attention_mask.dtype == torch.bool:
        return as_mask(attention_mask)
    return as_mask(~_masked_pairs("attention_mask", attention_mask))


def _masked_pairs(name: str, mask: Tensor) -> Tensor:
    """Return True where a boolean mask (True masks) or an additive one (-inf masks) masks."""
    if mask.dtype == torch.bool:
        return mask
    if not mask.is_floating_point():
        raise TypeError(
            f"{name} must be boolean or float, but it is {mask.dtype}; pass {name}.bool()"
        )
    # torch masks with -inf, Hugging Face with the most negative number of the dtype
    is_masked = mask <= torch.finfo(mask.dtype).min
    if (mask[~is_masked] != 0).any():
        raise RegardError(
            f"{name} must hold only 0 and -inf to be a mask, but it holds other values; "
            "pass it as bias= instead"
        )
    return is_masked


def _split_heads(mask: Tensor, heads: int | None) -> Tensor:
    """Split torch's (batch * heads, query, key) into (batch, head, query, key)."""
    if mask.ndim != 3:
        return mask
    if not heads or len(mask) % heads:
        raise RegardError(
            f"a 3-D attn_mask is (batch * heads, query, key) and needs heads= to be split, "
            f"but heads is {heads!r} and the first axis has size {len(mask)}"
        )
    split: Tensor = mask.unflatten(0, (-1, heads))
    return split
