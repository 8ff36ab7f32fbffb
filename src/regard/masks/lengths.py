"""Masks by sentence: lengths, prefix, padding and documents."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.masks.base import Mask, boolean, shown, size
from regard.masks.shape import AttentionShape

Counts = int | Sequence[int] | Sequence[Sequence[int]] | Tensor
Ids = Sequence[int] | Sequence[Sequence[int]] | Tensor
Keep = Sequence[bool] | Sequence[Sequence[bool]] | Tensor


def lengths(counts: Counts) -> Mask:
    """Let queries look at the first so many keys: one count per sentence, or one per query."""
    return _FirstKeys("lengths", _whole("lengths", counts))


def prefix(counts: Counts) -> Mask:
    """Let every query look at the first so many keys: `causal() | prefix(n)` reads n at once."""
    return _FirstKeys("prefix", _whole("prefix", counts))


def padding(keep: Keep) -> Mask:
    """Let queries look at the keys where `keep` (batch, key) is True."""
    return _Padding(boolean("keep", torch.as_tensor(keep)))


def documents(ids: Ids, key_ids: Ids | None = None) -> Mask:
    """Let queries look at keys with the same number: `ids` (batch, position) number documents."""
    return _Documents(torch.as_tensor(ids), None if key_ids is None else torch.as_tensor(key_ids))


@dataclass(frozen=True, repr=False, eq=False)
class _FirstKeys(Mask):
    word: str
    counts: Tensor

    def materialize(self, frame: AttentionShape) -> Tensor:
        if self.counts.ndim > len(frame.batch_without_head):
            per_query = frame.insert_head_axis(self.counts, own_axes=1)[..., None]
            return frame.key_positions() < frame.slice_rows(per_query)
        return (
            frame.key_positions() < frame.insert_head_axis(self.counts, own_axes=0)[..., None, None]
        )

    def check(self, frame: AttentionShape) -> None:
        per_query = self.counts.ndim > len(frame.batch_without_head)
        if self.counts.ndim:
            frame.check_sizes(self.word, self.counts, (frame.queries,) if per_query else ())
        if self.word == "prefix" or torch.compiler.is_compiling() or not self.counts.numel():
            return
        longest = int(self.counts.max())
        if longest > frame.keys:
            raise ValueError(
                f"lengths must be at most {frame.keys}, the number of keys, but one is {longest}"
            )

    def __repr__(self) -> str:
        return f"{self.word}({shown(self.counts)})"


@dataclass(frozen=True, repr=False, eq=False)
class _Padding(Mask):
    keep: Tensor

    def materialize(self, frame: AttentionShape) -> Tensor:
        return frame.insert_head_axis(self.keep, own_axes=1)[..., None, :]

    def check(self, frame: AttentionShape) -> None:
        frame.check_sizes("keep", self.keep, (frame.keys,))

    def __repr__(self) -> str:
        return f"padding({size(self.keep)})"


@dataclass(frozen=True, repr=False, eq=False)
class _Documents(Mask):
    ids: Tensor
    key_ids: Tensor | None

    def materialize(self, frame: AttentionShape) -> Tensor:
        keys = frame.insert_head_axis(
            self.ids if self.key_ids is None else self.key_ids, own_axes=1
        )
        rows = frame.slice_rows(
            frame.insert_head_axis(self._query_ids(frame), own_axes=1)[..., None]
        )
        return rows == keys[..., None, :]

    def check(self, frame: AttentionShape) -> None:
        frame.check_sizes("ids", self._query_ids(frame), (frame.queries,))
        name, ids = ("ids", self.ids) if self.key_ids is None else ("key_ids", self.key_ids)
        frame.check_sizes(name, ids, (frame.keys,))

    def _query_ids(self, frame: AttentionShape) -> Tensor:
        if self.key_ids is not None or frame.offset is None:
            return self.ids
        return self.ids[..., frame.offset : frame.offset + frame.queries]

    def __repr__(self) -> str:
        both = (self.ids,) if self.key_ids is None else (self.ids, self.key_ids)
        return f"documents({', '.join(map(size, both))})"


def _whole(word: str, counts: Counts) -> Tensor:
    """Take counts as a tensor of whole numbers that are not negative."""
    numbers = torch.as_tensor(counts)
    if not numbers.numel():
        numbers = numbers.long()  # an empty list says nothing of its numbers
    if numbers.is_floating_point() or numbers.dtype == torch.bool:
        raise TypeError(f"{word} must be whole numbers, but they are {numbers.dtype}")
    if not torch.compiler.is_compiling() and numbers.numel() and int(numbers.min()) < 0:
        raise ValueError(f"{word} must be 0 or more, but one is {int(numbers.min())}")
    return numbers
