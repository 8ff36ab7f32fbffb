"""Continuations that share one cache: who sees which of its keys."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Tensor

MIN_PRUNED_KEYS = 16  # keys, among which none is worth forgetting


class BeamTree(NamedTuple):
    """Several continuations of each sentence, the keys of all of which lie in one cache.

    Step by step, a new key of each continuation is written behind those before. A continuation
    that goes on from another's past sees what that one saw: this table changes, no key moves. And
    all continuations of a sentence look at one memory, in one product. Keys of continuations that
    were given up are seen by no one; now and then, when there are many, they are forgotten.
    """

    visible: Bool[Tensor, "sentence continuation key"]
    positions: Int[Tensor, "sentence key"]  # the position at which each key stands
    steps: int = 0
    diverged: bool = False  # whether there are keys that not every continuation sees
    pruned_to: int = MIN_PRUNED_KEYS  # how many keys there were when some had been forgotten

    @classmethod
    def begin(cls, sentences: int, device: torch.device) -> "BeamTree":
        """Start with one continuation of each sentence, and no keys."""
        nothing = torch.ones(sentences, 1, 0, dtype=torch.bool, device=device)
        return cls(nothing, torch.zeros(sentences, 0, dtype=torch.long, device=device))

    def grow(self, continuations: int) -> "BeamTree":
        """Take a step: add a key for each continuation, which it alone sees."""
        own = torch.eye(continuations, dtype=torch.bool, device=self.visible.device)
        both = [self.visible.expand(-1, continuations, -1), own.expand(len(self.visible), -1, -1)]
        here = self.positions.new_full((len(self.visible), continuations), self.steps)
        return self._replace(
            visible=torch.cat(both, dim=-1),
            positions=torch.cat([self.positions, here], dim=-1),
            steps=self.steps + 1,
            diverged=self.diverged or continuations > 1,
        )

    def reorder(self, rows: Int[Tensor, " row"], sentences: int) -> "BeamTree":
        """Let each continuation see what the given one saw, counted over all sentences.

        Args:
            sentences: how many go on, with equally many continuations each.
        """
        each = len(rows) // max(sentences, 1)
        seen = self.visible.flatten(0, 1)[rows].unflatten(0, (sentences, each))
        own = rows[:: max(each, 1)] // self.visible.shape[1]  # the sentences that go on
        return self._replace(visible=seen, positions=self.positions[own])

    @property
    def should_prune(self) -> bool:
        """Whether there are twice as many keys as when the last were forgotten."""
        return self.diverged and self.visible.shape[-1] >= 2 * self.pruned_to

    def pruned(self) -> tuple["BeamTree", Int[Tensor, "sentence key"]]:
        """Forget what no continuation sees; tell which keys each sentence keeps, in their order.

        Sentences with fewer keys than others keep some that no one sees.
        """
        alive = self.visible.any(dim=1)
        count = int(alive.sum(dim=-1).max()) if len(alive) else 0
        keys = alive.to(torch.uint8).argsort(dim=-1, descending=True, stable=True)[:, :count]
        seen = self.visible.gather(-1, keys[:, None].expand(-1, self.visible.shape[1], -1))
        kept = self._replace(
            visible=seen,
            positions=self.positions.gather(-1, keys),
            pruned_to=max(count, MIN_PRUNED_KEYS),
        )
        return kept, keys

    @property
    def mask(self) -> Tensor | None:
        """Who may look where; None where everyone sees everything."""
        return self.visible if self.diverged else None
