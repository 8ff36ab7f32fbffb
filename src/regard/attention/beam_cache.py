"""Beams that share one KV cache: which beam sees which of its keys (tree attention)."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Tensor

MIN_PRUNED_KEYS = 16  # with fewer keys than this left, pruning again is not worth its cost


class BeamTree(NamedTuple):
    """Visibility of the keys of several beams, all of which are in one cache.

    At each step a new key of each beam is appended to the cache. A beam that continues another's
    hypothesis sees what that one saw: this table changes, and no key is moved. All beams of a batch
    item attend to one memory, in one product. Keys of abandoned hypotheses are seen by no beam;
    when there are many, they are pruned.

    Attributes:
        visible: which beam sees which key.
        positions: the position of each key in its hypothesis.
        steps: number of steps so far.
        diverged: whether there are keys that not every beam sees.
        pruned_to: number of keys after the last pruning.

    Example:
        >>> tree = BeamTree.begin(1, torch.device("cpu")).grow(1)  # one beam
        >>> tree = tree.reorder(torch.tensor([0, 0]), 1).grow(2)  # continued by two
        >>> tree.visible.int()
        tensor([[[1, 1, 0],
                 [1, 0, 1]]], dtype=torch.int32)
    """

    visible: Bool[Tensor, "batch beam key"]
    positions: Int[Tensor, "batch key"]
    steps: int = 0
    diverged: bool = False
    pruned_to: int = MIN_PRUNED_KEYS

    @classmethod
    def begin(cls, batch_size: int, device: torch.device) -> "BeamTree":
        """Return the tree before the first step: one beam per batch item, and no keys."""
        visible = torch.ones(batch_size, 1, 0, dtype=torch.bool, device=device)
        return cls(visible, torch.zeros(batch_size, 0, dtype=torch.long, device=device))

    def grow(self, beams: int) -> "BeamTree":
        """Return the tree with one more key for each beam, which that beam alone sees."""
        own = torch.eye(beams, dtype=torch.bool, device=self.visible.device)
        visible = [self.visible.expand(-1, beams, -1), own.expand(len(self.visible), -1, -1)]
        position = self.positions.new_full((len(self.visible), beams), self.steps)
        return self._replace(
            visible=torch.cat(visible, dim=-1),
            positions=torch.cat([self.positions, position], dim=-1),
            steps=self.steps + 1,
            diverged=self.diverged or beams > 1,
        )

    def reorder(self, rows: Int[Tensor, " row"], batch_size: int) -> "BeamTree":
        """Return the tree of beams that continue the given ones.

        Args:
            rows: for each new beam the beam it continues, counted over the whole batch.
            batch_size: number of batch items that continue, with equally many beams each.
        """
        beams = len(rows) // max(batch_size, 1)
        visible = self.visible.flatten(0, 1)[rows].unflatten(0, (batch_size, beams))
        items = rows[:: max(beams, 1)] // self.visible.shape[1]  # the batch items that continue
        return self._replace(visible=visible, positions=self.positions[items])

    @property
    def should_prune(self) -> bool:
        """Whether there are twice as many keys as after the last pruning."""
        return self.diverged and self.visible.shape[-1] >= 2 * self.pruned_to

    def pruned(self) -> tuple["BeamTree", Int[Tensor, "batch key"]]:
        """Return the tree without keys that no beam sees, and the indices of the others, in order.

        Batch items with fewer such keys than others keep some that no beam sees.
        """
        is_used = self.visible.any(dim=1)
        count = int(is_used.sum(dim=-1).max()) if len(is_used) else 0
        keys = is_used.to(torch.uint8).argsort(dim=-1, descending=True, stable=True)[:, :count]
        visible = self.visible.gather(-1, keys[:, None].expand(-1, self.visible.shape[1], -1))
        tree = self._replace(
            visible=visible,
            positions=self.positions.gather(-1, keys),
            pruned_to=max(count, MIN_PRUNED_KEYS),
        )
        return tree, keys

    @property
    def mask(self) -> Tensor | None:
        """The mask of the beams' queries; None if every beam sees every key."""
        return self.visible if self.diverged else None
