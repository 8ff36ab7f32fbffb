"""Masks by sequence: lengths, prefix, padding and documents."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from regard._support.torch_modes import can_read_values
from regard.errors import RegardError
from regard.masks.base import Mask, check_boolean, format_sizes, format_values, to_tensor
from regard.masks.shape import AttentionShape

Counts = int | Sequence[int] | Sequence[Sequence[int]] | Tensor
Ids = Sequence[int] | Sequence[Sequence[int]] | Tensor
KeepFlags = Sequence[bool] | Sequence[Sequence[bool]] | Tensor


def lengths(counts: Counts) -> Mask:
    """Allow queries to attend to the first keys of their sequence.

    Args:
        counts: number of keys: one for all, one per batch item, or one per query, (batch, query).

    Raises:
        RegardError: if a count is negative; or, in a call, larger than the number of keys.
        TypeError: if the counts are not integers.

    Example:
        >>> lengths([3, 1]).to_tensor(queries=1, keys=3, batch=(2,)).int()
        tensor([[[1, 1, 1]],
        <BLANKLINE>
                [[1, 0, 0]]], dtype=torch.int32)
    """
    return _FirstKeys("lengths", _check_counts("lengths", counts))


def prefix(counts: Counts) -> Mask:
    """Allow every query to attend to the first `counts` keys.

    `causal() | prefix(n)` is a prefix language model: the first n positions see each other.

    Args:
        counts: number of keys: one for all, one per batch item, or one per query, (batch, query).

    Raises:
        RegardError: if a count is negative.
        TypeError: if the counts are not integers.

    Example:
        >>> from regard.masks import causal
        >>> (causal() | prefix(2)).to_tensor(3).int()
        tensor([[1, 1, 0],
                [1, 1, 0],
                [1, 1, 1]], dtype=torch.int32)
    """
    return _FirstKeys("prefix", _check_counts("prefix", counts))


def padding(keep: KeepFlags) -> Mask:
    """Allow queries to attend to the keys that are not padding.

    Args:
        keep: (batch, key), True for a key to attend to; `attention_mask.bool()` elsewhere.

    Raises:
        TypeError: if `keep` is not boolean.

    Example:
        >>> padding([[True, True, False]]).to_tensor(queries=1, keys=3, batch=(1,))
        tensor([[[ True,  True, False]]])
    """
    return _Padding(check_boolean("keep", to_tensor("keep", keep)))


def documents(ids: Ids, key_ids: Ids | None = None) -> Mask:
    """Allow queries to attend to keys of the same document, for packed sequences.

    Args:
        ids: (batch, position), the document of each position.
        key_ids: (batch, key), the document of each key, if it differs from `ids`.

    Raises:
        RegardError: if the lists are of unequal lengths.

    Example:
        >>> documents([0, 0, 1]).to_tensor(3).int()
        tensor([[1, 1, 0],
                [1, 1, 0],
                [0, 0, 1]], dtype=torch.int32)
    """
    key_tensor = None if key_ids is None else to_tensor("key_ids", key_ids)
    return _Documents(to_tensor("ids", ids), key_tensor)


@dataclass(frozen=True, repr=False, eq=False)
class _FirstKeys(Mask):
    name: str
    counts: Tensor

    def materialize(self, shape: AttentionShape) -> Tensor:
        if self._is_per_query(shape):
            per_query = shape.insert_head_axis(self.counts, own_axes=1)[..., None]
            return shape.key_positions() < shape.slice_rows(per_query)
        counts = shape.insert_head_axis(self.counts, own_axes=0)
        return shape.key_positions() < counts[..., None, None]

    def check(self, shape: AttentionShape) -> None:
        if self.counts.ndim:
            own_axes = (shape.queries,) if self._is_per_query(shape) else ()
            shape.check_sizes(self.name, self.counts, own_axes)
        if self.name == "prefix" or not (self.counts.numel() and can_read_values(self.counts)):
            return
        longest = int(self.counts.max())
        if longest > shape.keys:
            raise RegardError(
                f"lengths must be at most {shape.keys}, the number of keys, but one is {longest}"
            )

    def _is_per_query(self, shape: AttentionShape) -> bool:
        return self.counts.ndim > len(shape.batch_without_head)

    def __repr__(self) -> str:
        return f"{self.name}({format_values(self.counts)})"


@dataclass(frozen=True, repr=False, eq=False)
class _Padding(Mask):
    keep: Tensor

    def materialize(self, shape: AttentionShape) -> Tensor:
        return shape.insert_head_axis(self.keep, own_axes=1)[..., None, :]

    def check(self, shape: AttentionShape) -> None:
        shape.check_sizes("keep", self.keep, (shape.keys,))

    def __repr__(self) -> str:
        return f"padding({format_sizes(self.keep)})"


@dataclass(frozen=True, repr=False, eq=False)
class _Documents(Mask):
    ids: Tensor
    key_ids: Tensor | None

    def materialize(self, shape: AttentionShape) -> Tensor:
        key_ids = self.ids if self.key_ids is None else self.key_ids
        columns = shape.insert_head_axis(key_ids, own_axes=1)[..., None, :]
        rows = shape.insert_head_axis(self._query_ids(shape), own_axes=1)[..., None]
        return shape.slice_rows(rows) == columns

    def check(self, shape: AttentionShape) -> None:
        shape.check_sizes("ids", self._query_ids(shape), (shape.queries,))
        name, ids = ("ids", self.ids) if self.key_ids is None else ("key_ids", self.key_ids)
        shape.check_sizes(name, ids, (shape.keys,))

    def _query_ids(self, shape: AttentionShape) -> Tensor:
        if self.key_ids is not None or shape.offset is None:
            return self.ids
        return self.ids[..., shape.offset : shape.offset + shape.queries]

    def __repr__(self) -> str:
        both = (self.ids,) if self.key_ids is None else (self.ids, self.key_ids)
        return f"documents({', '.join(map(format_sizes, both))})"


def _check_counts(name: str, counts: Counts) -> Tensor:
    """Return the counts as a tensor of integers that are not negative."""
    tensor = to_tensor(name, counts)
    if not tensor.numel():
        tensor = tensor.long()  # an empty list has no dtype of its own
    if tensor.is_floating_point() or tensor.dtype == torch.bool:
        raise TypeError(f"{name} must be integers, but they are {tensor.dtype}")
    if tensor.numel() and can_read_values(tensor) and int(tensor.min()) < 0:
        raise RegardError(f"{name} must be 0 or more, but one is {int(tensor.min())}")
    return tensor
