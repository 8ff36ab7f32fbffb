"""Elements that an index picks of an axis, or by which they are summed or rolled."""

from typing import Any

import torch
from torch import Tensor

from regard.capture.axes.broadcasting import broadcast_axes
from regard.capture.axes.combining import gathered_axis, share_gathers
from regard.capture.axes.label_store import AxesOfResults, LabelledCall, LabelStore
from regard.capture.axes.labels import Axes, Factor, Origin, axis_size, index_at, new_axis
from regard.capture.functions import FunctionCall, scatter_sum

_INDICES = (torch.int64, torch.int32)


def gather(call: LabelledCall) -> AxesOfResults | None:
    """Label elements that are picked by indices."""
    if (picked := _picked_indices(call.call)) is None:
        return None
    dim, indices = picked
    labels = call.store.labels(call.call.args[0])
    axes = labels.axes
    if len(indices) == 1 and indices[0].ndim == 1:
        rows = gathered_axis(axes[dim], indices[0], is_learned=labels.is_constant)
        call.store.has_gathers = True
        for factor in rows:
            factor.origin.is_flat = len(axes) == 2 and dim == 0
        new: Axes = (rows,)
    else:
        shape = torch.broadcast_shapes(*(index.shape for index in indices))
        new = broadcast_axes(call.store, indices, shape)
    return [(*axes[:dim], *new, *axes[dim + len(indices) :])]


def gather_along(call: LabelledCall) -> AxesOfResults | None:
    """Label elements that were picked along one axis, at indices of their own everywhere else.

    An axis along which the tensor is repeated, but not the indices, is that of the indices. As many
    elements as there are were put in another order.
    """
    function, out = call.call, call.results[0]
    tensor = function.args[0]
    if function.name == "gather":
        dim, index = function.argument("dim", 1), function.argument("index", 2)
    else:
        index, dim = function.argument("indices", 1), function.argument("dim", 2)
    if not isinstance(index, Tensor) or dim is None or tensor.ndim != out.ndim:
        return None
    if not tensor.is_floating_point():
        return None  # tokens and indices that are chosen: see `tracker.py`
    axes = []
    for axis, other, size in zip(call.axes(tensor), call.axes(index), out.shape, strict=True):
        is_copy = any(f.origin.is_broadcast for f in axis)
        is_row = bool(other) and not any(f.origin.is_feature for f in other)
        axes.append(other if axis_size(axis) != size or (is_copy and is_row) else axis)
    if tensor.shape[dim] != out.shape[dim]:
        axes[dim] = new_axis(out.shape[dim])
    return [tuple(axes)]


def share_gathers_of(store: LabelStore, inputs: list[Tensor]) -> None:
    """Note by which indices the axes of other tensors of the same shape were picked."""
    for other in inputs[1:]:
        if other.shape == inputs[0].shape:
            for axis, its in zip(store.axes(inputs[0]), store.axes(other), strict=True):
                share_gathers(axis, its)


def sum_by_index(call: LabelledCall) -> AxesOfResults | None:
    """Label a sum by index: with the axes of its source, but rows of its own."""
    name, out = call.call.name.strip("_"), call.results[0]
    if (summed := scatter_sum(call.call.renamed(name))) is None:
        return None
    axes = call.axes(summed.source)
    rows = new_axis(out.shape[summed.dim])
    for factor in rows:
        factor.origin.is_flat = out.ndim == 2 and summed.dim == 0
    return [(*axes[: summed.dim], rows, *axes[summed.dim + 1 :])]


def scatter(call: LabelledCall) -> AxesOfResults:
    """Label a tensor with other elements at some indices."""
    return [call.axes(call.first)]


def copy_rows(call: LabelledCall) -> AxesOfResults | None:
    """Label a tensor of which an index selects rows to write: with the other axes of their source.

    A static KV cache has been made elsewhere; its heads are those of the keys written to it.
    """
    function, out = call.call, call.results[0]
    dim, source = function.argument("dim", 1), function.argument("source", 3)
    if not isinstance(source, Tensor) or source.ndim != out.ndim:
        return None
    axes = list(call.axes(source))
    axes[dim] = call.axes(call.first)[dim]
    return [tuple(axes)]


def roll(call: LabelledCall) -> AxesOfResults:
    """Label a rolled tensor, whose indices are a table of the former ones."""
    tensor = call.call.args[0]
    shifts = _as_tuple(call.call.argument("shifts", 1))
    dims = _as_tuple(call.call.argument("dims", 2, ()))
    axes = list(call.axes(tensor))
    for shift, dim in zip(shifts, dims, strict=False):
        size, axis = tensor.shape[dim], axes[dim]
        if len(axis) == 1:
            indices = [index_at(axis, (i - shift) % size) for i in range(size)]
            origin = axis[0].origin
            rolled = Origin(size, is_feature=origin.is_feature, alias_of=origin.root, table=indices)
            axes[dim] = (Factor(rolled, size),)
    return [tuple(axes)]


def _picked_indices(call: FunctionCall) -> tuple[int, list[Tensor]] | None:
    """Return the first of the axes of which indices pick elements, and these indices."""
    tensor = call.args[0] if call.args else None
    if not isinstance(tensor, Tensor):
        return None
    dim, items = 0, []
    if call.name == "index_select":
        dim, items = int(call.argument("dim", 1)) % tensor.ndim, [call.argument("index", 2)]
    elif call.name == "__getitem__":
        items = list(call.args[1]) if isinstance(call.args[1], tuple) else [call.args[1]]
    while items and _is_whole(items[0]):
        dim, items = dim + 1, items[1:]
    while items and _is_whole(items[-1]):
        items = items[:-1]
    is_index = [isinstance(x, Tensor) and x.ndim > 0 and x.dtype in _INDICES for x in items]
    return (dim, items) if items and all(is_index) else None


def _is_whole(item: Any) -> bool:
    return isinstance(item, slice) and item == slice(None)


def _as_tuple(value: Any) -> tuple[int, ...]:
    return (value,) if isinstance(value, int) else tuple(value)
