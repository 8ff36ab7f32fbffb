"""Views: the axes of their results, read from strides."""

from collections.abc import Callable, Iterable
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard.capture.axes.combining import merged
from regard.capture.axes.label_store import AxesOfResults, LabelledCall
from regard.capture.axes.labels import Axes, Axis, Factor, new_axis
from regard.capture.functions import (
    EXPANSIONS,
    RESHAPES,
    SLICES,
    SPLITS,
    TRANSPOSES,
    FunctionCall,
)

VIEWS = RESHAPES | TRANSPOSES | EXPANSIONS | SPLITS | SLICES
VIEWS |= {"unfold", "diagonal", "atleast_2d", "atleast_3d"}
VIEWS |= {"transpose_", "unsqueeze_", "squeeze_"}
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
    tensor = call.args[0]
    if not tensor.numel():
        return [None] * len(labelled.results)
    axes = labelled.axes(tensor)
    if tensor.is_contiguous() and _is_view_of_first(call):
        start = tensor.storage_offset()
        return [read_strides(axes, strided(x, start)) for x in call.results]
    views = strides_of_views(call.function, tensor, call.args[1:], call.kwargs)
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


class _Slice(NamedTuple):
    """A slice, with a hash."""

    start: int | None
    stop: int | None
    step: int | None


class _Part(NamedTuple):
    """A part of a factor that an axis of a view goes over."""

    factor: int  # index among the factors of the tensor, outermost first
    size: int
    step: int  # in the index of the factor


class _Reading(NamedTuple):
    """What the axes of a view are made of.

    Attributes:
        order: the axes of the tensor, if the view only has them in another order; -1 for a new one
            of size 1.
        axes: otherwise the parts of each axis, outermost first; None for one that is new.
    """

    order: tuple[int, ...] | None
    axes: tuple[tuple[_Part, ...] | None, ...] = ()


def strided(view: Tensor, start: int = 0) -> Strided:
    """Return how a view goes over a tensor that starts at an index of its storage."""
    return Strided(tuple(view.shape), view.stride(), int(view.storage_offset()) - start)


def strides_of_views(
    function: Callable[..., Any], tensor: Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Strided, ...]:
    """Return what the views would be if the tensor were contiguous; layers alike share them."""
    dtype = torch.float32 if tensor.is_floating_point() else tensor.dtype
    shape, options = tuple(tensor.shape), tuple(kwargs.items())
    try:
        return _run_on_stand_in(function, shape, dtype, _with_hash(args), options)
    except TypeError:  # other arguments without a hash
        return _run_on_stand_in.__wrapped__(function, shape, dtype, args, options)


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
    views = function(stand_in, *_without_hash(args), **dict(options))
    return tuple(strided(x) for x in (views if isinstance(views, tuple | list) else (views,)))


def _with_hash(value: Any) -> Any:
    """Replace slices by something with a hash; lists of sizes become tuples."""
    if isinstance(value, slice):
        bounds = (value.start, value.stop, value.step)
        if not all(x is None or type(x) is int for x in bounds):
            raise TypeError("a bound is a tensor, whose value may change")
        return _Slice(*bounds)
    return tuple(map(_with_hash, value)) if isinstance(value, tuple | list) else value


def _without_hash(value: Any) -> Any:
    if isinstance(value, _Slice):
        return slice(*value)
    return tuple(map(_without_hash, value)) if isinstance(value, tuple) else value


def read_strides(axes: Axes, view: Strided) -> Axes:
    """Return the axes of a view of a contiguous tensor with the given axes, from its strides."""
    sizes = tuple([tuple([f.size for f in axis]) for axis in axes])
    try:
        reading = _read(sizes, view)
    except TypeError:  # symbolic sizes have no hash
        reading = _read.__wrapped__(sizes, view)
    if reading.order is not None:
        return tuple([axes[n] if n >= 0 else () for n in reading.order])
    factors = [factor for axis in axes for factor in axis]
    found: list[Axis] = []
    for parts, size, step in zip(reading.axes, view.shape, view.strides, strict=True):
        if parts is None:
            found.append(new_axis(size, is_broadcast=step == 0))
        else:
            found.append(tuple([_part_of(factors[n], size, step) for n, size, step in parts]))
    if view.offset or [factor for factor in factors if factor.start]:
        found = _with_starts(found, factors, view.offset)
    return tuple([merged(axis) if len(axis) > 1 else axis for axis in found])


def _part_of(factor: Factor, size: int, step: int) -> Factor:
    return Factor(factor.origin, size, factor.stride * step)


@lru_cache(maxsize=4096)
def _read(sizes: tuple[tuple[int, ...], ...], view: Strided) -> _Reading:
    """Read a view of a tensor whose axes have factors of the given sizes."""
    if (order := _read_permutation(sizes, view)) is not None:
        return _Reading(order)
    strides: list[tuple[int, int, int]] = []  # of the factors, innermost first: index, size, stride
    stride = 1
    flat = [size for axis in sizes for size in axis]
    for n in reversed(range(len(flat))):
        strides.append((n, flat[n], stride))
        stride *= flat[n]
    return _Reading(
        None,
        tuple(
            () if size == 1 else None if step == 0 else _read_axis(strides, size, step)
            for size, step in zip(view.shape, view.strides, strict=True)
        ),
    )


def _read_permutation(sizes: tuple[tuple[int, ...], ...], view: Strided) -> tuple[int, ...] | None:
    """Return the order of the axes in a view; None if the view is no permutation of them."""
    by_stride: dict[tuple[int, int], int] = {}
    stride = 1
    for n in reversed(range(len(sizes))):
        if sizes[n]:
            by_stride[prod(sizes[n]), stride] = n
            stride *= prod(sizes[n])
    found = [
        by_stride.pop(key, None) if key[0] > 1 else -1
        for key in zip(view.shape, view.strides, strict=True)
    ]
    if view.offset or by_stride or None in found:
        return None
    return tuple(n for n in found if n is not None)


def _read_axis(
    factors: list[tuple[int, int, int]], size: int, step: int
) -> tuple[_Part, ...] | None:
    """Return the parts, outermost first, that an axis of a size and stride goes over."""
    parts: list[_Part] = []
    for n, factor_size, stride in factors:
        if not stride <= step < stride * factor_size or step % stride:
            continue
        times = step // stride
        if (size - 1) * times < factor_size:
            return (_Part(n, size, times), *parts[::-1])
        if factor_size % times or size % (factor_size // times):
            return None
        inner = factor_size // times
        parts.append(_Part(n, inner, times))
        size, step = size // inner, stride * factor_size
        if size == 1:
            return tuple(parts[::-1])
    return None


def _with_starts(axes: list[Axis], factors: list[Factor], offset: int) -> list[Axis]:
    """Add where a factor, and a slice of it, starts to the outermost part that is left of it."""
    stride = 1
    for factor in reversed(factors):
        shift = factor.start + offset // stride % factor.size * factor.stride
        stride *= factor.size
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
