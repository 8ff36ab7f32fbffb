"""Weights that `regard.edit` has replaced, so that a capture records those the model used."""

import threading
from typing import Any

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from regard.capture.calls.base import CapturedCall, Shape
from regard.capture.calls.vectors import QueryKeyVectors

EditedWeights = dict[int, Tensor]
"""Of one call: by head, the weights (batch, query, key) that took the place of its own."""

_thread = threading.local()


def edited_weights(out: Any) -> EditedWeights:
    """Return the edited weights of the call with this result; empty if it was not edited."""
    context = out[0] if isinstance(out, tuple) else out
    edits: Any = getattr(_thread, "edits", None)
    found: EditedWeights = {} if edits is None else edits.get(context, {})
    return found


def register_edited_weights(out: Any, weights: EditedWeights) -> None:
    """Register the edited weights of a call; they are dropped with its result."""
    if getattr(_thread, "edits", None) is None:
        _thread.edits = WeakTensorKeyDictionary()
    _thread.edits[out[0] if isinstance(out, tuple) else out] = weights


def with_edits(call: CapturedCall, out: Any) -> CapturedCall:
    """Return the call with its edited weights, if it has any."""
    edits = edited_weights(out)
    return EditedCall(call, edits) if edits else call


class EditedCall:
    """A call of which some heads have edited weights."""

    heads_independent = True

    def __init__(self, call: CapturedCall, edits: EditedWeights) -> None:
        self._call, self._edits = call, edits
        self.shape: Shape = call.shape
        self.is_causal, self.offset, self.extra_keys = call.is_causal, call.offset, call.extra_keys
        self.raw_keys, self.values = call.raw_keys, call.values

    def visible_keys(self, stop: int) -> int:
        """Return the number of keys: an edited weight may be anywhere."""
        return self.shape[3]

    def weights(self, batch: slice, heads: list[int], rows: slice) -> Tensor:
        """Compute weights (batch, head, row, key)."""
        original = self._call.weights(batch, heads, rows)
        weights = torch.nn.functional.pad(original, (0, self.shape[3] - original.shape[3]))
        for n, head in enumerate(heads):
            if head in self._edits:
                weights[:, n] = self._edits[head][batch, rows].to(weights.dtype)
        return weights

    def fully_masked_keys(self) -> Tensor | None:
        """Return the keys (batch, key) masked for all queries; None if there is no mask."""
        return self._call.fully_masked_keys()

    def vectors(self) -> QueryKeyVectors | None:
        """Return the queries and keys of the call, from which edited weights do not follow."""
        return self._call.vectors()
