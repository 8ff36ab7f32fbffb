"""Heads on their way through views: parted from the width, moved about, folded into the batch."""

from math import prod
from typing import NamedTuple

from torch import Tensor

MOVES = {"transpose", "permute", "movedim", "swapaxes", "T", "mT", "H", "mH"}
REGROUPS = {"view", "reshape", "view_as", "flatten", "unflatten"}
"""Names of functions that change the order of axes, and of those that join or part them."""


class Heads(NamedTuple):
    """How many heads a tensor has, and where they are; axes are counted from the end."""

    many: int = 1
    axis: int = -2
    rest: int = -1  # the width of a head, which lay beside them
    folded: bool = False  # whether they share their axis with the batch
    first: bool = False  # of those that do: head by head, and not sentence by sentence

    def after(self, name: str, before: Tensor, after: Tensor) -> "Heads":
        """Follow heads through a function that lays a tensor out anew."""
        if name not in MOVES and before.shape == after.shape:
            return self
        sizes = tuple(before.shape), tuple(after.shape)
        found = self._regrouped(*sizes) if name in REGROUPS else None
        return self._found(before, after) if found is None else found

    def stay(self, before: Tensor, after: Tensor) -> bool:
        """Tell whether what was computed of a tensor has the heads where it had them."""
        return before.ndim == after.ndim and before.shape[self.axis] == after.shape[self.axis]

    def apart(self, rows: Tensor) -> Tensor:
        """Bring rows to (batch, head, row, width) whose heads come first, or share an axis."""
        if self.folded:
            return self._unfold(rows) if self.axis == -3 and rows.ndim == 3 else rows
        if self.many == 1 or rows.ndim != -self.axis or rows.shape[0] != self.many:
            return rows
        return rows.transpose(0, 1) if rows.ndim == 4 else rows[None] if rows.ndim == 3 else rows

    def _unfold(self, rows: Tensor) -> Tensor:
        if rows.shape[0] % self.many:
            return rows
        sizes = (self.many, -1) if self.first else (-1, self.many)
        parted: Tensor = rows.unflatten(0, sizes)
        return parted.transpose(0, 1) if self.first else parted

    def _found(self, before: Tensor, after: Tensor) -> "Heads":
        """Find axes again by size and step through memory; forget heads that are not there."""
        if self.many == 1 or before.ndim < -self.axis:
            return NO_HEADS
        axis = _again(before, after, self.axis)
        rest = self.rest if self.folded else _again(before, after, self.rest)
        if axis is None or rest is None:
            return NO_HEADS
        return self._replace(axis=axis, rest=rest)

    def _regrouped(self, old: tuple[int, ...], new: tuple[int, ...]) -> "Heads | None":
        """Say what a view does to heads; None if it does nothing to them."""
        if self.folded:
            # rows below each other, as to mask them, are soon laid out as before
            return self if min(len(old), len(new)) < 3 else self._unfolded(old, new)
        if len(new) > len(old) and _parts_the_last(old, new):
            return Heads(new[-2])
        batch = len(new) - 3
        if len(new) == len(old) - 1 and batch >= 0 and _joins(old, new, batch):
            own = len(old) + self.axis
            if own in (batch, batch + 1) and old[own] == self.many > 1 and self.rest == -1:
                return folded(self.many, first=own == batch)
        if len(new) == len(old) == 3 and new[0] == old[0] and 0 < new[2] < old[2]:
            # (position, batch, width) to (position, batch · head, width of a head)
            return Heads(old[2] // new[2], -2, folded=True) if old[2] % new[2] == 0 else None
        return None

    def _unfolded(self, old: tuple[int, ...], new: tuple[int, ...]) -> "Heads | None":
        batch = len(old) - 3
        own = batch if self.first else batch + 1
        if len(new) == len(old) + 1 and _joins(new, old, batch) and new[own] == self.many:
            return Heads(self.many, own - len(new))
        return None


NO_HEADS = Heads()


def folded(many: int, first: bool = False) -> Heads:
    """Say that so many heads share the batch's axis, where (batch, row, width) has it."""
    return Heads(many, -3, folded=True, first=first)


def _again(before: Tensor, after: Tensor, axis: int) -> int | None:
    known = before.shape[axis], before.stride(axis)
    found = [n for n in range(after.ndim) if (after.shape[n], after.stride(n)) == known]
    return found[0] - after.ndim if len(found) == 1 else None


def _joins(old: tuple[int, ...], new: tuple[int, ...], axis: int) -> bool:
    """Tell whether an axis and the one behind it become one."""
    return new == (*old[:axis], old[axis] * old[axis + 1], *old[axis + 2 :])


def _parts_the_last(old: tuple[int, ...], new: tuple[int, ...]) -> bool:
    """Tell whether some of the last axes, none as long, make up what was the last one."""
    return new[-1] < old[-1] and any(prod(new[-n:]) == old[-1] for n in range(2, len(new)))
