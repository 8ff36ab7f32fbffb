"""Labels of axes: where an axis comes from, and which part of it."""

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from typing import NamedTuple

from torch import Tensor

_NO_ORIGINS: "frozenset[Origin]" = frozenset()


@dataclass(eq=False, repr=False, slots=True)
class Origin:
    """An axis as it first appeared: of an input, or made by a function.

    Attributes:
        size: number of its indices.
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
        alias_of: the root that it is an alias of.
    """

    size: int
    _: KW_ONLY
    is_feature: bool = False
    is_projected: bool = False
    is_stack: bool = False
    has_branches: bool = False
    is_broadcast: bool = False
    is_compared: bool = False
    side: int = 0
    is_attended: bool = False
    is_leading: bool = False
    is_input: bool = False
    is_inner: bool = False
    is_images: bool = False
    may_be_feature: bool = False
    others: "tuple[Origin, ...]" = ()
    maker: int | None = None
    is_flat: bool = False
    table: list[int] | None = None
    parts: "frozenset[Origin]" = _NO_ORIGINS
    gathers: "tuple[Gather, ...]" = ()
    # of an alias; no reference to itself, so that it is freed with its last axis, not by the
    # garbage collector
    alias_of: "Origin | None" = None

    @property
    def root(self) -> "Origin":
        """Itself, or the origin that it is an alias of.

        Scores of a text with itself have its rows twice, once as queries and once as keys; the
        latter are an alias.
        """
        return self if self.alias_of is None else self.alias_of


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
    origin = Origin(
        size,
        is_feature=is_projected,
        is_projected=is_projected,
        is_stack=is_stack,
        is_broadcast=is_broadcast,
    )
    return (Factor(origin, size),)


def new_axes(tensor: Tensor) -> Axes:
    """Return axes with new origins for a tensor."""
    axes = tuple(new_axis(size) for size in tensor.shape)
    if tensor.ndim == 2 and axes[0]:
        axes[0][0].origin.is_flat = True
    return axes


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


def axis_sizes(axes: Axes) -> list[int]:
    """Return the shape of a tensor with these axes."""
    return [axis[0].size if len(axis) == 1 else axis_size(axis) for axis in axes]


def is_repeated(axis: Axis) -> bool:
    """Return whether any part of an axis are copies."""
    return any(factor.origin.is_broadcast for factor in axis)
