"""Calls whose weights were computed by the model itself."""

import torch
from torch import Tensor

from regard._support.torch_modes import upcast
from regard.capture.calls.base import Shape
from regard.capture.calls.mask_analysis import fully_masked_keys, is_causal
from regard.capture.calls.vectors import QueryKeyVectors


class MaterializedWeights:
    """Attention written out in the model, so that its weights (batch, head, query, key) exist.

    Args:
        weights: as the model computed them, before dropout.
        values: (batch, key head, key, value), if known; they also identify a cache's keys.
        offset: position of the first query; by default the queries are at the end of the keys, or
            of those that a mask leaves to the last of them, as in a static cache.
        has_mask: whether a mask was applied, so that keys without any weight count as masked.
        extra_keys: keys at the end that are no positions.
        vectors: queries and keys that the model computed the scores from, if known.
    """

    heads_independent = True

    def __init__(
        self,
        weights: Tensor,
        values: Tensor | None = None,
        offset: int | None = None,
        *,
        has_mask: bool = False,
        extra_keys: int = 0,
        vectors: QueryKeyVectors | None = None,
    ) -> None:
        batch, heads, queries, keys = weights.shape
        self._weights, self._has_mask, self._vectors = weights, has_mask, vectors
        self.values, self.raw_keys = values, values
        self.shape: Shape = (batch, heads, queries, keys)
        self.extra_keys = extra_keys
        self.offset = self._find_offset() if offset is None else offset
        self.is_causal = is_causal(weights != 0, self.offset, extra_keys)

    def _find_offset(self) -> int:
        queries, keys = self.shape[2], self.shape[3] - self.extra_keys
        if queries < keys and self._has_mask:
            seen = (self._weights[..., :keys] != 0).any(0).any(0)
            ends = (seen * torch.arange(1, keys + 1, device=seen.device)).amax(-1)
            shifts = (ends - torch.arange(queries, device=seen.device))[ends > 0]
            are_consecutive = bool((shifts == shifts[-1:]).all())  # not so if queries were chosen
            keys = int(ends[-1]) if are_consecutive and ends[-1] else keys
        return max(0, keys - queries)

    @property
    def elements(self) -> Tensor:
        """The weights as they were given, without a change of dtype."""
        return self._weights

    def visible_keys(self, stop: int) -> int:
        """Return the number of keys: all of them are there."""
        return self.shape[3]

    def weights(self, batch: slice, heads: list[int], rows: slice) -> Tensor:
        """Return weights (batch, head, row, key)."""
        return upcast(self._weights[batch, :, rows][:, heads])

    def fully_masked_keys(self) -> Tensor | None:
        """Return the keys (batch, key) without any weight; None if there was no mask."""
        return fully_masked_keys(self._weights != 0) if self._has_mask else None

    def vectors(self) -> QueryKeyVectors | None:
        """Return the queries and keys; None if the product they come from was not followed."""
        return self._vectors
