"""Calls of torch's scaled dot-product attention."""

from typing import Any

import torch
from torch import Tensor

from regard._support.torch_modes import upcast
from regard.capture.calls.base import (
    Shape,
    masked_softmax,
    round_like_autocast,
    select_heads,
    to_four_axes,
)
from regard.capture.calls.mask_analysis import apply_mask, as_tensor, fully_masked_keys, is_causal
from regard.capture.calls.vectors import QueryKeyVectors

CAUSAL_ROWS = 64  # computed at once: later blocks see more keys, which halves the work


class SDPACall:
    """A call of `torch.nn.functional.scaled_dot_product_attention`.

    Takes that function's arguments; `extra_keys` are known from elsewhere. Groups (`enable_gqa`)
    follow from the shapes, and weights are those before dropout.
    """

    heads_independent = True

    def __init__(
        self,
        queries: Tensor,
        keys: Tensor,
        values: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: Any = 0.0,
        is_causal: bool = False,
        *,
        scale: float | None = None,
        enable_gqa: bool = False,
        extra_keys: int = 0,
    ) -> None:
        del dropout_p, enable_gqa
        self.extra_keys = extra_keys
        self.scale = queries.shape[-1] ** -0.5 if scale is None else scale
        self.values: Tensor | None = to_four_axes(values)
        self.raw_keys: Tensor | None = to_four_axes(keys)
        leading = queries.shape[:-3], keys.shape[:-3]
        num_axes = queries.ndim
        self.queries = to_four_axes(round_like_autocast(queries))
        self.keys = to_four_axes(round_like_autocast(keys))
        batch = len(self.queries) if len(self.keys) == 1 else len(self.keys)
        heads = max(self.queries.shape[1], self.keys.shape[1])
        self.shape: Shape = (batch, heads, self.queries.shape[2], self.keys.shape[2])
        self.mask = None if attn_mask is None else self._expand_mask(attn_mask, num_axes, leading)
        self._causal_flag = is_causal
        self.offset = self._find_offset()
        self.is_causal = is_causal or self._has_causal_mask()

    def visible_keys(self, stop: int) -> int:
        """Return a number of leading keys beyond which no row before `stop` can attend."""
        return min(stop, self.shape[3]) if self._causal_flag else self.shape[3]

    def weights(self, batch: slice, heads: list[int], rows: slice) -> Tensor:
        """Compute weights (batch, head, row, key), of the keys visible to the last row."""
        start, stop, _ = rows.indices(self.shape[2])
        num_keys = self.visible_keys(stop)
        queries, keys = self._select(batch, heads, slice(start, stop), num_keys)
        mask = None if self.mask is None else self.mask[batch, :, start:stop, :num_keys]
        if mask is not None and mask.shape[1] > 1:
            mask = mask[:, heads]
        if not self._has_triangle(queries, keys):
            return self._block(queries, keys, mask, heads, start)
        num_items = len(range(*batch.indices(self.shape[0])))
        weights = queries.new_zeros(num_items, len(heads), stop - start, num_keys)
        keys = keys.contiguous()  # once, not for every block
        for first in range(0, stop - start, CAUSAL_ROWS):
            block = slice(first, first + CAUSAL_ROWS)
            visible = self.visible_keys(min(start + block.stop, stop))
            weights[:, :, block, :visible] = self._block(
                queries[:, :, block],
                keys[:, :, :visible],
                None if mask is None else mask[:, :, block, :visible],
                heads,
                start + first,
            )
        return weights

    def _has_triangle(self, queries: Tensor, keys: Tensor) -> bool:
        """Return whether much of the weights is hidden, so that blocks of rows save work."""
        if torch.is_grad_enabled() and (queries.requires_grad or keys.requires_grad):
            return False
        num_rows = queries.shape[2]
        return self._causal_flag and num_rows > CAUSAL_ROWS and 2 * num_rows >= keys.shape[2]

    def _block(
        self, queries: Tensor, keys: Tensor, mask: Tensor | None, heads: list[int], start: int
    ) -> Tensor:
        """Compute the weights of rows from `start` on, over the first keys."""
        scores = self._score(queries, keys)
        if mask is not None:
            scores = apply_mask(scores, mask)
        if self._causal_flag and keys.shape[2] > start + 1:
            later = scores[..., start:]
            hidden = later.new_ones(later.shape[2:], dtype=torch.bool).triu_(1)
            later.masked_fill_(hidden, -torch.inf)
        return self._normalise(scores, heads)

    def fully_masked_keys(self) -> Tensor | None:
        """Return the keys (batch, key) masked for all queries; None if there is no mask."""
        batch, _, queries, keys = self.shape
        if self.mask is not None:
            return fully_masked_keys(self.mask)
        if not self._causal_flag:
            return None
        masked = torch.ones(batch, keys, dtype=torch.bool, device=self.keys.device)
        masked[:, :queries] = False
        return masked

    def vectors(self) -> QueryKeyVectors:
        """Return the queries and keys."""
        return QueryKeyVectors(self.queries, self.keys, self.scale)

    def _score(self, queries: Tensor, keys: Tensor) -> Tensor:
        """Return scores (batch, head, row, key) before the mask."""
        return torch.matmul(queries * self.scale, keys.transpose(-2, -1))

    def _normalise(self, scores: Tensor, heads: list[int]) -> Tensor:
        """Return the softmax of masked scores of some heads, which may be overwritten."""
        del heads
        return masked_softmax(scores, has_mask=self.mask is not None)

    def _select(
        self, batch: slice, heads: list[int], rows: slice, num_keys: int
    ) -> tuple[Tensor, Tensor]:
        """Select queries, and the keys of the group that each head belongs to."""
        num_heads, key_heads = self.shape[1], self.keys.shape[1]
        query_heads = heads if self.queries.shape[1] > 1 else [0] * len(heads)
        groups = [head * key_heads // num_heads for head in heads]
        queries = self.queries[batch] if len(self.queries) > 1 else self.queries
        keys = self.keys[batch] if len(self.keys) > 1 else self.keys
        queries, keys = queries[:, :, rows], keys[:, :, :num_keys]
        return upcast(select_heads(queries, query_heads)), upcast(select_heads(keys, groups))

    def _expand_mask(
        self, mask: Tensor, num_axes: int, leading: tuple[torch.Size, torch.Size]
    ) -> Tensor:
        """Expand a mask to the axes that the queries had, and bring both to four alike."""
        mask = as_tensor(mask)
        mask = mask[(None,) * (num_axes - mask.ndim)]
        if max(map(len, leading)) > 1:
            mask = mask.expand(*torch.broadcast_shapes(*leading), -1, -1, -1)
        batch, _, queries, keys = self.shape
        return to_four_axes(mask).expand(batch, -1, queries, keys)

    def _find_offset(self) -> int:
        """Find the first query's position, in a static cache from the mask of its empty part."""
        queries, keys = self.shape[2], self.shape[3] - self.extra_keys
        if self._causal_flag or queries >= keys:
            return 0
        if self.mask is None:
            return keys - queries
        visible = ~fully_masked_keys(self.mask[:, :, -1:, :keys])
        positions = visible.any(dim=0).nonzero()
        return max(0, int(positions.max()) + 1 - queries) if len(positions) else 0

    def _has_causal_mask(self) -> bool:
        return self.mask is not None and is_causal(self.mask, self.offset, self.extra_keys)
