"""Which axis of weights is the batch, window, head, query or key: roles, and their order.

The axes of a product with values have these roles: keys are summed over, queries are in the weights
alone, all others are shared with the values. Of the shared ones, heads were split from features,
windows from the axis of the queries or keys, and the rest is the batch. Where nothing is known of
the tensors, axes are taken in torch's order: batch, head, query, key.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Literal

from torch import Tensor

from regard.capture.axes import Axes, Factor, Origin, merged
from regard.capture.functions import Letters

Role = Literal["batch", "window", "head", "query", "key", "value"]
ROLES: tuple[Role, ...] = ("batch", "window", "head", "query", "key")


@dataclass(slots=True)
class Piece:
    """A factor of an axis and its role."""

    letter: Hashable
    factor: Factor | None  # None for an axis of size 1
    role: Role

    @property
    def size(self) -> int:
        """Number of indices."""
        return 1 if self.factor is None else self.factor.size


@dataclass(frozen=True, slots=True)
class Layout:
    """The roles of all axes of a tensor.

    Attributes:
        pieces: of all axes, in the order of the tensor.
        uncertain: roles that are a convention rather than known.
    """

    pieces: tuple[Piece, ...]
    uncertain: tuple[str, ...] = ()

    def size(self, role: Role) -> int:
        """Return the number of indices of a role."""
        return prod(piece.size for piece in self.pieces if piece.role == role)

    def arrange(self, tensor: Tensor, roles: Sequence[Role] = ROLES) -> Tensor:
        """Return the tensor as (batch · window, head, …), with an axis per further role."""
        split = tensor.reshape([piece.size for piece in self.pieces])
        order = [n for role in roles for n, x in enumerate(self.pieces) if x.role == role]
        shape = [self.size("batch") * self.size("window"), *(self.size(x) for x in roles[2:])]
        return split.permute(order).reshape(shape)

    def spans(self) -> "dict[Role, RowRange]":
        """Return the ranges of rows, items and heads, of the roles that have a single one."""
        if self.size("window") > 1:
            return {}
        found: dict[Role, RowRange] = {}
        for role in ("batch", "head", "query", "key"):
            axis = merged(tuple(p.factor for p in self.pieces if p.role == role and p.factor))
            if len(axis) == 1:
                (factor,) = axis
                found[role] = RowRange(factor.origin.root, factor.start, factor.size, factor.stride)
        return found

    def region(self) -> "frozenset[tuple[int, int, int, int]]":
        """Return which part of the origins of its axes a tensor has.

        For each origin that it has a part of: its identity, first index, end and stride.
        """
        by_origin: dict[Origin, list[Factor]] = {}
        for piece in self.pieces:
            if piece.factor is not None:
                by_origin.setdefault(piece.factor.origin, []).append(piece.factor)
        found = set()
        for origin, factors in by_origin.items():
            start, stride = sum(f.start for f in factors), min(f.stride for f in factors)
            end = start + prod(f.size for f in factors) * stride
            if (start, end, stride) != (0, origin.size, 1):
                found.add((id(origin), start, end, stride))
        return frozenset(found)


@dataclass(frozen=True, slots=True)
class RowRange:
    """A range of the rows of an origin, contiguous unless there is a stride."""

    origin: Origin
    start: int
    size: int
    stride: int = 1


def weights_layout(
    term: Letters, axes: Axes, keys: Iterable[Hashable], shared: Iterable[Hashable], known: bool
) -> Layout:
    """Return the roles of the axes of weights.

    Args:
        term: a letter for each axis.
        axes: their labels.
        keys: letters that are summed over in the product with values.
        shared: letters that the values have, too.
        known: whether the width of the values was made by a projection, so that axes which were
            not split from it are known to be no heads.
    """
    keys, shared = set(keys), set(shared)
    predicted = {
        f.origin.root for x, axis in zip(term, axes, strict=True) if x in keys for f in axis
    }
    pieces = [
        Piece(letter, factor, _first_role(letter, factor, keys, shared, predicted))
        for letter, axis in zip(term, axes, strict=True)
        for factor in (axis or (None,))
    ]
    _settle_compared(pieces)
    uncertain = _settle_rows(pieces, known) + _settle_shared(pieces, known)
    return Layout(tuple(pieces), tuple(dict.fromkeys(uncertain)))


def _first_role(
    letter: Hashable,
    factor: Factor | None,
    keys: set[Hashable],
    shared: set[Hashable],
    predicted: set[Origin],
) -> Role:
    """Return the role of a factor; `predicted` are the origins of the keys.

    Queries are features only if keys are, too: then a projection predicts the weights of all pairs.
    """
    if letter in keys:
        return "key"
    if letter not in shared and factor is not None and factor.origin.root in predicted:
        return "query"
    if factor is not None and factor.origin.is_feature:
        return "head"
    return "batch" if letter in shared else "query"


def _settle_compared(pieces: list[Piece]) -> None:
    """Assign other rows to the batch, where it is known which rows were compared."""
    rows = [p for p in pieces if p.role == "query" and p.factor]
    sides = {p.factor.origin.side for p in pieces if p.role == "key" and p.factor} - {0}
    for piece in pieces:  # values of their own for each pair, as relative positions
        origin = piece.factor.origin if piece.role == "batch" and piece.factor else None
        if not rows and origin is not None and origin.is_compared and {origin.side} != sides:
            piece.role = "query" if sides else piece.role
    if any(p.factor.origin.is_compared for p in rows if p.factor):
        for piece in rows:
            if piece.factor and not piece.factor.origin.is_compared:
                piece.role = "batch"


def _settle_rows(pieces: list[Piece], known: bool) -> list[str]:
    """Take the last of several unknown axes that only the weights have as the query."""
    letters = list(dict.fromkeys(p.letter for p in pieces if p.role == "query" and p.factor))
    has_head = any(p.role == "head" for p in pieces)
    if len(letters) < 2 or known or has_head:
        return []
    for piece in pieces:
        if piece.role == "query" and piece.letter in letters[:-1]:
            piece.role = "head"
    return ["head"]


def _settle_shared(pieces: list[Piece], known: bool) -> list[str]:
    """Separate windows from the batch and, by convention, heads."""
    rows = {p.factor.origin.root for p in pieces if p.role in ("query", "key") and p.factor}
    videos = {root for root in rows if root.is_images and len(rows) == 1}  # frames were split off
    rows = rows.union(*(root.parts for root in rows))
    for piece in pieces:
        root = piece.factor.origin.root if piece.role == "batch" and piece.factor else None
        if root in rows and not (root is not None and (root.is_flat or root in videos)):
            piece.role = "window"
    roles = {piece.letter: piece.role for piece in pieces if piece.factor}
    for piece in pieces:  # repeated heads, as in grouped-query attention
        if piece.role == "batch" and piece.factor and piece.factor.origin.is_broadcast:
            others = {p.role for p in pieces if p.letter == piece.letter and p is not piece}
            piece.role = "head" if "head" in others else "batch"
    has_head = "head" in roles.values()
    if known or has_head:
        return _settle_batch(pieces, videos)
    unknown = [p for p in pieces if p.role == "batch" and p.factor]
    leading = {p.letter for p in unknown if p.factor and p.factor.origin.root.is_leading}
    letters = sorted(dict.fromkeys(p.letter for p in unknown), key=lambda x: x not in leading)
    if len(letters) < 2:
        is_stack = any(p.factor.origin.is_stack for p in unknown if p.factor)
        single = [p for p in pieces if p.role == "batch" and not p.factor]
        return ["head"] if is_stack and single else []  # stacked items, or heads of a single one
    for piece in pieces:
        if piece.role == "batch" and piece.letter == letters[1]:
            piece.role = "head"
        elif piece.role == "batch" and piece.letter in letters[2:]:
            piece.role = "window"
    if len(letters) > 2:
        return ["batch", "head", "window"]
    is_stack = any(p.factor.origin.is_stack for p in unknown if p.factor)
    return [] if is_stack else ["batch", "head"]


def _settle_batch(pieces: list[Piece], videos: set[Origin]) -> list[str]:
    """Leave one of several axes to the batch, besides repeated items (beams).

    `videos` has the axis of the rows, if it is the first axis of images: as frames of one or more
    videos, or as time steps before the batch.
    """
    roots = [p.factor.origin.root for p in pieces if p.role == "batch" and p.factor]
    batch = min(
        roots, key=lambda x: (x not in videos, x.is_attended, not x.is_leading), default=None
    )
    is_first = any(root.is_leading for root in roots)
    is_single = pieces[0].role == "batch" and pieces[0].factor is None
    if not is_first and (is_single or (batch is not None and batch.is_inner)):
        batch = None  # of a single item
    first = next((p.letter for p in pieces if _is_of(p, batch)), None)
    for piece in pieces:  # of rows that were split into several axes, the first is the batch
        origin = piece.factor.origin if piece.role == "batch" and piece.factor else None
        is_batch = _is_of(piece, batch) and piece.letter == first
        if origin is not None and not is_batch and not origin.is_broadcast:
            piece.role = "window"
    if batch is None or not videos or batch in videos:
        return []
    is_ambiguous = any(x.is_attended == batch.is_attended for x in roots if x is not batch)
    return ["window"] if is_ambiguous else []


def _is_of(piece: Piece, root: Origin | None) -> bool:
    is_batch = piece.role == "batch" and piece.factor is not None
    return is_batch and piece.factor is not None and piece.factor.origin.root is root


def values_layout(term: Letters, axes: Axes, tensor: Tensor, weights: Layout) -> Layout | None:
    """Return the roles of the axes of values, which share axes with the weights."""
    pieces: list[Piece] = []
    for letter, axis, size in zip(term, axes, tensor.shape, strict=True):
        own = [piece for piece in weights.pieces if piece.letter == letter]
        if not own:
            pieces += [Piece(letter, factor, "value") for factor in (axis or (None,))]
        elif size == 1:
            pieces.append(Piece(letter, None, own[0].role))
        elif prod(piece.size for piece in own) != size:
            return None
        elif [p.size for p in own] == [f.size for f in axis]:
            pieces += [replace(p, factor=f) for p, f in zip(own, axis, strict=True)]
        else:
            pieces += [replace(piece) for piece in own]
    return Layout(tuple(pieces))


def arrange_values(tensor: Tensor, layout: Layout, weights: Layout) -> Tensor | None:
    """Return values (batch · window, key head, key, width); None if they do not fit."""
    if any(piece.role == "query" for piece in layout.pieces):
        return None  # each query has values of its own
    arranged = layout.arrange(tensor, (*ROLES[:3], "key", "value"))
    heads = [piece.letter for piece in weights.pieces if piece.role == "head" and piece.factor]
    own = {piece.letter for piece in layout.pieces if piece.factor}
    shared = [letter for letter in heads if letter in own]
    if shared and heads[: len(shared)] != shared:
        return None  # grouped in another order than the heads
    if any(layout.size(role) not in (1, weights.size(role)) for role in ROLES[:2]):
        return None
    batch = weights.size("batch") * weights.size("window")
    fits = len(arranged) in (1, batch) and weights.size("head") % arranged.shape[1] == 0
    return arranged if fits else None
