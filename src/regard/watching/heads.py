"""Heads on their way through views: parted from the width, moved about, folded into the batch."""

from math import prod
from typing import NamedTuple

from torch import Tensor

MOVES = {"transpose", "permute", "movedim", "swapaxes", "T", "mT", "H", "mH"}
REGROUPS = {"view", "reshape", "view_as", "flatten", "unflatten"}
"""Names of functions that change the order of axes, and of those that join or part them."""


class Heads(NamedTuple):
    """How many heads a tensor has, and where they are."""

    many: int = 1
    axis: int = -2  # counted from the end
    folded: bool = False  # whether they share that axis with the batch
    first: bool = False  # of those that do: head by head, and not sentence by sentence

    def after(self, name: str, before: Tensor, after: Tensor) -> "Heads":
        """Follow heads through a function that lays a tensor out anew."""
        if name in MOVES:
            return self._moved(before, after)
        return self._regrouped(before, after) if name in REGROUPS else self

    def apart(self, rows: Tensor) -> Tensor:
        """Give heads an axis of their own that share the first of three with the batch."""
        if not self.folded or self.axis != -3 or rows.ndim != 3 or rows.shape[0] % self.many:
            return rows
        sizes = (self.many, -1) if self.first else (-1, self.many)
        parted: Tensor = rows.unflatten(0, sizes)
        return parted.transpose(0, 1) if self.first else parted

    def _moved(self, before: Tensor, after: Tensor) -> "Heads":
        """Find the axis again by its size and its step through memory, which no move changes."""
        if before.ndim < -self.axis:
            return self
        known = before.shape[self.axis], before.stride(self.axis)
        found = [n for n in range(after.ndim) if (after.shape[n], after.stride(n)) == known]
        return self._replace(axis=found[0] - after.ndim) if len(found) == 1 else self

    def _regrouped(self, before: Tensor, after: Tensor) -> "Heads":
        old, new = tuple(before.shape), tuple(after.shape)
        if self.folded and len(new) == len(old) + 1:
            return self._unfolded(old, new)
        if len(new) > len(old) and _parts_the_last(old, new):
            return Heads(new[-2])
        batch = len(new) - 3
        if len(new) == len(old) - 1 and batch >= 0 and _joins(old, new, batch):
            own = len(old) + self.axis
            if own in (batch, batch + 1) and old[own] > 1:
                return folded(old[own], first=own == batch)
        if len(new) == len(old) == 3 and new[0] == old[0] and 0 < new[2] < old[2]:
            # (position, batch, width) to (position, batch · head, width of a head)
            return Heads(old[2] // new[2], -2, folded=True) if old[2] % new[2] == 0 else self
        return self

    def _unfolded(self, old: tuple[int, ...], new: tuple[int, ...]) -> "Heads":
        batch = len(old) - 3
        own = batch if self.first else batch + 1
        if batch >= 0 and _joins(new, old, batch) and new[own] == self.many:
            return Heads(self.many, own - len(new))
        return self


NO_HEADS = Heads()


def folded(many: int, first: bool = False) -> Heads:
    """Say that so many heads share the batch's axis, where (batch, row, width) has it."""
    return Heads(many, -3, True, first)


def _joins(old: tuple[int, ...], new: tuple[int, ...], axis: int) -> bool:
    """Tell whether an axis and the one behind it become one."""
    return new == (*old[:axis], old[axis] * old[axis + 1], *old[axis + 2 :])


def _parts_the_last(old: tuple[int, ...], new: tuple[int, ...]) -> bool:
    """Tell whether some of the last axes, none as long, make up what was the last one."""
    return new[-1] < old[-1] and any(prod(new[-n:]) == old[-1] for n in range(2, len(new)))
