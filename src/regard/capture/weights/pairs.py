"""Pairs of rows that were compared by broadcasting, as in additive scores or by joined vectors."""

from torch import Tensor

from regard.capture.axes import Axis, AxisTracker, Origin, origins_of
from regard.capture.functions import JOINS, FunctionCall

COMBINES = {"add", "sub", *JOINS} - {"stack"}
"""Functions that compare each row of one tensor with each row of another, if these are repeated."""


class PairedRows:
    """The axes of all pairs of rows that were compared.

    Args:
        axes: the labels of tensors.
    """

    def __init__(self, axes: AxisTracker) -> None:
        self._axes = axes
        self._pairs: set[frozenset[Origin]] = set()

    def update(self, call: FunctionCall) -> None:
        """Note the axes of rows of which the two arguments of a function have one each."""
        if len(call.inputs) != 2 or not isinstance(call.out, Tensor):
            return
        shapes = {x.shape for x in call.inputs}
        if call.name not in JOINS and call.out.shape in shapes:
            return  # one of them at most is repeated
        if any(map(self._axes.is_constant, call.inputs)):
            return
        first, second = (self._own_rows(x, call.out) for x in call.inputs)
        pairs = ((a, b) for a in first - second for b in second - first)
        self._pairs |= {frozenset((a, b)) for a, b in pairs}

    def last_axis(self, tensor: Tensor) -> Axis | None:
        """Return the last axis of the pairs of rows that a tensor has; None if it has none."""
        if not self._pairs or tensor.ndim < 2:
            return None
        axes = self._axes.axes(tensor)
        known = origins_of(axes)
        rows = frozenset().union(*(pair for pair in self._pairs if pair <= known))
        return next((axis for axis in reversed(axes) if origins_of([axis]) & rows), None)

    def _own_rows(self, tensor: Tensor, out: Tensor) -> set[Origin]:
        """Return the origins of a result's axes of rows that an argument has, not repeated."""
        if not out.is_floating_point() or tensor.ndim > out.ndim:
            return set()
        missing = out.ndim - tensor.ndim
        pairs = zip(self._axes.axes(tensor), self._axes.axes(out)[missing:], strict=True)
        return {f.origin for own, axis in pairs if _are_rows(own) for f in axis}


def _are_rows(axis: Axis) -> bool:
    return bool(axis) and not any(f.origin.is_feature or f.origin.is_broadcast for f in axis)
