"""Views: the axes of their results, read from strides."""

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard.capture.axes.label_store import AxesOfResults, LabelledCall
from regard.capture.axes.labels import Axes, Axis, Factor, axis_size, merged, new_axis
from regard.capture.functions import FunctionCall

VIEWS = {
    *("view", "reshape", "view_as", "reshape_as", "transpose", "permute", "movedim", "moveaxis"),
    *("swapaxes", "swapdims", "t", "adjoint", "unsqueeze", "squeeze", "flatten", "unflatten"),
    *("expand", "expand_as", "broadcast_to", "chunk", "split", "split_with_sizes", "unbind"),
    *("tensor_split", "narrow", "select", "slice", "__getitem__", "unfold", "T", "mT", "H", "mH"),
    *("_unsafe_view", "atleast_2d", "atleast_3d", "diagonal", "hsplit", "vsplit", "dsplit"),
    *("transpose_", "unsqueeze_", "squeeze_", "ravel"),
}
"""Functions whose result is a view of a contiguous tensor, so that its strides tell all."""


def view(call: LabelledCall) -> AxesOfResults | None:
    """Label views by their strides."""
    name, args = call.call.name, call.call.args
    if not isinstance(args[0], Tensor) or (name == "__getitem__" and _has_tensor(args[1:2])):
        return None
    return _through_view(call)


def as_strided(call: LabelledCall) -> AxesOfResults | None:
    """Label what is read from a tensor with given strides."""
    return _through_view(call) if call.first.is_contiguous() else None


def _through_view(labelled: LabelledCall) -> AxesOfResults:
    """Read the strides of views, of a contiguous stand-in without memory if need be."""
    call = labelled.call
    tensor, *rest = call.args
    if not tensor.numel():
        return [None] * len(labelled.results)
    axes = labelled.axes(tensor)
    if tensor.is_contiguous() and _is_view_of_first(call):
        start = tensor.storage_offset()
        return [read_strides(axes, strided(x, start)) for x in call.results]
    views = strides_of_views(call.function, tensor, rest, call.kwargs)
    return [read_strides(axes, x) for x in views]


def _is_view_of_first(call: FunctionCall) -> bool:
    """Return whether the results are views of a tensor that the function left as it was."""
    if call.name != "__getitem__":
        return call.name[-1] != "_"
    index = call.args[1]
    parts = index if isinstance(index, tuple) else (index,)
    return all(part is None or part is ... or type(part) in (int, slice) for part in parts)


def _has_tensor(values: Iterable[Any]) -> bool:
    """Return whether an index has tensors: then the result is no view."""
    for value in values:
        if isinstance(value, Tensor) or (isinstance(value, list) and value):
            return True
        if isinstance(value, tuple) and any(isinstance(x, Tensor | list) for x in value):
            return True
    return False


class Strided(NamedTuple):
    """How a view goes over the elements of a contiguous tensor."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int


def strided(view: Tensor, start: int = 0) -> Strided:
    """Return how a view goes over a tensor that starts at an index of its storage."""
    return Strided(tuple(view.shape), view.stride(), int(view.storage_offset()) - start)


def strides_of_views(
    function: Callable[..., Any], tensor: Tensor, args: list[Any], kwargs: dict[str, Any]
) -> tuple[Strided, ...]:
    """Return what the views would be if the tensor were contiguous; layers alike share them."""
    dtype = torch.float32 if tensor.is_floating_point() else tensor.dtype
    shape, options = tuple(tensor.shape), tuple(kwargs.items())
    try:
        return _run_on_stand_in(function, shape, dtype, tuple(args), options)
    except TypeError:  # an argument such as a slice has no hash
        return _run_on_stand_in.__wrapped__(function, shape, dtype, tuple(args), options)


@lru_cache(maxsize=1024)
def _run_on_stand_in(
    function: Callable[..., Any],
    shape: tuple[int, ...],
    dtype: torch.dtype,
    args: tuple[Any, ...],
    options: tuple[tuple[str, Any], ...],
) -> tuple[Strided, ...]:
    """Run a view function on a contiguous tensor without memory."""
    stand_in = torch.empty(shape, dtype=dtype, device="meta")
    views = function(stand_in, *args, **dict(options))
    return tuple(strided(x) for x in (views if isinstance(views, tuple | list) else (views,)))


def read_strides(axes: Axes, view: Strided) -> Axes | None:
    """Return the axes of a view of a contiguous tensor with the given axes, from its strides."""
    if (permuted := _read_permutation(axes, view)) is not None:
        return permuted
    factors: list[tuple[Factor, int]] = []  # innermost first, with strides in the tensor
    stride = 1
    for axis in reversed(axes):
        for factor in reversed(axis):
            factors.append((factor, stride))
            stride *= factor.size
    found: list[Axis] = []
    for size, step in zip(view.shape, view.strides, strict=True):
        if size == 1:
            found.append(())
        elif step == 0:
            found.append(new_axis(size, is_broadcast=True))
        else:
            read = _read_axis(factors, size, step)
            found.append(new_axis(size) if read is None else read)
    found = _with_starts(found, factors, view.offset)
    return tuple(merged(axis) for axis in found)


def _read_permutation(axes: Axes, view: Strided) -> Axes | None:
    """Return the axes of a view that only has them in another order; None if it is no such view."""
    by_stride: dict[tuple[int, int], Axis] = {}
    stride = 1
    for axis in reversed(axes):
        if axis:
            size = axis_size(axis)
            by_stride[size, stride] = axis
            stride *= size
    found = [
        by_stride.pop(key, None) if key[0] > 1 else ()
        for key in zip(view.shape, view.strides, strict=True)
    ]
    if view.offset or by_stride or None in found:
        return None
    return tuple(axis for axis in found if axis is not None)


def _read_axis(factors: list[tuple[Factor, int]], size: int, step: int) -> Axis | None:
    """Return the factors, outermost first, that an axis of a size and stride goes over."""
    pieces: list[Factor] = []
    for factor, stride in factors:
        if not stride <= step < stride * factor.size or step % stride:
            continue
        times = step // stride
        if (size - 1) * times < factor.size:
            return (Factor(factor.origin, size, factor.stride * times), *pieces[::-1])
        if factor.size % times or size % (factor.size // times):
            return None
        inner = factor.size // times
        pieces.append(Factor(factor.origin, inner, factor.stride * times))
        size, step = size // inner, stride * factor.size
        if size == 1:
            return tuple(pieces[::-1])
    return None


def _with_starts(axes: list[Axis], factors: list[tuple[Factor, int]], offset: int) -> list[Axis]:
    """Add where a factor, and a slice of it, starts to the outermost part that is left of it."""
    for factor, stride in factors:
        shift = factor.start + offset // stride % factor.size * factor.stride
        if not shift:
            continue
        parts = [
            (n, m)
            for n, axis in enumerate(axes)
            for m, f in enumerate(axis)
            if f.origin is factor.origin
        ]
        if not parts:
            continue
        n, m = max(parts, key=lambda at: axes[at[0]][at[1]].stride)
        moved = axes[n][m]._replace(start=axes[n][m].start + shift)
        axes[n] = (*axes[n][:m], moved, *axes[n][m + 1 :])
    return axes
