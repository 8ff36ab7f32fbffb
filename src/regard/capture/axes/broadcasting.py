"""Functions that compute each element from those at the same place in their arguments."""

import torch
from torch import Tensor

from regard.capture.axes.combining import share_gathers
from regard.capture.axes.label_store import AxesOfResults, LabelledCall, LabelStore
from regard.capture.axes.labels import Axes, Axis, axis_size, is_repeated, new_axis


def elementwise(call: LabelledCall) -> AxesOfResults:
    """Return the axes of results that are computed element by element.

    Attention weights come first: their labels are those that count.
    """
    inputs = call.inputs
    if call.weights is not None:
        inputs = [call.weights, *(x for x in inputs if x is not call.weights)]
    return [broadcast_axes(call.store, inputs, x.shape, call.weights) for x in call.results]


def broadcast_axes(
    store: LabelStore, inputs: list[Tensor], out: torch.Size, weights: Tensor | None = None
) -> Axes:
    """Return the axes of a result with the axes of its inputs, broadcast against each other.

    Also for any other function whose first input has as many axes: those of equal size stay. Axes
    of constants say least, since nothing of them is known but their size.
    """
    num_axes = len(out)
    known = [x for x in inputs if x in store and x.ndim <= num_axes]
    known = known or [x for x in inputs[:1] if x.ndim <= num_axes]
    known.sort(
        key=lambda x: (
            not x.is_floating_point(),
            x is not weights and store.labels(x).is_filled,
            -_num_equal(x.shape, out),
        )
    )
    known = [
        x for x in known if (x is inputs[0] and x.ndim == num_axes) or _broadcasts(x.shape, out)
    ]
    found: list[Axis | None] = [None] * num_axes
    is_feature = [False] * num_axes
    for tensor in known:
        for n, axis in enumerate(reversed(store.axes(tensor)), start=1):
            if n > num_axes:
                break
            is_feature[-n] |= any(f.origin.is_feature for f in axis)
            if axis_size(axis) == out[-n]:
                known_axis = found[-n] or axis
                if is_repeated(known_axis) and axis and not is_repeated(axis):
                    known_axis = axis
                found[-n] = known_axis
                share_gathers(known_axis, axis)
    return tuple(
        new_axis(size, is_projected=feature) if axis is None or (size > 1 and not axis) else axis
        for axis, size, feature in zip(found, out, is_feature, strict=True)
    )


def _num_equal(shape: torch.Size, out: torch.Size) -> int:
    return sum(a == b for a, b in zip(reversed(shape), reversed(out), strict=False))


def _broadcasts(shape: torch.Size, out: torch.Size) -> bool:
    pairs = zip(reversed(shape), reversed(out), strict=False)
    return len(shape) <= len(out) and all(a in (1, b) for a, b in pairs)
