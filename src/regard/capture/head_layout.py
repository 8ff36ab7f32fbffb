"""Where the head axis of a tensor is: followed through views, transposes and reshapes.

Weights are reported as (batch, head, query, key), but textbooks and older libraries compute in
three axes: heads are split from the width, moved before the positions and folded into the batch
axis, (batch · head, query, key). Shapes alone cannot undo that, so the layout is followed from the
projection on.
"""

from math import prod
from typing import NamedTuple

from torch import Tensor

TRANSPOSES = {"transpose", "permute", "movedim", "swapaxes", "T", "mT", "H", "mH"}
RESHAPES = {"view", "reshape", "view_as", "flatten", "unflatten"}


class HeadLayout(NamedTuple):
    """The number of heads of a tensor and their axis; axes are counted from the end."""

    heads: int = 1
    axis: int = -2
    width_axis: int = -1  # the width of each head, which the heads were split from
    folded: bool = False  # heads share their axis with the batch
    heads_first: bool = False  # of folded ones: (head · batch) rather than (batch · head)

    def through(self, name: str, before: Tensor, after: Tensor) -> "HeadLayout":
        """Return the layout after a function of that name has changed the layout of a tensor."""
        if name not in TRANSPOSES and before.shape == after.shape:
            return self
        shapes = tuple(before.shape), tuple(after.shape)
        reshaped = self._through_reshape(*shapes) if name in RESHAPES else None
        return self._through_strides(before, after) if reshaped is None else reshaped

    def kept_by(self, before: Tensor, after: Tensor) -> bool:
        """Return whether the result of a computation has the heads on the same axis."""
        return before.ndim == after.ndim and before.shape[self.axis] == after.shape[self.axis]

    def split(self, tensor: Tensor) -> Tensor:
        """Return (batch, head, row, width) if the heads are folded or lead; else the tensor."""
        if self.folded:
            return self._unfold(tensor) if self.axis == -3 and tensor.ndim == 3 else tensor
        if self.heads == 1 or tensor.ndim != -self.axis or tensor.shape[0] != self.heads:
            return tensor
        if tensor.ndim == 4:
            return tensor.transpose(0, 1)
        return tensor[None] if tensor.ndim == 3 else tensor

    def _unfold(self, tensor: Tensor) -> Tensor:
        if tensor.shape[0] % self.heads:
            return tensor
        sizes = (self.heads, -1) if self.heads_first else (-1, self.heads)
        unfolded: Tensor = tensor.unflatten(0, sizes)
        return unfolded.transpose(0, 1) if self.heads_first else unfolded

    def _through_strides(self, before: Tensor, after: Tensor) -> "HeadLayout":
        """Find the axes again by size and stride; without a unique match there are no heads."""
        if self.heads == 1 or before.ndim < -self.axis:
            return NO_HEADS
        axis = _same_axis(before, after, self.axis)
        width = self.width_axis if self.folded else _same_axis(before, after, self.width_axis)
        if axis is None or width is None:
            return NO_HEADS
        return self._replace(axis=axis, width_axis=width)

    def _through_reshape(self, old: tuple[int, ...], new: tuple[int, ...]) -> "HeadLayout | None":
        """Return the layout after a reshape that splits or folds heads; None for any other."""
        if self.folded:
            # two axes, as for applying a mask to rows, are usually reshaped back
            return self if min(len(old), len(new)) < 3 else self._through_unfold(old, new)
        if len(new) > len(old) and _splits_last_axis(old, new):
            return HeadLayout(new[-2])
        batch = len(new) - 3
        if len(new) == len(old) - 1 and batch >= 0 and _merges(old, new, batch):
            axis = len(old) + self.axis
            leads = axis == batch
            is_head_axis = axis in (batch, batch + 1) and old[axis] == self.heads > 1
            if is_head_axis and self.width_axis == -1:
                return folded_layout(self.heads, heads_first=leads)
        if len(new) == len(old) == 3 and new[0] == old[0] and 0 < new[2] < old[2]:
            # (position, batch, width) to (position, batch · head, width of a head)
            heads, rest = divmod(old[2], new[2])
            return HeadLayout(heads, -2, folded=True) if rest == 0 else None
        return None

    def _through_unfold(self, old: tuple[int, ...], new: tuple[int, ...]) -> "HeadLayout | None":
        batch = len(old) - 3
        axis = batch if self.heads_first else batch + 1
        if len(new) == len(old) + 1 and _merges(new, old, batch) and new[axis] == self.heads:
            return HeadLayout(self.heads, axis - len(new))
        return None


NO_HEADS = HeadLayout()


def folded_layout(heads: int, heads_first: bool = False) -> HeadLayout:
    """Return the layout of (batch · head, row, width)."""
    return HeadLayout(heads, -3, folded=True, heads_first=heads_first)


def _same_axis(before: Tensor, after: Tensor, axis: int) -> int | None:
    size_and_stride = before.shape[axis], before.stride(axis)
    matches = [n for n in range(after.ndim) if (after.shape[n], after.stride(n)) == size_and_stride]
    return matches[0] - after.ndim if len(matches) == 1 else None


def _merges(old: tuple[int, ...], new: tuple[int, ...], axis: int) -> bool:
    """Return whether a reshape merges an axis with the next one and changes nothing else."""
    return new == (*old[:axis], old[axis] * old[axis + 1], *old[axis + 2 :])


def _splits_last_axis(old: tuple[int, ...], new: tuple[int, ...]) -> bool:
    """Return whether two or more of the last axes, all shorter, make up the former last one."""
    return new[-1] < old[-1] and any(prod(new[-n:]) == old[-1] for n in range(2, len(new)))
