"""A mask as an expression: written out only where a path needs it, joined with & | ~."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from regard.masks.shape import AttentionShape, broadcasts

PAIR = ("batch", "head", "query", "key")
"""What `explain` counts, in the order of the axes."""
Pair = tuple[int, int, int, int]


class Mask:
    """An expression that says which query may look at which key."""

    def materialize(self, frame: AttentionShape) -> Tensor:
        """Write the mask out for a frame, as booleans that broadcast to it."""
        raise TypeError(f"{type(self).__name__} does not say who may look; write its `on`")

    def check(self, frame: AttentionShape) -> None:
        """Raise a ValueError if the mask does not fit the frame."""

    def is_all_true(self, frame: AttentionShape) -> bool:
        """Tell, without writing the mask out, that every query sees every key."""
        return False

    def to_tensor(
        self, queries: int, keys: int | None = None, batch: tuple[int, ...] = ()
    ) -> Tensor:
        """Write the mask out in full, to be looked at."""
        frame = AttentionShape(queries, queries if keys is None else keys, batch)
        self.check(frame)
        return self.materialize(frame).expand(frame.score_shape)

    def explain(
        self, query: int, key: int, *, batch: int = 0, head: int = 0, offset: int = 0
    ) -> str:
        """Say whether a query may look at a key, and if not, which parts of the mask hide it.

        Queries and keys are taken to be as many, unless `offset` says on which key the first
        query stands.
        """
        queries = max(query, key - offset) + 1
        frame = AttentionShape(queries, queries + offset, (batch + 1, head + 1), offset)
        hiding = " and ".join(map(repr, self._hiding(frame, (batch, head, query, key))))
        if not hiding:
            return f"query {query} may look at key {key}"
        return f"query {query} may not look at key {key}: hidden by {hiding}"

    def _hiding(self, frame: AttentionShape, pair: Pair) -> Iterator["Mask"]:
        if not self._shows(frame, pair):
            yield self

    def _shows(self, frame: AttentionShape, pair: Pair) -> bool:
        may_look = self.materialize(frame)
        axes = may_look.ndim
        for word, place, size in zip(PAIR[-axes:], pair[-axes:], may_look.shape, strict=True):
            if place < 0 or (size != 1 and place >= size):
                raise ValueError(f"{word} must be from 0 to {size - 1} in {self!r}, not {place}")
            # an axis of size one holds for every place along it
            may_look = may_look[0 if size == 1 else place]
        return bool(may_look)

    def __and__(self, other: "Mask | Tensor") -> "Mask":
        return _And(self, as_mask(other))

    def __rand__(self, other: "Mask | Tensor") -> "Mask":
        return _And(as_mask(other), self)

    def __or__(self, other: "Mask | Tensor") -> "Mask":
        return _Or(self, as_mask(other))

    def __ror__(self, other: "Mask | Tensor") -> "Mask":
        return _Or(as_mask(other), self)

    def __invert__(self) -> "Mask":
        return _Not(self)

    def __bool__(self) -> bool:
        raise TypeError(
            f"{self!r} is neither true nor false, so `and`, `or` and `not` would lose a part of "
            "it; &, | and ~ join masks"
        )


def as_mask(mask: Mask | Tensor) -> Mask:
    """Take a mask as it is, and a boolean tensor as a mask."""
    if isinstance(mask, Mask):
        return mask
    if isinstance(mask, Tensor):
        return _Plain(boolean("mask", mask))
    raise TypeError(
        f"mask must be a mask or a boolean tensor, but it is a {type(mask).__name__}; "
        "regard.masks has causal(), lengths(...), padding(...) and more"
    )


def boolean(name: str, mask: Tensor) -> Tensor:
    """Refuse a mask that is not boolean, and say what would do."""
    if mask.dtype == torch.bool:
        return mask
    if mask.is_floating_point():
        raise TypeError(
            f"{name} must be boolean, True where a query may look, but it is {mask.dtype}; "
            "numbers to add to the scores go in as bias="
        )
    raise TypeError(
        f"{name} must be boolean, True where a query may look, but it is {mask.dtype}; "
        f"{name}.bool() would do if 1 means may look"
    )


def size(numbers: Tensor) -> str:
    """Say how large a tensor is, in a mask's repr."""
    sizes = " × ".join(map(str, numbers.shape))
    return f"{sizes} numbers" if numbers.ndim == 1 else sizes


def shown(numbers: Tensor) -> str:
    """Write a few numbers out, in a mask's repr; of many, say only how many."""
    few = numbers.ndim < 2 and numbers.numel() <= 8
    return str(numbers.tolist()) if few else size(numbers)


@dataclass(frozen=True, repr=False, eq=False)
class _Plain(Mask):
    may_look: Tensor

    def materialize(self, frame: AttentionShape) -> Tensor:
        may_look = self.may_look.to(frame.device)
        if may_look.ndim > 2 and may_look.ndim == len(frame.batch) + 1:
            may_look = may_look.unsqueeze(-3)  # (batch, query, key): the same for every head
        return frame.slice_rows(may_look)

    def check(self, frame: AttentionShape) -> None:
        axes = len(frame.score_shape)
        allowed = {2, axes - 1, axes} if axes >= 4 else {2, axes}
        if self.may_look.ndim not in allowed:
            raise ValueError(
                f"mask must have {' or '.join(map(str, sorted(allowed)))} axes, the last two "
                f"(query, key), but its shape is {tuple(self.may_look.shape)}; "
                f"the scores are {frame.score_shape}"
            )
        if not broadcasts(
            self.materialize(replace(frame, row_start=0, row_count=None)).shape, frame.score_shape
        ):
            raise ValueError(
                f"mask must broadcast to {frame.score_shape}, but its shape is "
                f"{tuple(self.may_look.shape)}; a (batch, key) mask goes in as padding(keep)"
            )

    def __repr__(self) -> str:
        return f"mask({size(self.may_look)})"


@dataclass(frozen=True, repr=False, eq=False)
class _And(Mask):
    left: Mask
    right: Mask

    def materialize(self, frame: AttentionShape) -> Tensor:
        if self.left.is_all_true(frame):
            return self.right.materialize(frame)
        if self.right.is_all_true(frame):
            return self.left.materialize(frame)
        return self.left.materialize(frame) & self.right.materialize(frame)

    def check(self, frame: AttentionShape) -> None:
        self.left.check(frame)
        self.right.check(frame)

    def is_all_true(self, frame: AttentionShape) -> bool:
        return self.left.is_all_true(frame) and self.right.is_all_true(frame)

    def _hiding(self, frame: AttentionShape, pair: Pair) -> Iterator[Mask]:
        yield from self.left._hiding(frame, pair)
        yield from self.right._hiding(frame, pair)

    def _shows(self, frame: AttentionShape, pair: Pair) -> bool:
        return self.left._shows(frame, pair) and self.right._shows(frame, pair)

    def __repr__(self) -> str:
        parts = (self.left, self.right)
        return " & ".join(f"({part!r})" if isinstance(part, _Or) else repr(part) for part in parts)


@dataclass(frozen=True, repr=False, eq=False)
class _Or(Mask):
    left: Mask
    right: Mask

    def materialize(self, frame: AttentionShape) -> Tensor:
        return self.left.materialize(frame) | self.right.materialize(frame)

    def check(self, frame: AttentionShape) -> None:
        self.left.check(frame)
        self.right.check(frame)

    def is_all_true(self, frame: AttentionShape) -> bool:
        return self.left.is_all_true(frame) or self.right.is_all_true(frame)

    def _shows(self, frame: AttentionShape, pair: Pair) -> bool:
        return self.left._shows(frame, pair) or self.right._shows(frame, pair)

    def __repr__(self) -> str:
        return f"{self.left!r} | {self.right!r}"


@dataclass(frozen=True, repr=False, eq=False)
class _Not(Mask):
    inner: Mask

    def materialize(self, frame: AttentionShape) -> Tensor:
        return ~self.inner.materialize(frame)

    def check(self, frame: AttentionShape) -> None:
        self.inner.check(frame)

    def _shows(self, frame: AttentionShape, pair: Pair) -> bool:
        return not self.inner._shows(frame, pair)

    def __repr__(self) -> str:
        joined = isinstance(self.inner, _And | _Or)
        return f"~({self.inner!r})" if joined else f"~{self.inner!r}"
