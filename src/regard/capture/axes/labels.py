"""Labels of axes: where an axis comes from, and which part of it."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor

from regard._support.torch_modes import in_functorch

_NO_PARTS: "frozenset[Origin]" = frozenset()
_MAX_PARTS = 8  # origins that a joined axis remembers


class Origin:
    """An axis as it first appeared: of an input, or made by a function.

    Attributes:
        is_feature: made by a projection, or the width of vectors that were compared.
        is_projected: made by a projection.
        is_stack: made by stacking tensors.
        has_branches: made by stacking what different parameters made, as of experts.
        is_broadcast: made by repeating a tensor, or by choosing items of it.
        is_compared: the queries or the keys of scores.
        side: of the product that compared them: 1 or 2, or 0 if it was not compared.
        is_attended: rows that were compared before, which are therefore no batch.
        is_leading: the first axis of a tensor that no function made.
        is_input: an axis of a tensor that no function made.
        is_inner: such an axis of an image or the like, of a single item.
        is_images: the first axis of images or the like, of which a video has several.
        may_be_feature: such an axis where features are: the last one, or the second of an image.
        others: the other axes of that input that may be features.
        maker: id of the parameter that made it, if it is a projection by one.
        is_flat: the first axis of a matrix, as of the tokens of all texts of a batch.
        table: for a rolled axis, the index of each element in the origin `root`.
        parts: the origins of axes that were joined to this one.
        gathers: the indices that picked its elements of other axes, as edges pick nodes.
    """

    __slots__ = (
        *("_other_root", "gathers", "has_branches", "is_attended", "is_broadcast", "is_compared"),
        *("is_feature", "is_flat", "is_images", "is_inner", "is_input", "is_leading"),
        *(
            "is_projected",
            "is_stack",
            "maker",
            "may_be_feature",
            "others",
            "parts",
            "side",
            "size",
            "table",
        ),
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
        self.is_attended = self.is_compared = self.is_flat = self.is_leading = False
        self.is_input = self.is_inner = self.is_images = self.has_branches = False
        self.may_be_feature = False
        self.others: tuple[Origin, ...] = ()
        self.maker: int | None = None
        # no reference to itself, so that it is freed with its last axis, not by the collector
        self._other_root = None if root is None else root.root
        self.table = table
        self.side = 0
        self.parts: frozenset[Origin] = _NO_PARTS
        self.gathers: tuple[Gather, ...] = ()

    @property
    def root(self) -> "Origin":
        """Itself, or the origin that it is an alias of.

        Scores of a text with itself have its rows twice, once as queries and once as keys; the
        latter are an alias.
        """
        return self if self._other_root is None else self._other_root


class Gather(NamedTuple):
    """Elements that were picked of an axis by an index, which may have some of them repeatedly."""

    size: int  # of that axis
    source: Origin | None  # of that axis, if it is one
    rows: Tensor  # (element,), indices into that axis
    is_own: bool = True  # whether it made this axis; else that of a tensor it was combined with
    is_learned: bool = False  # whether it picked parameters, such as those of a type of edge


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


def gathered_axis(axis: Axis, index: Tensor, *, is_learned: bool = False) -> Axis:
    """Return the axis of elements that an index picks of another axis, perhaps of a parameter."""
    size, is_feature = axis_size(axis), bool(axis) and all(f.origin.is_feature for f in axis)
    is_whole = len(axis) == 1 and axis[0][1:] == (axis[0].origin.size, 1, 0)
    if is_whole and len(index) == size and _is_permutation(index):
        table = [index_at(axis, n) for n in index.tolist()]
        new: Axis = (Factor(Origin(size, root=axis[0].origin, table=table), size),)
        new[0].origin.is_feature = is_feature
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


def as_rows(axis: Axis, side: int) -> Axis:
    """Return the axis with aliases of its origins that are rows, not features."""
    return aliased(axis, side)


def aliased(axis: Axis, side: int = 0) -> Axis:
    """Return the axis with aliases of its origins."""
    aliases: dict[Origin, Origin] = {}
    for factor in axis:
        origin = factor.origin
        if origin not in aliases:
            alias = Origin(origin.size, root=origin, table=origin.table)
            alias.is_stack, alias.is_broadcast = origin.is_stack, origin.is_broadcast
            alias.has_branches, alias.maker = origin.has_branches, origin.maker
            alias.gathers = origin.gathers
            alias.side = side or origin.side
            if side:
                alias.is_compared = origin.root.is_attended = True
            else:
                alias.is_feature, alias.is_projected = origin.is_feature, origin.is_projected
                alias.is_compared = origin.is_compared
            aliases[origin] = alias
    return tuple(f._replace(origin=aliases[f.origin]) for f in axis)


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


def index_at(axis: Axis, index: int) -> int:
    """Return the index in the root origin of an axis with a single factor."""
    (factor,) = axis
    found = factor.start + index * factor.stride
    table = factor.origin.table
    return found if table is None else table[found % len(table)]


def origins_of(axes: Iterable[Axis]) -> frozenset[Origin]:
    """Return the origins of all factors of axes."""
    return frozenset(factor.origin for axis in axes for factor in axis)


def axis_size(axis: Axis) -> int:
    """Return the number of indices of an axis."""
    size = 1
    for factor in axis:
        size *= factor.size
    return size


def is_repeated(axis: Axis) -> bool:
    """Return whether any part of an axis are copies."""
    return any(factor.origin.is_broadcast for factor in axis)


def axis_sizes(axes: Axes) -> list[int]:
    """Return the shape of a tensor with these axes."""
    return [axis[0].size if len(axis) == 1 else axis_size(axis) for axis in axes]


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
