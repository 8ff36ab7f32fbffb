"""Recognising the keys of a call in the next step of a generation."""

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef

from regard.capture.call_site import ModelCall
from regard.capture.calls import CapturedCall, repeat_groups


class CachedKeys:
    """The keys of a call: a sample of them, their storage, and the call of the model.

    Args:
        call: the call.
        count: number of its keys that are filled, as far as they are in the call.
        model_call: the call of the model that it belongs to.
    """

    def __init__(self, call: CapturedCall, count: int, model_call: ModelCall | None) -> None:
        self._sample = _sample_keys(call, _sample_positions(count))
        self._storage, self._model_call = _storage_of_keys(call), model_call

    def have_same_storage(self, call: CapturedCall) -> bool:
        """Return whether the keys of another call are in the same storage."""
        return self._storage is not None and _storage_of_keys(call) == self._storage

    def are_of(self, model_call: ModelCall | None) -> bool:
        """Return whether another call is in the same call of the model."""
        if model_call is None or self._model_call is None:
            return False
        return model_call.is_same(self._model_call)

    def start_alike(self, call: CapturedCall) -> bool:
        """Return whether another call has the same first key, or nothing is known of them."""
        first = _sample_keys(call, [0])
        if first is None or self._sample is None:
            return True
        return _are_close(first, self._sample[:, :, :1])

    def are_in(self, call: CapturedCall, count: int, dropped: int) -> bool:
        """Return whether another call has these keys, but for the first ones that were dropped."""
        if self._sample is None:
            return False
        positions = [n - dropped for n in _sample_positions(count) if n >= dropped]
        sample = _sample_keys(call, positions)
        return sample is not None and _are_close(sample, self._sample[:, :, -len(positions) :])


def _storage_of_keys(call: CapturedCall) -> StorageWeakRef | None:
    """Return a weak reference to the keys' storage: while it lives, nothing else is there."""
    return None if call.raw_keys is None else StorageWeakRef(call.raw_keys.untyped_storage())


def _sample_positions(count: int) -> list[int]:
    """Choose keys to recognise all by: first, middle and last, and more of them near the end.

    A sliding window drops the first ones.
    """
    steps = [2**n for n in range(count.bit_length())]
    return sorted({0, count // 2, *(count - step for step in steps)}) if count else []


def _sample_keys(call: CapturedCall, positions: list[int]) -> Tensor | None:
    """Return some keys of each head; None if the call has none there."""
    keys, num_heads = call.raw_keys, call.shape[1]
    if keys is None or not positions or keys.shape[-2] <= positions[-1]:
        return None
    sample: Tensor = keys[:, :, positions]
    return repeat_groups(sample, list(range(num_heads)), num_heads)


def _are_close(keys: Tensor, before: Tensor) -> bool:
    """Return whether keys equal earlier ones, up to rounding in float32 and float64.

    A latent cache (MLA) stores what keys are projected from, and the projection in each step may
    round differently. In half precision rounding is as large as the differences between keys, so
    that only equal keys match.
    """
    if keys.shape != before.shape or keys.dtype != before.dtype:
        return False
    if torch.finfo(keys.dtype).bits < 32:
        return torch.equal(keys, before)
    tolerance = 64 * torch.finfo(keys.dtype).eps * before.abs().amax()
    return bool(((keys - before).abs() <= tolerance).all())
