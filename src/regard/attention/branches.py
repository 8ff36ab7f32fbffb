"""Continuations that share one cache: who sees which of its keys."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Tensor


class Branches(NamedTuple):
    """Several continuations of each sentence, the keys of all of which lie in one cache.

    Step by step, a new key of each continuation is written behind those before, and stays there.
    A continuation that goes on from another's past sees what that one saw: this table changes,
    no key moves. And all continuations of a sentence look at one memory, in one product.
    """

    seen: Bool[Tensor, "sentence continuation key"]
    places: Int[Tensor, " key"]  # the position at which each key stands
    steps: int = 0
    parted: bool = False  # whether there are keys that not every continuation sees

    @classmethod
    def begin(cls, sentences: int, device: torch.device) -> "Branches":
        """Start with one continuation of each sentence, and no keys."""
        nothing = torch.ones(sentences, 1, 0, dtype=torch.bool, device=device)
        return cls(nothing, torch.zeros(0, dtype=torch.long, device=device))

    def grow(self, continuations: int) -> "Branches":
        """Take a step: add a key for each continuation, which it alone sees."""
        own = torch.eye(continuations, dtype=torch.bool, device=self.seen.device)
        both = [self.seen.expand(-1, continuations, -1), own.expand(len(self.seen), -1, -1)]
        here = self.places.new_full((continuations,), self.steps)
        return Branches(
            seen=torch.cat(both, dim=-1),
            places=torch.cat([self.places, here]),
            steps=self.steps + 1,
            parted=self.parted or continuations > 1,
        )

    def reorder(self, rows: Int[Tensor, " row"], sentences: int) -> "Branches":
        """Let each continuation see what the given one saw, counted over all sentences.

        Args:
            sentences: how many go on, with equally many continuations each.
        """
        each = len(rows) // max(sentences, 1)
        return self._replace(seen=self.seen.flatten(0, 1)[rows].unflatten(0, (sentences, each)))

    @property
    def mask(self) -> Tensor | None:
        """Who may look where; None where everyone sees everything."""
        return self.seen if self.parted else None
