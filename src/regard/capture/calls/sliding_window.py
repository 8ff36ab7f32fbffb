"""A call over a cache that has dropped its first keys, as it would be had it kept them unseen."""

import torch
from torch import Tensor
from torch.nn.functional import pad

from regard.capture.calls.base import Asked


class Sliding:
    """A call whose first key is the `dropped`-th of its text, as a sliding window leaves it."""

    def __init__(self, asked: Asked, dropped: int) -> None:
        self._asked, self._dropped = asked, dropped
        batch, heads, queries, keys = asked.sizes
        self.sizes = (batch, heads, queries, dropped + keys)
        self.apart, self.causal, self.added = asked.apart, asked.causal, asked.added
        self.offset = dropped + asked.offset
        self.memory = self._behind(asked.memory)
        self.values = self._behind(asked.values)

    def reach(self, stop: int) -> int:
        """Count the first keys that rows before `stop` may see."""
        return self._dropped + self._asked.reach(stop)

    def weigh(self, batch: slice, heads: list[int], rows: slice) -> Tensor:
        """Compute weights (batch, head, row, key): none for what was dropped."""
        return pad(self._asked.weigh(batch, heads, rows), (self._dropped, 0))

    def hidden(self) -> Tensor:
        """Tell which keys (batch, key) are hidden from everyone: what was dropped, and by masks."""
        batch, _, _, keys = self._asked.sizes
        hidden = self._asked.hidden()
        if hidden is None:
            hidden = torch.zeros(batch, keys, dtype=torch.bool, device="cpu")
        return pad(hidden, (self._dropped, 0), value=True)

    def _behind(self, rows: Tensor | None) -> Tensor | None:
        """Put empty rows where those were that are gone."""
        return None if rows is None else pad(rows, (0, 0, self._dropped, 0))
