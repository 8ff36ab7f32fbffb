"""Building a record: the calls that continue it are appended to the first one.

A call may be the next step of a generation, the next chunk of queries, or the next part of one
softmax, which a model multiplies with values one by one.
"""

from dataclasses import replace

import torch
from torch import Tensor

from regard.capture.call_site import ModelCall
from regard.capture.calls import CapturedCall, QueryKeyVectors, SlidingWindowCall, is_causal
from regard.capture.layout import CallAxes
from regard.capture.records.cached_keys import CachedKeys
from regard.capture.records.key_data import masked_in_both, masked_keys, norms_of_values
from regard.capture.records.parts import PART_ROLES, continued_axis, joined_span
from regard.capture.records.record import CapturedAttention
from regard.capture.records.stored_weights import weights_of
from regard.capture.records.window_parts import WindowPart, joined_windows
from regard.trace import Kind


class RecordBuilder:
    """Appends calls to a record, and recognises those that continue it.

    Args:
        record: of a call that is yet to be appended.
    """

    def __init__(self, record: CapturedAttention) -> None:
        self.record = record
        self._keys: CachedKeys | None = None  # of the latest call

    def append(
        self, call: CapturedCall, model_call: ModelCall | None = None, dropped: int = 0
    ) -> None:
        """Append the queries of a call to those recorded so far.

        A cache may have dropped the first keys, whose vectors the call then does not have.
        """
        record, (batch, _, queries, keys) = self.record, call.shape
        record.stored.append(call, record.heads, record.offset, record.num_queries)
        record.steps += 1
        record.batch_size, record.num_keys = batch, max(keys, record.num_keys)
        record.num_queries += queries
        record.value_norms = norms_of_values(call, record.heads)
        if record.keep_vectors:
            record.vectors = self._with_vectors(call.vectors(), dropped)
        record.fully_masked_keys = masked_in_both(record.fully_masked_keys, masked_keys(call))
        self._keys = CachedKeys(call, min(self._end(), keys), model_call)

    def _with_vectors(self, new: QueryKeyVectors | None, dropped: int) -> QueryKeyVectors | None:
        """Return the vectors of all steps; None if those of any step are not known."""
        known = self.record.vectors
        if new is None or self.record.steps == 1:
            return None if new is None else new.detached()
        return None if known is None else known.append_step(new.detached(), dropped)

    def is_next_step(
        self, call: CapturedCall, kind: Kind, model_call: ModelCall | None = None
    ) -> bool:
        """Return whether a call is the next generation step after this record.

        A step of self-attention has the recorded keys, or the last of them, and new ones. A step of
        cross-attention has a single query and the same keys: still in the same storage, or computed
        again in the same call of the model. In another call of the model they are another record,
        since the same text may be read twice.
        """
        record, (batch, heads, queries, keys) = self.record, call.shape
        known, dropped = self._keys, self._num_dropped(call)
        if (batch, heads) != (record.batch_size, record.num_heads) or known is None:
            return False
        if "cross" in (kind, record.kind):
            if kind != record.kind or queries != 1 or keys != record.num_keys:
                return False
            if not (known.have_same_storage(call) or known.are_of(model_call)):
                return False
        elif not 0 <= dropped < self._end():
            return False
        if dropped and known.start_alike(call):
            return False  # the cache was cut at its end, not at its start
        return known.are_in(call, self._end(), dropped)

    def append_step(self, call: CapturedCall, model_call: ModelCall | None = None) -> None:
        """Append the queries of a generation step at their positions in the text."""
        record = self.record
        if record.kind == "self":
            record.kind = "causal"  # rows computed step by step cannot have seen later keys
        norms, dropped = record.value_norms, self._num_dropped(call)
        self.append(SlidingWindowCall(call, dropped) if dropped else call, model_call, dropped)
        if norms is not None and record.value_norms is not None:
            record.value_norms[..., :dropped] = norms[..., :dropped]

    def is_next_chunk(self, call: CapturedCall, axes: CallAxes) -> bool:
        """Return whether a call has the next queries of the same rows, over the same keys."""
        record = self.record
        span, after = record.axes.span, axes.span
        if span is None or self._keys is None or not self._keys.have_same_storage(call):
            return False
        size = record.batch_size, record.num_heads, record.num_keys
        if (*call.shape[:2], call.shape[3]) != size:
            return False
        end = span.start + span.size
        if after is None:  # a last chunk of one row has no label; there must be chunks before it
            return record.steps > 1 and call.shape[2] == 1 and end + 1 == record.num_keys
        return after.origin is span.origin and after.start == end

    def append_chunk(self, call: CapturedCall, axes: CallAxes, same_rows: bool) -> None:
        """Append the next queries, which a model computes chunk by chunk."""
        self.append(call)
        self._extend_span(axes, 2, call.shape[2])
        self._settle_kind(same_rows)

    def append_part(self, call: CapturedCall, axes: CallAxes, same_rows: bool) -> bool:
        """Append the next items, heads, queries or keys of the same softmax; False if it has none.

        A model may compute the contexts of these one by one.
        """
        record = self.record
        shape = record.batch_size, record.num_heads, record.num_queries, record.num_keys
        axis = continued_axis(record.axes, shape, axes, call.shape)
        if axis is None or (record.steps > 1 and axis != record.joined_axis):
            return False
        if axis == 2:
            self.append_chunk(call, axes, same_rows)
        elif record.is_summarized or (axis == 1 and len(record.heads) < record.num_heads):
            return False
        else:
            self._join(call, axis)
            self._extend_span(axes, axis, call.shape[axis])
            self._settle_kind(same_rows)
        return True

    def append_window_part(self, call: CapturedCall, axes: CallAxes) -> bool:
        """Append the keys of another part of the same softmax, of which one is within windows.

        False if the positions of either are not known, or queries are not in both.
        """
        record = self.record
        weights = record.flat_weights
        if weights is None or record.axes.positions is None or axes.positions is None:
            return False
        num_windows = record.num_windows
        if max(num_windows, axes.num_windows) == 1 or len(record.heads) < record.num_heads:
            return False
        own = _window_part(weights, record.axes, record.value_norms, record.fully_masked_keys)
        other_weights = call.weights(slice(None), record.heads, slice(None)).cpu()
        other_norms = norms_of_values(call, record.heads)
        other = _window_part(other_weights, axes, other_norms, masked_keys(call))
        if own is None or other is None or len(own.weights) != len(other.weights):
            return False
        # the windows, and of two parts within windows the one over the rows of the text
        ranks = [
            (windows, x.positions.is_over_same_rows)
            for x, windows in ((own, num_windows), (other, axes.num_windows))
        ]
        base, added = (own, other) if ranks[0] >= ranks[1] else (other, own)
        if (joined := joined_windows(base, added)) is None:
            return False
        self._set_windows(joined, record.axes if base is own else axes)
        return True

    def _set_windows(self, joined: WindowPart, windowed: CallAxes) -> None:
        """Let the record have weights within windows that were joined with other keys."""
        record, flat = self.record, joined.weights.flatten(0, 1)
        record.axes = replace(windowed, positions=joined.positions, spans={}, part=None)
        record.stored.replace(flat)
        record.value_norms = None if joined.norms is None else joined.norms.flatten(0, 1)
        record.fully_masked_keys, record.vectors = joined.masked.flatten(0, 1), None
        record.batch_size, _, record.num_queries, record.num_keys = flat.shape
        record.kind = "self" if joined.positions.is_over_same_rows else "cross"
        record.offset, record.has_window_parts = 0, True
        record.steps += 1
        self._keys = None

    def _join(self, call: CapturedCall, axis: int) -> None:
        """Append the weights of a call, and what is known of its keys, along an axis."""
        record = self.record
        weights, norms, masked = record.flat_weights, record.value_norms, record.fully_masked_keys
        assert weights is not None, "kept in full"
        heads = list(range(call.shape[1])) if axis == 1 else record.heads
        record.stored.replace(torch.cat([weights, weights_of(call, heads)], dim=axis))
        record.steps, record.joined_axis = record.steps + 1, axis
        other_norms, other_masked = norms_of_values(call, heads), masked_keys(call)
        if norms is not None and other_norms is not None:
            norms = torch.cat([norms, other_norms], dim=min(axis, 2))
        record.value_norms = None if other_norms is None else norms
        if axis == 1:
            record.heads = [*record.heads, *(record.num_heads + head for head in heads)]
            record.num_heads += call.shape[1]
            record.fully_masked_keys = masked_in_both(masked, other_masked)
        else:
            record.batch_size += call.shape[0] if axis == 0 else 0
            record.num_keys += call.shape[3] if axis == 3 else 0
            if masked is not None:
                record.fully_masked_keys = torch.cat([masked, other_masked], dim=axis // 3)
        record.vectors = None  # of a single part

    def _extend_span(self, axes: CallAxes, axis: int, size: int) -> None:
        """Extend the range of rows along an axis by those of a further call."""
        role, spans = PART_ROLES[axis], dict(self.record.axes.spans)
        span = joined_span(spans.pop(role, None), axes.spans.get(role), size)
        spans = spans if span is None else {**spans, role: span}
        self.record.axes = replace(self.record.axes, spans=spans)

    def _settle_kind(self, same_rows: bool) -> None:
        """Classify self-attention again, when parts have become all queries and keys."""
        record = self.record
        if same_rows and record.num_queries == record.num_keys - record.extra_keys:
            weights = record.weights
            is_lower = weights is not None and is_causal(weights != 0, 0, record.extra_keys)
            record.kind, record.offset = ("causal" if is_lower else "self"), 0

    def _end(self) -> int:
        """Return the number of positions that the keys should have before the next step."""
        record = self.record
        return record.num_keys if record.kind == "cross" else record.offset + record.num_queries

    def _num_dropped(self, call: CapturedCall) -> int:
        """Return how many of the first keys the cache has dropped, as a sliding window does."""
        return 0 if self.record.kind == "cross" else self._end() - call.offset


def _window_part(
    weights: Tensor, axes: CallAxes, norms: Tensor | None, masked: Tensor | None
) -> WindowPart | None:
    """Return weights (batch · window, head, query, key) and what is known of their keys."""
    if axes.positions is None or masked is None:
        return None
    split = (-1, axes.num_windows)
    return WindowPart(
        weights.unflatten(0, split),
        axes.positions,
        None if norms is None else norms.unflatten(0, split),
        masked.unflatten(0, split),
    )
