"""KV cache: projected keys and values, computed once (`KeyValues`) or step by step (`KVCache`)."""

from threading import Lock
from typing import NamedTuple

import torch
from torch import Tensor

from regard._support.torch_modes import in_functorch
from regard.errors import RegardError

_lock = Lock()  # of all buffers: threads may extend one cache, and a reservation is short


class KeyValues(NamedTuple):
    """Keys and values, projected and split into heads: (batch, key head, key, width).

    `MultiHeadAttention.project_kv` returns them, to be attended to many times in place of keys.

    Example:
        >>> from regard.attention import MultiHeadAttention
        >>> attention = MultiHeadAttention(12, heads=3)
        >>> source = attention.project_kv(torch.randn(2, 7, 12))
        >>> source.keys.shape
        torch.Size([2, 3, 7, 4])
        >>> attention(torch.randn(2, 5, 12), source).shape
        torch.Size([2, 5, 12])
    """

    keys: Tensor
    values: Tensor

    def reorder(self, indices: Tensor) -> "KeyValues":
        """Select batch items by index, any of them several times.

        Args:
            indices: (new batch,) of batch items.

        Example:
            >>> memory = KeyValues(torch.zeros(2, 3, 7, 4), torch.zeros(2, 3, 7, 4))
            >>> memory.reorder(torch.tensor([1, 1, 0])).keys.shape
            torch.Size([3, 3, 7, 4])
        """
        return KeyValues(self.keys[indices], self.values[indices])


class KVCache:
    """Keys and values of the positions so far: `extend` returns a longer cache, this one stays.

    The rows are in a buffer with spare capacity, doubled when it is full, so that a step copies
    only the new rows. Caches extended from the same one share what they have in common; the second
    to extend it moves to a buffer of its own.

    Args:
        keys: (batch, key head, key, width) to start with; none by default.
        values: (batch, key head, key, width), given if and only if keys are.

    Raises:
        RegardError: if only one of both is given, or their shapes do not agree.

    Example:
        >>> cache = KVCache()
        >>> longer = cache.extend(torch.zeros(2, 3, 1, 4), torch.zeros(2, 3, 1, 4))
        >>> len(cache), len(longer)
        (0, 1)
    """

    def __init__(self, keys: Tensor | None = None, values: Tensor | None = None) -> None:
        if (keys is None) != (values is None):
            raise RegardError(
                "a cache needs both keys and values, or neither, but only one was given"
            )
        self._buffer = None if keys is None or values is None else _Buffer(keys, values)
        self._length = 0 if self._buffer is None else self._buffer.used

    def __len__(self) -> int:
        return self._length

    @property
    def keys(self) -> Tensor:
        """The keys so far, (batch, key head, key, width)."""
        return self._filled_buffer().keys[..., : self._length, :]

    @property
    def values(self) -> Tensor:
        """The values so far, (batch, key head, key, width)."""
        return self._filled_buffer().values[..., : self._length, :]

    def extend(self, keys: Tensor, values: Tensor) -> "KVCache":
        """Return a cache with more rows at the end.

        Args:
            keys: (batch, key head, new key, width).
            values: (batch, key head, new key, width).

        Raises:
            RegardError: if the shapes do not fit those in the cache.
            TypeError: if the dtypes are not those in the cache.
        """
        if self._buffer is None:
            return KVCache(keys, values)
        buffer, end = self._buffer, self._length + keys.shape[-2]
        buffer.check(keys, values)
        tensors = (keys, values, buffer.keys, buffer.values)
        needs_grad = torch.is_grad_enabled() and any(x.requires_grad for x in tensors)
        if in_functorch() or needs_grad:
            # rows written into the buffer would not carry a gradient
            return KVCache(torch.cat([self.keys, keys], -2), torch.cat([self.values, values], -2))
        if not buffer.try_reserve(self._length, end):
            buffer = _Buffer.copy_of(self.keys, self.values, capacity=2 * end)
            buffer.used = end
        buffer.write(self._length, keys, values)
        return _make_cache(buffer, end)

    def reorder(self, indices: Tensor) -> "KVCache":
        """Select batch items by index, as after a step of beam search.

        Args:
            indices: (new batch,) of batch items, any of them several times.
        """
        if self._buffer is None:
            return self
        capacity = self._buffer.capacity
        return _make_cache(_Buffer.copy_of(self.keys, self.values, capacity, indices), len(self))

    def select(self, indices: Tensor, keys: Tensor) -> "KVCache":
        """Select batch items by index, and some keys of each; drop the others.

        Args:
            indices: (new batch,) of batch items.
            keys: (new batch, new key), for each of them the indices of the keys to keep.
        """
        heads = torch.arange(self.keys.shape[1], device=keys.device)
        index = indices[:, None, None], heads[:, None], keys[:, None]
        count = keys.shape[1]
        buffer = _Buffer.copy_of(self.keys[index], self.values[index], capacity=2 * count)
        return _make_cache(buffer, count)

    def _filled_buffer(self) -> "_Buffer":
        if self._buffer is None:
            raise RegardError("the cache is empty: extend it before reading keys and values")
        return self._buffer

    def __repr__(self) -> str:
        if self._buffer is None:
            return "KVCache(empty)"
        return f"KVCache({len(self)} of {self._buffer.capacity} rows used)"


def _make_cache(buffer: "_Buffer", length: int) -> KVCache:
    cache = KVCache()
    cache._buffer, cache._length = buffer, length
    return cache


class _Buffer:
    """Preallocated rows of keys and values, the first `used` of which are filled."""

    def __init__(self, keys: Tensor, values: Tensor) -> None:
        _check_shapes(keys, values)
        self.keys, self.values = keys, values
        self.used = self.capacity = keys.shape[-2]

    @classmethod
    def copy_of(
        cls, keys: Tensor, values: Tensor, capacity: int, indices: Tensor | None = None
    ) -> "_Buffer":
        """Copy rows, of all or of the selected batch items, to a buffer of this capacity."""
        buffer = cls(*(_copy_rows(rows, capacity, indices) for rows in (keys, values)))
        buffer.used = keys.shape[-2]
        return buffer

    def try_reserve(self, start: int, end: int) -> bool:
        """Reserve the rows from start to end for one cache; return False if they are taken.

        Inference tensors cannot be written outside inference mode: such a buffer counts as full.
        """
        is_read_only = self.keys.is_inference() and not torch.is_inference_mode_enabled()
        with _lock:
            is_free = self.used == start and self.capacity >= end and not is_read_only
            self.used = end if is_free else self.used
        return is_free

    def check(self, keys: Tensor, values: Tensor) -> None:
        """Raise unless new rows have the batch, heads, width and dtype of those in the buffer."""
        _check_shapes(keys, values)
        for name, rows, new in (("keys", self.keys, keys), ("values", self.values, values)):
            expected = (*rows.shape[:-2], new.shape[-2], rows.shape[-1])
            if new.shape != expected:
                raise RegardError(
                    f"{name} must have the shape {expected} to extend the cache, "
                    f"but it is {tuple(new.shape)}"
                )
            if new.dtype != rows.dtype:
                raise TypeError(
                    f"{name} must be {rows.dtype} to extend the cache, but they are {new.dtype}"
                )

    def write(self, start: int, keys: Tensor, values: Tensor) -> None:
        """Write rows into spare capacity, from `start` on."""
        end = start + keys.shape[-2]
        # .data: nothing reads the spare rows yet, so what autograd saved of the others stays valid
        self.keys.data[..., start:end, :] = keys
        self.values.data[..., start:end, :] = values


def _check_shapes(keys: Tensor, values: Tensor) -> None:
    if keys.shape[:-1] != values.shape[:-1]:
        raise RegardError(
            "keys and values must agree in batch, heads and number of keys, but their shapes are "
            f"{tuple(keys.shape)} and {tuple(values.shape)}"
        )


def _copy_rows(rows: Tensor, capacity: int, indices: Tensor | None) -> Tensor:
    batch = len(rows) if indices is None else len(indices)
    buffer = rows.new_empty(batch, *rows.shape[1:-2], capacity, rows.shape[-1])
    filled = buffer[..., : rows.shape[-2], :]
    if indices is None or rows.requires_grad:
        filled.copy_(rows if indices is None else rows[indices])
    else:
        torch.index_select(rows, 0, indices, out=filled)
    return buffer
