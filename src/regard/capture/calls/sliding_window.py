"""Calls over a cache that has dropped its first keys."""

import torch
from torch import Tensor
from torch.nn.functional import pad

from regard.capture.calls.base import CapturedCall, Shape
from regard.capture.calls.vectors import QueryKeyVectors


class SlidingWindowCall:
    """A call as it would be if its cache had kept the `dropped` first keys, and masked them.

    A sliding-window cache holds only the last keys of a text. Padding the call at the front puts
    its rows at their positions in the text.
    """

    def __init__(self, call: CapturedCall, dropped: int) -> None:
        self._call, self._dropped = call, dropped
        batch, heads, queries, keys = call.shape
        self.shape: Shape = (batch, heads, queries, dropped + keys)
        self.heads_independent = call.heads_independent
        self.is_causal, self.extra_keys = call.is_causal, call.extra_keys
        self.offset = dropped + call.offset
        self.raw_keys = self._pad_front(call.raw_keys)
        self.values = self._pad_front(call.values)

    def visible_keys(self, stop: int) -> int:
        """Return a number of leading keys beyond which no row before `stop` can attend."""
        return self._dropped + self._call.visible_keys(stop)

    def weights(self, batch: slice, heads: list[int], rows: slice) -> Tensor:
        """Compute weights (batch, head, row, key), which are 0 for dropped keys."""
        return pad(self._call.weights(batch, heads, rows), (self._dropped, 0))

    def fully_masked_keys(self) -> Tensor:
        """Return the keys (batch, key) that were dropped or are masked for all queries."""
        batch, _, _, keys = self._call.shape
        masked = self._call.fully_masked_keys()
        if masked is None:
            masked = torch.zeros(batch, keys, dtype=torch.bool, device="cpu")
        return pad(masked, (self._dropped, 0), value=True)

    def vectors(self) -> QueryKeyVectors | None:
        """Return the queries and keys, with zeros in place of dropped keys."""
        vectors = self._call.vectors()
        return None if vectors is None else vectors.pad_front(self._dropped)

    def _pad_front(self, rows: Tensor | None) -> Tensor | None:
        return None if rows is None else pad(rows, (0, 0, self._dropped, 0))
