"""The protocol of captured calls, and what its implementations share."""

from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from regard.capture.calls.vectors import QueryKeyVectors

Shape = tuple[int, int, int, int]


@runtime_checkable
class CapturedCall(Protocol):
    """One attention call, from which any block of its weights can be recomputed.

    Captures compute without gradients; a call that is made with gradients enabled has
    differentiable weights, as `regard.edit` needs them.
    """

    shape: Shape  # batch, head, query, key
    heads_independent: bool  # computing heads one by one costs no more than all at once
    is_causal: bool  # no query attends to a later key
    offset: int  # position of the first query among the keys
    extra_keys: int  # keys at the end that are no positions: learned biases, zeros
    raw_keys: Tensor | None  # (batch, key head, key, width) as passed: do they continue a cache?
    values: Tensor | None  # (batch, key head, key, value)

    def visible_keys(self, stop: int) -> int:
        """Return a number of leading keys beyond which no row before `stop` can attend."""
        ...

    def weights(self, batch: slice, heads: list[int], rows: slice) -> Tensor:
        """Compute weights (batch, head, row, key), of the keys visible to the last row."""
        ...

    def fully_masked_keys(self) -> Tensor | None:
        """Return the keys (batch, key) masked for all queries; None if there is no mask."""
        ...

    def vectors(self) -> QueryKeyVectors | None:
        """Return the queries and keys that the scores are dot products of; None if not known."""
        ...


def round_like_autocast(vectors: Tensor) -> Tensor:
    """Round vectors as autocast does before a product."""
    device = vectors.device.type
    if torch.is_autocast_enabled(device) and vectors.dtype == torch.float32:
        return vectors.to(torch.get_autocast_dtype(device))
    return vectors


def to_four_axes(vectors: Tensor) -> Tensor:
    """Bring vectors to (batch, head, row, width): merge leading axes, or add those missing."""
    if vectors.ndim > 4:
        return vectors.flatten(0, vectors.ndim - 4)
    if vectors.ndim == 3:
        return vectors[:, None]
    return vectors[None, None] if vectors.ndim == 2 else vectors


def masked_softmax(scores: Tensor, has_mask: bool) -> Tensor:
    """Compute softmax over the keys, in place if it may be; a fully masked row becomes zeros."""
    if not has_mask or not scores.shape[-1]:
        return torch.softmax(scores, dim=-1, out=None if scores.requires_grad else scores)
    fully_masked = scores.amax(dim=-1, keepdim=True) == -torch.inf
    if scores.requires_grad:  # softmax of nothing but -inf has NaN as its gradient
        return scores.masked_fill(fully_masked, 0.0).softmax(-1).masked_fill(fully_masked, 0.0)
    return torch.softmax(scores, dim=-1, out=scores).masked_fill_(fully_masked, 0.0)


def select_heads(rows: Tensor, heads: list[int]) -> Tensor:
    """Select heads, without a copy if they are all or one."""
    if heads == list(range(rows.shape[1])):
        return rows
    is_one = len(set(heads)) == 1
    return rows[:, heads[0] : heads[0] + 1] if is_one else rows[:, heads]


def repeat_groups(rows: Tensor, heads: list[int], num_heads: int) -> Tensor:
    """Return for each head what belongs to its group, of rows (batch, key head, …)."""
    return select_heads(rows, [head * rows.shape[1] // num_heads for head in heads])
