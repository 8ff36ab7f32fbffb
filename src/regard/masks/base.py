"""The `Mask` base class: an expression that is materialized where it is needed, with & | ~."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from regard.errors import RegardError, wrong_type
from regard.masks.shape import AttentionShape, is_broadcastable

AXES = ("batch", "head", "query", "key")
"""The axes that `explain` indexes, in their order."""
PairIndex = tuple[int, int, int, int]
"""Indices of batch item, head, query and key."""


class Mask:
    """A lazy boolean mask: which query may attend to which key.

    Masks are combined with `&`, `|` and `~`, and stay expressions until a backend materializes
    them. A subclass implements `materialize`, and `check` if it can fail to fit a call.

    Example:
        >>> from regard.masks import causal, lengths
        >>> mask = causal() & lengths([3, 2])
        >>> mask
        causal() & lengths([3, 2])
        >>> mask.to_tensor(queries=3, batch=(2,))[1].int()
        tensor([[1, 0, 0],
                [1, 1, 0],
                [1, 1, 0]], dtype=torch.int32)
    """

    def materialize(self, shape: AttentionShape) -> Tensor:
        """Return the mask of the selected rows as a boolean tensor that broadcasts to them."""
        raise NotImplementedError(f"{type(self).__name__} must implement materialize(shape)")

    def check(self, shape: AttentionShape) -> None:
        """Raise a RegardError if the mask does not fit the shape."""

    def is_all_true(self, shape: AttentionShape) -> bool:
        """Return whether every pair is known to be allowed, without materializing the mask."""
        return False

    def is_causal(self, shape: AttentionShape) -> bool:
        """Return whether the mask is known to be torch's `is_causal`: key index <= query index."""
        return False

    def to_tensor(
        self, queries: int, keys: int | None = None, batch: tuple[int, ...] = ()
    ) -> Tensor:
        """Return the whole mask as a boolean tensor.

        Args:
            queries: number of queries.
            keys: number of keys; as many as queries by default.
            batch: sizes of the axes before (query, key). From two on, the last is the head.

        Returns:
            `(*batch, query, key)`, True where a query may attend.

        Raises:
            RegardError: if the mask does not fit these sizes.
            TypeError: if `batch` is a number.

        Example:
            >>> from regard.masks import causal
            >>> causal().to_tensor(2)
            tensor([[ True, False],
                    [ True,  True]])
        """
        if not isinstance(batch, Sequence):
            raise wrong_type("batch", "the sizes of the batch axes, such as (2,)", batch)
        shape = AttentionShape(queries, queries if keys is None else keys, tuple(batch))
        self.check(shape)
        return self.materialize(shape).expand(shape.score_shape)

    def explain(
        self, query: int, key: int, *, batch: int = 0, head: int = 0, offset: int = 0
    ) -> str:
        """Return a sentence: whether a query may attend to a key, and if not, what masks it.

        Args:
            query: index of the query.
            key: index of the key.
            batch: index of the batch item.
            head: index of the head.
            offset: index of the key at the first query's own position; queries and keys are
                assumed to be equally many by default.

        Raises:
            RegardError: if an index is out of range.

        Example:
            >>> from regard.masks import causal, lengths
            >>> (causal() & lengths([3, 2])).explain(query=0, key=2, batch=1)
            'query 0 may not attend to key 2: masked by causal() and lengths([3, 2])'
        """
        queries = max(query, key - offset) + 1
        shape = AttentionShape(queries, queries + offset, (batch + 1, head + 1), offset)
        masking = " and ".join(map(repr, self._masking(shape, (batch, head, query, key))))
        if not masking:
            return f"query {query} may attend to key {key}"
        return f"query {query} may not attend to key {key}: masked by {masking}"

    def _masking(self, shape: AttentionShape, pair: PairIndex) -> Iterator["Mask"]:
        """Yield the parts of the expression that mask a pair."""
        if not self._allows(shape, pair):
            yield self

    def _allows(self, shape: AttentionShape, pair: PairIndex) -> bool:
        query = pair[-2]
        allowed = self.materialize(shape.with_rows(query, 1) if query >= 0 else shape)
        if not allowed.numel():  # beyond the rows of a tensor
            allowed = self.materialize(shape)
        axes = allowed.ndim
        for name, index, size in zip(AXES[-axes:], pair[-axes:], allowed.shape, strict=True):
            if index < 0 or (size != 1 and index >= size):
                raise RegardError(
                    f"{name} must be from 0 to {size - 1} in {self!r}, but it is {index}"
                )
            # an axis of size one holds for every index along it
            allowed = allowed[0 if size == 1 else index]
        return bool(allowed)

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
            f"{self!r} has no truth value, so `and`, `or` and `not` would drop a part of it; "
            "combine masks with &, | and ~"
        )


def as_mask(mask: Mask | Tensor) -> Mask:
    """Return a mask as it is, and a boolean tensor as a mask.

    Args:
        mask: a mask, or a boolean tensor (query, key), (batch, query, key) or
            (batch, head, query, key), True where a query may attend.

    Raises:
        TypeError: if it is neither.

    Example:
        >>> as_mask(torch.ones(5, 7).bool())
        mask(5 × 7)
    """
    if isinstance(mask, Mask):
        return mask
    if isinstance(mask, Tensor):
        return _TensorMask(check_boolean("mask", mask))
    raise TypeError(
        f"{wrong_type('mask', 'a mask or a boolean tensor', mask)}; "
        "regard.masks has causal(), lengths(...), padding(...) and more"
    )


def check_boolean(name: str, mask: Tensor) -> Tensor:
    """Return the mask if it is boolean, and raise a TypeError with a hint otherwise."""
    if mask.dtype == torch.bool:
        return mask
    if mask.is_floating_point():
        raise TypeError(
            f"{name} must be boolean, True where a query may attend, but it is {mask.dtype}; "
            "pass what is to be added to the scores as bias="
        )
    raise TypeError(
        f"{name} must be boolean, True where a query may attend, but it is {mask.dtype}; "
        f"pass {name}.bool() if 1 means may attend"
    )


def to_tensor(name: str, values: Any) -> Tensor:
    """Return a tensor as it is, and nested sequences as a tensor on the CPU.

    `torch.as_tensor` would copy a tensor to the default device.

    Raises:
        RegardError: if the sequences are of unequal lengths, or not of numbers.
    """
    if isinstance(values, Tensor):
        return values
    try:
        return torch.as_tensor(values, device="cpu")
    except (TypeError, ValueError) as error:
        raise RegardError(
            f"{name} must be a tensor, or lists of numbers of equal lengths: {error}"
        ) from None


def format_sizes(tensor: Tensor) -> str:
    """Format the sizes of a tensor, for a mask's repr."""
    sizes = " × ".join(map(str, tensor.shape))
    return f"{sizes} values" if tensor.ndim == 1 else sizes


def format_values(tensor: Tensor) -> str:
    """Format up to eight values of a tensor, or the sizes of a larger one, for a mask's repr."""
    is_short = tensor.ndim < 2 and tensor.numel() <= 8
    return str(tensor.tolist()) if is_short else format_sizes(tensor)


@dataclass(frozen=True, repr=False, eq=False)
class _TensorMask(Mask):
    allowed: Tensor

    def materialize(self, shape: AttentionShape) -> Tensor:
        allowed = self.allowed.to(shape.device)
        if allowed.ndim > 2 and allowed.ndim == len(shape.batch) + 1:
            allowed = allowed.unsqueeze(-3)  # (batch, query, key): the same for every head
        return shape.slice_rows(allowed)

    def check(self, shape: AttentionShape) -> None:
        axes = len(shape.score_shape)
        permitted = {2, axes - 1, axes} if axes >= 4 else {2, axes}
        actual = tuple(self.allowed.shape)
        if len(actual) not in permitted:
            raise RegardError(
                f"mask must have {' or '.join(map(str, sorted(permitted)))} axes, the last two "
                f"(query, key), but its shape is {actual}; the scores are {shape.score_shape}"
            )
        all_rows = self.materialize(replace(shape, row_start=0, row_count=None))
        if not is_broadcastable(all_rows.shape, shape.score_shape):
            raise RegardError(
                f"mask must broadcast to {shape.score_shape}, but its shape is {actual}; "
                "pass a (batch, key) mask as padding(keep)"
            )

    def __repr__(self) -> str:
        return f"mask({format_sizes(self.allowed)})"


@dataclass(frozen=True, repr=False, eq=False)
class _And(Mask):
    left: Mask
    right: Mask

    def materialize(self, shape: AttentionShape) -> Tensor:
        if self.left.is_all_true(shape):
            return self.right.materialize(shape)
        if self.right.is_all_true(shape):
            return self.left.materialize(shape)
        return self.left.materialize(shape) & self.right.materialize(shape)

    def check(self, shape: AttentionShape) -> None:
        self.left.check(shape)
        self.right.check(shape)

    def is_all_true(self, shape: AttentionShape) -> bool:
        return self.left.is_all_true(shape) and self.right.is_all_true(shape)

    def _masking(self, shape: AttentionShape, pair: PairIndex) -> Iterator[Mask]:
        yield from self.left._masking(shape, pair)
        yield from self.right._masking(shape, pair)

    def _allows(self, shape: AttentionShape, pair: PairIndex) -> bool:
        return self.left._allows(shape, pair) and self.right._allows(shape, pair)

    def __repr__(self) -> str:
        parts = (self.left, self.right)
        return " & ".join(f"({part!r})" if isinstance(part, _Or) else repr(part) for part in parts)


@dataclass(frozen=True, repr=False, eq=False)
class _Or(Mask):
    left: Mask
    right: Mask

    def materialize(self, shape: AttentionShape) -> Tensor:
        return self.left.materialize(shape) | self.right.materialize(shape)

    def check(self, shape: AttentionShape) -> None:
        self.left.check(shape)
        self.right.check(shape)

    def is_all_true(self, shape: AttentionShape) -> bool:
        return self.left.is_all_true(shape) or self.right.is_all_true(shape)

    def _allows(self, shape: AttentionShape, pair: PairIndex) -> bool:
        return self.left._allows(shape, pair) or self.right._allows(shape, pair)

    def __repr__(self) -> str:
        return f"{self.left!r} | {self.right!r}"


@dataclass(frozen=True, repr=False, eq=False)
class _Not(Mask):
    inner: Mask

    def materialize(self, shape: AttentionShape) -> Tensor:
        return ~self.inner.materialize(shape)

    def check(self, shape: AttentionShape) -> None:
        self.inner.check(shape)

    def _allows(self, shape: AttentionShape, pair: PairIndex) -> bool:
        return not self.inner._allows(shape, pair)

    def __repr__(self) -> str:
        is_compound = isinstance(self.inner, _And | _Or)
        return f"~({self.inner!r})" if is_compound else f"~{self.inner!r}"
