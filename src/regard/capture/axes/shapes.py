"""Functions that join, repeat, pad, reduce or overwrite axes."""

from collections.abc import Iterable

from torch import Tensor

from regard.capture.axes.broadcasting import broadcast_axes
from regard.capture.axes.combining import joined_axis, merged, shared_axis, split_factor
from regard.capture.axes.label_store import AxesOfResults, LabelledCall
from regard.capture.axes.labels import Axes, Axis, Factor, axis_size, new_axes, new_axis


def join(call: LabelledCall) -> AxesOfResults:
    """Label concatenated or stacked tensors."""
    return [_joined(call)]


def resize(call: LabelledCall) -> AxesOfResults:
    """Label a tensor of which one or more axes were repeated, padded or picked."""
    return [_resized(call)]


def reduce(call: LabelledCall) -> AxesOfResults:
    """Label sums, means and the like over some axes."""
    return [_reduced(call, out) for out in call.results]


def overwrite(call: LabelledCall) -> AxesOfResults:
    """Label a tensor that was written to: its rows are no repetitions any more."""
    tensor = call.first
    pairs = zip(new_axes(tensor), call.axes(tensor), strict=True)
    return [
        tuple(fresh if any(f.origin.is_broadcast for f in axis) else axis for fresh, axis in pairs)
    ]


def as_complex(call: LabelledCall) -> AxesOfResults:
    """Label complex numbers, whose last axis were their parts."""
    return [call.axes(call.first)[:-1]]


def as_real(call: LabelledCall) -> AxesOfResults:
    """Label the real and imaginary parts of complex numbers."""
    return [(*call.axes(call.first), new_axis(2, is_projected=True))]


def unfold(call: LabelledCall) -> AxesOfResults:
    """Label the sliding windows of an image."""
    return [_unfolded(call)]


def _joined(labelled: LabelledCall) -> Axes | None:
    """Return the axes of concatenated tensors; parts of one axis become that axis again."""
    call, out = labelled.call, labelled.results[0]
    name, dim = call.name, int(call.argument("dim", 1, call.kwargs.get("axis", 0))) % out.ndim
    inputs = [
        x for x in labelled.inputs if x.numel()
    ] or labelled.inputs  # an empty cache is no part
    parts = [labelled.axes(x) for x in inputs if x.ndim == out.ndim - (name == "stack")]
    if len(parts) != len(inputs):
        return None
    if len(parts) == 1 and name != "stack":
        return parts[0]
    split = split_factor(parts)
    if name == "stack":
        split = split or split_factor([_features_of(axes) for axes in parts])
        new = _stack_axis(parts) if split is None else (split,)
        parts = [(*axes[:dim], (), *axes[dim:]) for axes in parts]
    elif split is not None:
        new = merged((split, *parts[0][dim]))
    elif not any(axes[dim] for axes in parts):
        new = _stack_axis(parts)
    else:
        new = joined_axis([axes[dim] for axes in parts], out.shape[dim])
    by_size = sorted(range(len(parts)), key=lambda n: -inputs[n].numel())
    axes, *others = (parts[n] for n in by_size)  # that of the text rather than of a class token
    for other in others:
        pairs = zip(axes, other, strict=True)
        axes = tuple(shared_axis(known, axis, other) for known, axis in pairs)
    if split is not None:
        axes = tuple(
            tuple(f._replace(start=0) if f.origin is split.origin else f for f in axis)
            for axis in parts[0]
        )
    return (*axes[:dim], new, *axes[dim + 1 :])


def _features_of(axes: Axes) -> Axes:
    """Return the features of axes alone: the rows of heads may have been shifted one by one."""
    return tuple(tuple(f for f in axis if f.origin.is_feature) for axis in axes)


def _stack_axis(parts: list[Axes]) -> Axis:
    """Return the axis along which tensors are stacked.

    Its elements are branches if each was made by parameters of its own, as experts are. The states
    of a recurrent network were made by the same parameters at each step.
    """
    tables = {f.origin for axes in parts for axis in axes for f in axis if f.origin.table}
    shifts = {origin.root for origin in tables}
    is_shifted = len(tables) > len(shifts)  # then they are no versions of the same rows
    axis = new_axis(len(parts), is_stack=not is_shifted)
    makers = [{f.origin.maker for axis in axes for f in axis} - {None} for axes in parts]
    for factor in axis:
        is_disjoint = len(frozenset().union(*makers)) == sum(map(len, makers))
        factor.origin.has_branches = all(makers) and is_disjoint
    return axis


def _resized(labelled: LabelledCall) -> Axes | None:
    """Return the axes of a tensor of which one or more axes were repeated, padded or picked."""
    call, tensor, out = labelled.call, labelled.first, labelled.results[0]
    axes = ((),) * (out.ndim - tensor.ndim) + labelled.axes(tensor)
    if len(axes) != out.ndim:
        return None
    name = call.name
    padding = call.argument("pad", 1, ()) if name == "pad" else ()
    resized: list[Axis] = []
    for n, (axis, size) in enumerate(zip(axes, out.shape, strict=True)):
        before, times = axis_size(axis), size // max(axis_size(axis), 1)
        if size == before and name != "index_select":
            resized.append(axis)
        elif name == "pad" and len(axis) == 1:
            left = padding[2 * (out.ndim - 1 - n)]
            start = axis[0].start - left * axis[0].stride
            resized.append((axis[0]._replace(size=size, start=start),))
        elif name.startswith(("repeat", "tile")) and times * before == size:
            copies = new_axis(times, is_broadcast=True)
            resized.append((*axis, *copies) if "interleave" in name else (*copies, *axis))
        else:
            is_picked = name != "index_select" or n == int(call.argument("dim", 1)) % out.ndim
            resized.append(new_axis(size) if is_picked else axis)
    return tuple(resized)


def _reduced(call: LabelledCall, out: Tensor) -> Axes | None:
    tensor = call.first
    axes = call.axes(tensor)
    if out.ndim == tensor.ndim:
        return broadcast_axes(call.store, [tensor], out.shape)
    dim = call.call.argument("dim", 1, call.call.kwargs.get("axis"))
    if dim is None or isinstance(dim, Tensor | str):
        return None
    removed = {d % tensor.ndim for d in ((dim,) if isinstance(dim, int) else dim)}
    return tuple(axis for n, axis in enumerate(axes) if n not in removed)


def _unfolded(labelled: LabelledCall) -> Axes | None:
    """Return the axes (batch, channel · offset, window) of the sliding windows of an image."""
    call = labelled.call
    image = call.args[0]
    if image.ndim != 4:
        return None
    batch, channel, *sides = labelled.axes(image)
    options = (("kernel_size", None), ("dilation", 1), ("padding", 0), ("stride", 1))
    arguments = [call.argument(name, n, x) for n, (name, x) in enumerate(options, start=1)]
    pairs = [(x, x) if isinstance(x, int) else tuple(x) for x in arguments]
    offsets: list[Factor] = []
    windows: list[Factor] = []
    for side, size, *numbers in zip(sides, image.shape[2:], *pairs, strict=True):
        kernel, dilation, padding, stride = numbers
        if len(side) != 1 or side[0][1:] != (size, 1, 0):
            return None
        count = (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
        offsets.append(Factor(side[0].origin, kernel, dilation))
        windows.append(Factor(side[0].origin, count, stride, -padding))
    return (batch, merged((*channel, *_long(offsets))), merged(_long(windows)))


def _long(factors: Iterable[Factor]) -> Axis:
    """Return an axis without the factors of size 1."""
    return tuple(factor for factor in factors if factor.size > 1)
