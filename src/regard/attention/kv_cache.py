"""What is looked at: projected keys and values, kept once or growing step by step."""

from threading import Lock
from typing import NamedTuple

import torch
from torch import Tensor

from regard._support.functorch import in_functorch

_CLAIMS = Lock()  # of all rooms: threads may go on from one cache, and a claim is short


class KeyValues(NamedTuple):
    """Keys and values, projected and parted into heads: (batch, key head, key, width)."""

    keys: Tensor
    values: Tensor

    def reorder(self, sentences: Tensor) -> "KeyValues":
        """Pick sentences by number: a beam that survives may come from another's place."""
        return KeyValues(self.keys[sentences], self.values[sentences])


class KVCache:
    """A memory that grows: `extend` returns the longer cache and leaves this one as it was.

    The rows lie in room with some to spare, doubled when it is full, so that a step copies
    only what is new. Caches grown from the same one share what they have in common; the
    second to extend it moves to room of its own.
    """

    def __init__(self, keys: Tensor | None = None, values: Tensor | None = None) -> None:
        if (keys is None) != (values is None):
            raise ValueError("a cache starts with keys and values, or with neither, but one came")
        self._room = None if keys is None or values is None else _Room(keys, values)
        self._length = 0 if self._room is None else self._room.used

    def __len__(self) -> int:
        return self._length

    @property
    def keys(self) -> Tensor:
        """The keys so far."""
        return self._filled().keys[..., : self._length, :]

    @property
    def values(self) -> Tensor:
        """The values so far."""
        return self._filled().values[..., : self._length, :]

    def extend(self, keys: Tensor, values: Tensor) -> "KVCache":
        """Add rows, (batch, key head, new, width), behind those that are there."""
        if self._room is None:
            return KVCache(keys, values)
        room, end = self._room, self._length + keys.shape[-2]
        room.check(keys, values)
        learning = any(rows.requires_grad for rows in (keys, values, room.keys, room.values))
        if in_functorch() or (torch.is_grad_enabled() and learning):
            # rows written into the room would not carry a gradient
            return KVCache(torch.cat([self.keys, keys], -2), torch.cat([self.values, values], -2))
        if not room.claimed(self._length, end):
            room = _Room.of(self.keys, self.values, size=2 * end)
            room.used = end
        room.write(self._length, keys, values)
        return _cache(room, end)

    def reorder(self, sentences: Tensor) -> "KVCache":
        """Pick sentences by number: a beam that survives may come from another's place."""
        if self._room is None:
            return self
        return _cache(_Room.of(self.keys, self.values, self._room.size, sentences), len(self))

    def select(self, sentences: Tensor, keys: Tensor) -> "KVCache":
        """Pick sentences by number, and of each some keys, (sentence, key): the others are gone."""
        heads = torch.arange(self.keys.shape[1], device=keys.device)
        places = sentences[:, None, None], heads[:, None], keys[:, None]
        count = keys.shape[1]
        room = _Room.of(self.keys[places], self.values[places], size=2 * count)
        return _cache(room, count)

    def _filled(self) -> "_Room":
        if self._room is None:
            raise ValueError("the cache is empty: it has no keys and values before it is extended")
        return self._room

    def __repr__(self) -> str:
        use = "empty" if self._room is None else f"{len(self)} of {self._room.size} rows in use"
        return f"Cache({use})"


def _cache(room: "_Room", length: int) -> KVCache:
    cache = KVCache()
    cache._room, cache._length = room, length
    return cache


class _Room:
    """Rows of keys and values, the first `used` of them filled."""

    def __init__(self, keys: Tensor, values: Tensor) -> None:
        _check_pairs(keys, values)
        self.keys, self.values = keys, values
        self.used = self.size = keys.shape[-2]

    @classmethod
    def of(
        cls, keys: Tensor, values: Tensor, size: int, sentences: Tensor | None = None
    ) -> "_Room":
        """Copy rows, or the rows of some sentences, to room for `size` of them."""
        room = cls(*(_copied(rows, size, sentences) for rows in (keys, values)))
        room.used = keys.shape[-2]
        return room

    def claimed(self, start: int, end: int) -> bool:
        """Claim the rows from start to end for one cache; say whether nobody else has them.

        What is of inference mode may not be written outside of it, and is nobody's then.
        """
        closed = self.keys.is_inference() and not torch.is_inference_mode_enabled()
        with _CLAIMS:
            free = self.used == start and self.size >= end and not closed
            self.used = end if free else self.used
        return free

    def check(self, keys: Tensor, values: Tensor) -> None:
        """Raise unless new rows have the batch, heads and width of those that are there."""
        _check_pairs(keys, values)
        for name, rows, new in (("keys", self.keys, keys), ("values", self.values, values)):
            wanted = (*rows.shape[:-2], new.shape[-2], rows.shape[-1])
            if new.shape != wanted:
                raise ValueError(
                    f"{name} must have the shape {wanted} to follow those in the cache, "
                    f"but it is {tuple(new.shape)}"
                )

    def write(self, start: int, keys: Tensor, values: Tensor) -> None:
        end = start + keys.shape[-2]
        # no one sees the spare rows yet, so what autograd saved of the others stays true
        self.keys.data[..., start:end, :] = keys
        self.values.data[..., start:end, :] = values


def _check_pairs(keys: Tensor, values: Tensor) -> None:
    if keys.shape[:-1] != values.shape[:-1]:
        raise ValueError(
            "keys and values must be as many, in as many heads and sentences, but their shapes "
            f"are {tuple(keys.shape)} and {tuple(values.shape)}"
        )


def _copied(rows: Tensor, size: int, sentences: Tensor | None) -> Tensor:
    batch = len(rows) if sentences is None else len(sentences)
    room = rows.new_empty(batch, *rows.shape[1:-2], size, rows.shape[-1])
    used = room[..., : rows.shape[-2], :]
    if sentences is None or rows.requires_grad:
        used.copy_(rows if sentences is None else rows[sentences])
    else:
        torch.index_select(rows, 0, sentences, out=used)
    return room
