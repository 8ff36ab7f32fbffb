"""Labels of axes: where an axis comes from, and which part of it."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor

_MAX_PARTS = 8  # origins that a joined axis remembers


class Origin:
    """An axis as it first appeared: of an input, or made by a function.

    Attributes:
        root: itself, or the origin that it is an alias of. Scores of a text with itself have its
            rows twice, once as queries and once as keys; the latter are an alias.
        is_feature: made by a projection, or the width of vectors that were compared.
        is_projected: made by a projection.
        is_stack: made by stacking tensors.
        is_broadcast: made by repeating a tensor.
        is_compared: the queries or the keys of scores.
        is_attended: rows that were compared before, which are therefore no batch.
        is_flat: the first axis of a matrix, as of the tokens of all texts of a batch.
        table: for a rolled axis, the index of each element in the origin `root`.
        parts: the origins of axes that were joined to this one.
    """

    __slots__ = (
        *("is_attended", "is_broadcast", "is_compared", "is_feature", "is_flat", "is_projected"),
        *("is_stack", "parts", "root", "size", "table"),
    )

    def __init__(
        self,
        size: int,
        *,
        is_projected: bool = False,
        is_stack: bool = False,
        is_broadcast: bool = False,
        root: "Origin | None" = None,
        table: "list[int] | None" = None,
    ) -> None:
        self.size, self.is_projected, self.is_feature = size, is_projected, is_projected
        self.is_stack, self.is_broadcast = is_stack, is_broadcast
        self.is_attended = self.is_compared = self.is_flat = False
        self.root: Origin = self if root is None else root.root
        self.table = table
        self.parts: frozenset[Origin] = frozenset()


class Factor(NamedTuple):
    """A part of an axis: `size` indices of an origin, `stride` apart, from `start` on."""

    origin: Origin
    size: int
    stride: int = 1
    start: int = 0


Axis = tuple[Factor, ...]  # outermost first; empty if the axis has size 1
Axes = tuple[Axis, ...]


def new_axis(
    size: int,
    *,
    is_projected: bool = False,
    is_stack: bool = False,
    is_broadcast: bool = False,
) -> Axis:
    """Return an axis with a new origin."""
    if size == 1:
        return ()
    origin = Origin(size, is_projected=is_projected, is_stack=is_stack, is_broadcast=is_broadcast)
    return (Factor(origin, size),)


def new_axes(tensor: Tensor) -> Axes:
    """Return axes with new origins for a tensor."""
    axes = tuple(new_axis(size) for size in tensor.shape)
    if tensor.ndim == 2 and axes[0]:
        axes[0][0].origin.is_flat = True
    return axes


def as_rows(axis: Axis) -> Axis:
    """Return the axis with aliases of its origins that are rows, not features."""
    return _aliased(axis, is_rows=True)


def _aliased(axis: Axis, is_rows: bool = False) -> Axis:
    aliases: dict[Origin, Origin] = {}
    for factor in axis:
        origin = factor.origin
        if origin not in aliases:
            alias = Origin(origin.size, root=origin, table=origin.table)
            alias.is_stack, alias.is_broadcast = origin.is_stack, origin.is_broadcast
            if is_rows:
                alias.is_compared = origin.root.is_attended = True
            else:
                alias.is_feature, alias.is_projected = origin.is_feature, origin.is_projected
                alias.is_compared = origin.is_compared
            aliases[origin] = alias
    return tuple(f._replace(origin=aliases[f.origin]) for f in axis)


def with_aliases(axes: Axes) -> Axes:
    """Give the later of two axes over the same rows an alias: they are queries and keys."""
    known: set[tuple[Origin, int, int]] = set()
    found: list[Axis] = []
    for axis in axes:
        keys = {(f.origin, f.stride, f.start) for f in axis}
        found.append(_aliased(axis) if keys & known else axis)
        known |= keys
    return tuple(found)


def index_at(axis: Axis, index: int) -> int:
    """Return the index in the root origin of an axis with a single factor."""
    (factor,) = axis
    found = factor.start + index * factor.stride
    table = factor.origin.table
    return found if table is None else table[found % len(table)]


def positions(factors: Sequence[Factor], root: Origin) -> Tensor | None:
    """Return the index in an origin for every combination of factors; None if none is of it.

    Args:
        factors: some of which are parts of the origin; the others do not change the index.
        root: the origin.

    Returns:
        A tensor with an axis per factor.
    """
    parts: dict[int, Tensor] = {}  # by the table of a rolled origin, which its aliases share
    tables: dict[int, list[int] | None] = {}
    for n, factor in enumerate(factors):
        if factor.origin.root is root:
            key = id(factor.origin.table)
            steps = torch.arange(factor.size, device="cpu") * factor.stride + factor.start
            steps = steps.view(*(-1 if m == n else 1 for m in range(len(factors))))
            parts[key], tables[key] = parts.get(key, 0) + steps, factor.origin.table
    if not parts:
        return None
    index = torch.zeros([factor.size for factor in factors], dtype=torch.long, device="cpu")
    for key, part in parts.items():
        table = tables[key]
        index += part if table is None else torch.tensor(table, device="cpu")[part % len(table)]
    return index


def origins_of(axes: Iterable[Axis]) -> frozenset[Origin]:
    """Return the origins of all factors of axes."""
    return frozenset(factor.origin for axis in axes for factor in axis)


def axis_size(axis: Axis) -> int:
    """Return the number of indices of an axis."""
    size = 1
    for factor in axis:
        size *= factor.size
    return size


def axis_sizes(axes: Axes) -> list[int]:
    """Return the shape of a tensor with these axes."""
    return [axis_size(axis) for axis in axes]


def preferred_axis(known: Axis, other: Axis, other_axes: Axes) -> Axis:
    """Choose between the labels that an axis has in two operands.

    Repeated axes and those that were split from another axis are less informative than an axis of
    its own.
    """
    if not other or not known:
        return other or known
    if any(f.origin.is_broadcast for f in known):
        return known if any(f.origin.is_broadcast for f in other) else other
    rest = {f.origin.root for axis in other_axes if axis is not other for f in axis}
    is_split = any(f.origin.root in rest or f.origin.is_feature for f in other)
    return other if any(f.origin.is_flat for f in known) and not is_split else known


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
