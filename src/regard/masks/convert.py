"""Masks of other libraries, read into this one's convention."""

import torch
from torch import Tensor

from regard.masks.base import Mask, as_mask
from regard.masks.lengths import padding


def from_torch(
    attn_mask: Tensor | None = None,
    key_padding_mask: Tensor | None = None,
    heads: int | None = None,
) -> Mask | None:
    """Read the masks of `nn.MultiheadAttention`, where True means *may not look*.

    A float mask must hold 0 and -inf only; anything else is a bias, not a mask.
    Three axes there are (batch * heads, query, key), so `heads` is needed to part them.
    """
    mask = None if attn_mask is None else as_mask(~_parted(_hidden("attn_mask", attn_mask), heads))
    if key_padding_mask is None:
        return mask
    keep = padding(~_hidden("key_padding_mask", key_padding_mask))
    return keep if mask is None else mask & keep


def from_hf(attention_mask: Tensor) -> Mask:
    """Read a Hugging Face mask: (batch, key) with 1 to keep, or four axes, 0 or True to keep."""
    if attention_mask.ndim == 2:
        if ((attention_mask != 0) & (attention_mask != 1)).any():
            raise ValueError(
                "a (batch, key) attention_mask must hold 1 to keep and 0 to hide, but it holds "
                "other numbers; documents(ids) parts packed texts, bias= takes numbers to add"
            )
        return padding(attention_mask.bool())
    if attention_mask.ndim != 4:
        raise ValueError(
            f"attention_mask must be (batch, key) or (batch, head, query, key), "
            f"but its shape is {tuple(attention_mask.shape)}"
        )
    if attention_mask.dtype == torch.bool:
        return as_mask(attention_mask)
    return as_mask(~_hidden("attention_mask", attention_mask))


def _hidden(name: str, mask: Tensor) -> Tensor:
    """Find the hidden pairs of a boolean mask (True hides) or an additive one."""
    if mask.dtype == torch.bool:
        return mask
    if not mask.is_floating_point():
        raise TypeError(
            f"{name} must be boolean or float, but it is {mask.dtype}; {name}.bool() would do"
        )
    # torch hides with -inf, Hugging Face with the most negative number of the dtype
    hidden = mask <= torch.finfo(mask.dtype).min
    if (mask[~hidden] != 0).any():
        raise ValueError(
            f"{name} must hold only 0 and -inf to be read as a mask, but it holds other "
            "numbers; hand it over as bias= instead"
        )
    return hidden


def _parted(hidden: Tensor, heads: int | None) -> Tensor:
    """Part torch's (batch * heads, query, key) into (batch, head, query, key)."""
    if hidden.ndim != 3:
        return hidden
    if not heads or len(hidden) % heads:
        raise ValueError(
            f"a 3-D attn_mask is (batch * heads, query, key) and needs heads= to part it, "
            f"but heads is {heads!r} and the first axis {len(hidden)}"
        )
    parted: Tensor = hidden.unflatten(0, (-1, heads))
    return parted
