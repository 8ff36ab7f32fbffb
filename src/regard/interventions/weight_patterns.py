"""What replaces weights and contexts of a call: named patterns, and blocks of given tensors."""

from typing import Literal

import torch
from torch import Tensor

from regard.errors import RegardError
from regard.interventions.editable import EditableAttention

Pattern = Literal["uniform", "previous", "itself", "first"]
PATTERNS = ("uniform", "previous", "itself", "first")


def normalise(weights: Tensor) -> Tensor:
    """Divide each row by its sum; a row without any weight stays zeros."""
    total = weights.sum(-1, keepdim=True)
    return weights / total.masked_fill(total == 0, 1.0)


def named_pattern(pattern: str, weights: Tensor, offset: int) -> Tensor:
    """Return a pattern (batch, head, query, key) of the same shape and visible keys."""
    visible = (weights != 0).to(weights.dtype)
    if pattern == "uniform":
        return normalise(visible)
    queries, keys = weights.shape[2:]
    own = torch.arange(offset, offset + queries, device=weights.device)
    target = {"previous": own - 1, "itself": own, "first": torch.zeros_like(own)}[pattern]
    target = target.clamp(0, keys - 1)
    one_hot = torch.nn.functional.one_hot(target, keys).to(weights.dtype)
    return one_hot.expand_as(weights)


def select_block(weights: Tensor, attention: EditableAttention, heads: list[int]) -> Tensor:
    """Return the items, heads, rows and columns that a call has of the weights of a whole text."""
    first, keys = attention.location.first_key, attention.shape[3]
    full = weights.flatten(0, 1) if weights.ndim == 5 else weights  # windows are items of their own
    full = _select_rows(full, attention, heads)[..., first : first + keys]
    wanted = (attention.shape[0], len(heads), *attention.shape[2:])
    if not _fits(full, wanted):
        raise RegardError(
            f"set_weights must give {attention.location.name} weights (batch, head, query, key) of "
            f"the shape {wanted}, but gave {tuple(weights.shape)}"
        )
    return full.expand(wanted)


def select_context(
    contexts: Tensor, attention: EditableAttention, heads: list[int], width: int
) -> Tensor:
    """Return the items, heads and rows that a call has of the contexts of a whole text."""
    full = _select_rows(contexts, attention, heads)
    wanted = (attention.shape[0], len(heads), attention.shape[2], width)
    if not _fits(full, wanted):
        raise RegardError(
            f"set_context must give {attention.location.name} contexts (batch, head, query, value) "
            f"of the shape {wanted}, but gave {tuple(contexts.shape)}"
        )
    return full.expand(wanted)


def _select_rows(full: Tensor, attention: EditableAttention, heads: list[int]) -> Tensor:
    """Return the items, heads and rows that a call has of a tensor (batch, head, query, …)."""
    location, (batch, num_heads, queries, _) = attention.location, attention.shape
    full = full[(None,) * (4 - full.ndim)]
    if full.shape[0] > batch:
        full = full[location.first_item : location.first_item + batch]
    is_whole = full.shape[1] == num_heads or location.is_part
    full = full[:, attention.model_heads(heads)] if is_whole and full.shape[1] > 1 else full
    if full.shape[2] > queries:
        full = full[:, :, location.offset : location.offset + queries]
    return full


def _fits(tensor: Tensor, shape: tuple[int, ...]) -> bool:
    """Return whether a tensor can be expanded to a shape."""
    return tensor.ndim == len(shape) and all(
        size in (1, n) for size, n in zip(tensor.shape, shape, strict=True)
    )
