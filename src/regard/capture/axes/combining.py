"""Axes made of others: picked, repeated, merged or joined, and the choice between two labels."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor

from regard._support.torch_modes import in_functorch
from regard.capture.axes.labels import (
    Axes,
    Axis,
    Factor,
    Gather,
    Origin,
    axis_size,
    index_at,
    is_repeated,
    new_axis,
)

_MAX_PARTS = 8  # origins that a joined axis remembers


def gathered_axis(axis: Axis, index: Tensor, *, is_learned: bool = False) -> Axis:
    """Return the axis of elements that an index picks of another axis, perhaps of a parameter."""
    size, is_feature = axis_size(axis), bool(axis) and all(f.origin.is_feature for f in axis)
    is_whole = len(axis) == 1 and axis[0][1:] == (axis[0].origin.size, 1, 0)
    if is_whole and len(index) == size and _is_permutation(index):
        table = [index_at(axis, n) for n in index.tolist()]
        root = axis[0].origin.root
        permuted = Origin(size, is_feature=is_feature, alias_of=root, table=table)
        new: Axis = (Factor(permuted, size),)
    else:
        new = new_axis(len(index), is_projected=is_feature)
    source = axis[0].origin.root if len(axis) == 1 else None
    for factor in new:
        factor.origin.gathers = (Gather(size, source, index.detach(), is_learned=is_learned),)
    return new


def _is_permutation(index: Tensor) -> bool:
    if index.is_meta or in_functorch():
        return False
    numbers = torch.arange(len(index), device=index.device, dtype=index.dtype)
    return torch.equal(index.sort().values, numbers)


def share_gathers(axis: Axis, other: Axis) -> None:
    """Add the gathers of an axis to those of another that has the same elements."""
    if len(axis) == len(other) == 1 and axis[0].origin is not other[0].origin:
        known = axis[0].origin.gathers
        new = [g for g in other[0].origin.gathers if all(g.rows is not x.rows for x in known)]
        axis[0].origin.gathers = (*known, *(g._replace(is_own=False) for g in new))


def aliased(axis: Axis) -> Axis:
    """Return the axis with aliases of its origins."""
    aliases = {factor.origin: _alias(factor.origin) for factor in axis}
    return tuple(f._replace(origin=aliases[f.origin]) for f in axis)


def as_compared(axis: Axis, side: int) -> Axis:
    """Return the axis as rows that a product compares, not features, on a side of the product."""
    compared = aliased(axis)
    for factor in compared:
        alias = factor.origin
        alias.is_feature = alias.is_projected = False
        alias.is_compared, alias.side = True, side
        alias.root.is_attended = True
    return compared


def _alias(origin: Origin) -> Origin:
    return Origin(
        origin.size,
        is_feature=origin.is_feature,
        is_projected=origin.is_projected,
        is_stack=origin.is_stack,
        has_branches=origin.has_branches,
        is_broadcast=origin.is_broadcast,
        is_compared=origin.is_compared,
        side=origin.side,
        maker=origin.maker,
        table=origin.table,
        gathers=origin.gathers,
        alias_of=origin.root,
    )


def with_aliases(axes: Axes) -> Axes:
    """Give the later of two axes over the same rows an alias: they are queries and keys."""
    all_keys = [(f.origin, f.stride, f.start) for axis in axes for f in axis]
    if len(set(all_keys)) == len(all_keys):
        return axes
    known: set[tuple[Origin, int, int]] = set()
    found: list[Axis] = []
    for axis in axes:
        keys = {(f.origin, f.stride, f.start) for f in axis}
        found.append(aliased(axis) if keys & known else axis)
        known |= keys
    return tuple(found)


def without_features(axes: Axes) -> Axes:
    """Give axes that are features new origins: what was chosen, such as beams, repeats items."""
    return tuple(
        new_axis(axis_size(axis), is_broadcast=True)
        if any(f.origin.is_feature for f in axis)
        else axis
        for axis in axes
    )


def preferred_axis(known: Axis, other: Axis, other_axes: Axes) -> Axis:
    """Choose between the labels that an axis has in two operands.

    Repeated axes and those that were split from another axis are less informative than an axis of
    its own.
    """
    if not other or not known:
        return other or known
    if is_repeated(known):
        return known if is_repeated(other) else other
    rest = {f.origin.root for axis in other_axes if axis is not other for f in axis}
    is_split = any(f.origin.root in rest or f.origin.is_feature for f in other)
    return other if any(f.origin.is_flat for f in known) and not is_split else known


def shared_axis(known: Axis, other: Axis, other_axes: Axes) -> Axis:
    """Choose between the labels that an axis has in two operands; keep the indices of both."""
    axis = preferred_axis(known, other, other_axes)
    share_gathers(axis, known if axis is other else other)
    return axis


def merged(axis: Axis) -> Axis:
    """Join neighbouring factors that are contiguous in their origin."""
    found: list[Factor] = []
    for factor in axis:
        last = found[-1] if found else None
        if (
            last is not None
            and last.origin is factor.origin
            and last.stride == factor.stride * factor.size
        ):
            start = last.start + factor.start
            found[-1] = Factor(last.origin, last.size * factor.size, factor.stride, start)
        else:
            found.append(factor)
    return tuple(found)


def split_factor(parts: Sequence[Axes]) -> Factor | None:
    """Return the factor that enumerates tensors which are consecutive parts of one tensor."""
    starts = [{f.origin: f.start for axis in axes for f in axis} for axes in parts]
    shapes = [[[f[:3] for f in axis] for axis in axes] for axes in parts]
    if len(parts) < 2 or any(shape != shapes[0] for shape in shapes):
        return None
    moving = [o for o in starts[0] if len({s[o] for s in starts}) > 1]
    if len(moving) != 1:
        return None
    origin = moving[0]
    values = [s[origin] for s in starts]
    steps = {b - a for a, b in pairwise(values)}
    if len(steps) != 1 or (step := steps.pop()) <= 0:
        return None
    return Factor(origin, len(parts), step, values[0])


def joined_axis(axes: Sequence[Axis], size: int) -> Axis:
    """Return an axis of joined parts: of one origin again, or a new one."""
    origins = {f.origin for axis in axes for f in axis}
    is_feature = any(origin.is_feature for origin in origins)
    if len(origins) == 1 and all(axes):
        return (Factor(origins.pop(), size),)
    joined = new_axis(size, is_projected=is_feature)
    roots = {origin.root for origin in origins}
    parts = frozenset(roots).union(*(root.parts for root in roots))
    for factor in joined:  # a cache that is joined with each token would keep all of them alive
        factor.origin.parts = parts if len(parts) <= _MAX_PARTS else frozenset()
    return joined
