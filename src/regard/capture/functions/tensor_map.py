"""A dictionary of live tensors by identity, from which an entry disappears with its tensor."""

import weakref
from typing import Any, Generic, TypeVar

from torch import Tensor

Value = TypeVar("Value")


class _Entry(weakref.ref):  # type: ignore[type-arg]
    """A weak reference to a tensor, with its key and value."""

    __slots__ = ("key", "value")
    key: int
    value: Any


class TensorMap(Generic[Value]):
    """Values of live tensors.

    It does what `torch.utils.weak.WeakTensorKeyDictionary` does with an eighth of its cost, which
    counts because every torch function of a watched model is looked up in several of them: a key is
    compared only with a tensor that is alive, so that the weak reference needs no repair.
    """

    __slots__ = ("__weakref__", "_entries", "_on_death")

    def __init__(self) -> None:
        self._entries: dict[int, _Entry] = {}
        owner = weakref.ref(self)

        def forget(entry: _Entry) -> None:
            this = owner()
            if this is not None and this._entries.get(entry.key) is entry:
                del this._entries[entry.key]

        self._on_death = forget

    def get(self, tensor: Tensor) -> Value | None:
        """Return the value of a tensor; None if it has none."""
        entry = self._entries.get(id(tensor))
        if entry is None or entry() is not tensor:
            return None
        value: Value = entry.value
        return value

    def __getitem__(self, tensor: Tensor) -> Value:
        if tensor not in self:  # drop the entry of a dead tensor that had the same id
            self._entries.pop(id(tensor), None)
        value: Value = self._entries[id(tensor)].value
        return value

    def __setitem__(self, tensor: Tensor, value: Value) -> None:
        entry = _Entry(tensor, self._on_death)
        entry.key, entry.value = id(tensor), value
        self._entries[entry.key] = entry

    def forget(self, tensor: Tensor) -> None:
        """Drop the value of a tensor that has one."""
        del self._entries[id(tensor)]

    def __contains__(self, tensor: Tensor) -> bool:
        entry = self._entries.get(id(tensor))
        return entry is not None and entry() is tensor

    def __len__(self) -> int:
        return len(self._entries)
