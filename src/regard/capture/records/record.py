"""The record of one attention call and of the generation steps that continue it."""

from dataclasses import dataclass, field, replace
from typing import Literal, get_args

import torch
from torch import Tensor
from torch.nn.functional import pad

from regard.capture.call_site import ModelCall
from regard.capture.calls import (
    CapturedCall,
    MaterializedWeights,
    QueryKeyVectors,
    SlidingWindowCall,
    is_causal,
)
from regard.capture.layout import PLAIN_AXES, CallAxes
from regard.capture.records.cached_keys import CachedKeys
from regard.capture.records.keys import masked_in_both, masked_keys, norms_of_values
from regard.capture.records.parts import PART_ROLES, continued_axis, joined_span
from regard.capture.records.summary import join_summaries, summarize_call
from regard.capture.records.window_parts import WindowPart, joined_windows
from regard.trace import TOP_KEYS, Kind
from regard.trace.block_summary import TensorSummary

Keep = Literal["auto", "all", "summary"]
KEEP_CHOICES = get_args(Keep)

MAX_FULL_WEIGHTS = 2**22  # weights of one call, 16 MiB; keep="auto" summarizes larger ones
_ROUNDING = 1e-2  # of the sum of a row of weights, also in half precision


@dataclass(slots=True)
class CapturedAttention:
    """The attention of one module in one call, or in all steps of one generation.

    Generation with a KV cache calls attention once per token. Such steps continue the keys of the
    call before them and are appended to one record, which then equals that of a single pass over
    the whole text.
    """

    name: str  # of the module
    call_site: str  # file:line
    call: int  # how many records of this module and line there were before
    kind: Kind
    keep: Keep
    heads: list[int]  # indices of those kept
    num_heads: int  # of the module
    offset: int  # position of the first query among the keys
    extra_keys: int = 0  # keys at the end that are no positions
    axes: CallAxes = PLAIN_AXES
    keep_vectors: bool = False
    joined_axis: int = 2  # along which steps and parts were joined
    has_window_parts: bool = False  # parts of one softmax, of which one is within windows
    steps: int = 0
    batch_size: int = 0
    num_queries: int = 0
    num_keys: int = 0
    max_full_weights: int = MAX_FULL_WEIGHTS
    value_norms: Tensor | None = field(default=None, repr=False)  # (batch, head, key)
    vectors: QueryKeyVectors | None = field(default=None, repr=False)
    fully_masked_keys: Tensor | None = field(default=None, repr=False)  # (batch, key)
    _parts: list[Tensor | TensorSummary] = field(default_factory=list, repr=False)
    _num_weights: int = 0
    _keys: CachedKeys | None = field(default=None, repr=False)  # of the latest step

    def __repr__(self) -> str:
        size = f"{self.num_queries} × {self.num_keys}"
        return f"<{type(self).__name__} {self.name!r}: {self.kind}, {self.num_heads} heads, {size}>"

    def append(
        self, call: CapturedCall, model_call: ModelCall | None = None, dropped: int = 0
    ) -> None:
        """Append the rows of a call to those recorded so far.

        A cache may have dropped the first keys, whose vectors the call then does not have.
        """
        batch, _, queries, keys = call.shape
        first = self.offset + self.num_queries
        self.steps += 1
        self.batch_size, self.num_keys = batch, max(keys, self.num_keys)
        self.num_queries += queries
        self._num_weights += batch * len(self.heads) * queries * keys
        if self._should_summarize():
            self._summarize_parts()
            self._parts.append(summarize_call(call, self.heads, first))
        else:
            weights = call.weights(slice(None), self.heads, slice(None))
            self._parts.append(_with_width(weights, keys).cpu())
        self.value_norms = norms_of_values(call, self.heads)
        if self.keep_vectors:
            self.vectors = self._with_vectors(call.vectors(), dropped)
        self.fully_masked_keys = masked_in_both(self.fully_masked_keys, masked_keys(call))
        self._keys = CachedKeys(call, min(self._end(), keys), model_call)

    def _with_vectors(self, new: QueryKeyVectors | None, dropped: int) -> QueryKeyVectors | None:
        """Return the vectors of all steps; None if those of any step are not known."""
        if new is None or self.steps == 1:
            return None if new is None else new.detached()
        return None if self.vectors is None else self.vectors.append_step(new.detached(), dropped)

    def continues(
        self, call: CapturedCall, kind: Kind, model_call: ModelCall | None = None
    ) -> bool:
        """Return whether a call is the next generation step after this record.

        A step of self-attention has the recorded keys, or the last of them, and new ones. A step of
        cross-attention has a single query and the same keys: still in the same storage, or computed
        again in the same call of the model. In another call of the model they are another record,
        since the same text may be read twice.
        """
        batch, heads, queries, keys = call.shape
        known, dropped = self._keys, self._num_dropped(call)
        if (batch, heads) != (self.batch_size, self.num_heads) or known is None:
            return False
        if "cross" in (kind, self.kind):
            if kind != self.kind or queries != 1 or keys != self.num_keys:
                return False
            if not (known.have_same_storage(call) or known.are_of(model_call)):
                return False
        elif not 0 <= dropped < self._end():
            return False
        if dropped and known.start_alike(call):
            return False  # the cache was cut at its end, not at its start
        return known.are_in(call, self._end(), dropped)

    def append_step(self, call: CapturedCall, model_call: ModelCall | None = None) -> None:
        """Append the rows of a generation step at their positions in the text."""
        if self.kind == "self":
            self.kind = "causal"  # rows computed step by step cannot have seen later keys
        norms, dropped = self.value_norms, self._num_dropped(call)
        self.append(SlidingWindowCall(call, dropped) if dropped else call, model_call, dropped)
        if norms is not None and self.value_norms is not None:
            self.value_norms[..., :dropped] = norms[..., :dropped]

    def is_followed_by(self, call: CapturedCall, axes: CallAxes) -> bool:
        """Return whether a call has the next queries of the same rows, over the same keys."""
        span, after = self.axes.span, axes.span
        if span is None or self._keys is None or not self._keys.have_same_storage(call):
            return False
        if (*call.shape[:2], call.shape[3]) != (self.batch_size, self.num_heads, self.num_keys):
            return False
        end = span.start + span.size
        if after is None:  # a last chunk of one row has no label; there must be chunks before it
            return self.steps > 1 and call.shape[2] == 1 and end + 1 == self.num_keys
        return after.origin is span.origin and after.start == end

    def append_chunk(self, call: CapturedCall, axes: CallAxes, same_rows: bool) -> None:
        """Append the next queries, which a model computes chunk by chunk."""
        self.append(call)
        self._extend_span(axes, 2, call.shape[2])
        self._settle_kind(same_rows)

    def _extend_span(self, axes: CallAxes, axis: int, size: int) -> None:
        """Extend the range of rows along an axis by those of a further call."""
        role, spans = PART_ROLES[axis], dict(self.axes.spans)
        span = joined_span(spans.pop(role, None), axes.spans.get(role), size)
        self.axes = replace(self.axes, spans=spans if span is None else {**spans, role: span})

    def _settle_kind(self, same_rows: bool) -> None:
        """Classify self-attention again, when parts have become all queries and keys."""
        if same_rows and self.num_queries == self.num_keys - self.extra_keys:
            weights = self.weights
            is_lower = weights is not None and is_causal(weights != 0, 0, self.extra_keys)
            self.kind, self.offset = ("causal" if is_lower else "self"), 0

    def with_weights(
        self, weights: Tensor, value_norms: Tensor | None = None, extra_keys: int = 0
    ) -> "CapturedAttention":
        """Return a record of the same module with other weights (batch, head, query, key)."""
        return replace(
            self,
            axes=PLAIN_AXES,
            offset=0,
            extra_keys=extra_keys,
            batch_size=weights.shape[0],
            num_queries=weights.shape[2],
            num_keys=weights.shape[3],
            value_norms=value_norms,
            fully_masked_keys=None,
            vectors=None,
            _parts=[weights],
        )

    def append_part(self, call: CapturedCall, axes: CallAxes, same_rows: bool) -> bool:
        """Append the next items, heads, queries or keys of the same softmax; False if it has none.

        A model may compute the contexts of these one by one.
        """
        shape = self.batch_size, self.num_heads, self.num_queries, self.num_keys
        axis = continued_axis(self.axes, shape, axes, call.shape)
        if axis is None or (self.steps > 1 and axis != self.joined_axis):
            return False
        if axis == 2:
            self.append_chunk(call, axes, same_rows)
        elif self.is_summarized or (axis == 1 and len(self.heads) < self.num_heads):
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
        weights = self.flat_weights
        if weights is None or self.axes.positions is None or axes.positions is None:
            return False
        if max(self.num_windows, axes.num_windows) == 1 or len(self.heads) < self.num_heads:
            return False
        masked = self.fully_masked_keys
        own = _window_part(weights, self.axes, self.value_norms, masked)
        other_weights = call.weights(slice(None), self.heads, slice(None)).cpu()
        other = _window_part(
            other_weights, axes, norms_of_values(call, self.heads), masked_keys(call)
        )
        if own is None or other is None or len(own.weights) != len(other.weights):
            return False
        base, added = (own, other) if self.num_windows >= axes.num_windows else (other, own)
        if (joined := joined_windows(base, added)) is None:
            return False
        windowed = self.axes if base is own else axes
        self.axes = replace(windowed, positions=joined.positions, spans={}, part=None)
        flat = joined.weights.flatten(0, 1)
        self._parts[:] = [flat]
        self.value_norms = None if joined.norms is None else joined.norms.flatten(0, 1)
        self.fully_masked_keys, self.vectors = joined.masked.flatten(0, 1), None
        self.batch_size, _, self.num_queries, self.num_keys = flat.shape
        self.kind = "self" if joined.positions.is_over_same_rows else "cross"
        self.offset, self._keys, self.has_window_parts = 0, None, True
        self.steps += 1
        return True

    def _join(self, call: CapturedCall, axis: int) -> None:
        """Append the weights of a call, and what is known of its keys, along an axis."""
        weights, norms, masked = self.flat_weights, self.value_norms, self.fully_masked_keys
        assert weights is not None, "kept in full"
        heads = list(range(call.shape[1])) if axis == 1 else self.heads
        new = _with_width(call.weights(slice(None), heads, slice(None)), call.shape[3]).cpu()
        self._parts[:] = [torch.cat([weights, new], dim=axis)]
        self.steps, self.joined_axis = self.steps + 1, axis
        other_norms, other_masked = norms_of_values(call, heads), masked_keys(call)
        if norms is not None and other_norms is not None:
            norms = torch.cat([norms, other_norms], dim=min(axis, 2))
        self.value_norms = None if other_norms is None else norms
        if axis == 1:
            self.heads = [*self.heads, *(self.num_heads + head for head in heads)]
            self.num_heads += call.shape[1]
            self.fully_masked_keys = masked_in_both(masked, other_masked)
        else:
            self.batch_size += call.shape[0] if axis == 0 else 0
            self.num_keys += call.shape[3] if axis == 3 else 0
            if masked is not None:
                self.fully_masked_keys = torch.cat([masked, other_masked], dim=axis // 3)
        self.vectors = None  # of a single part

    @property
    def normaliser(self) -> str:
        """The function that made weights of scores, "softmax" in most models."""
        return self.axes.normaliser

    @property
    def applied(self) -> tuple[str, ...]:
        """Names of what was applied to the weights before they met the values."""
        return self.axes.applied

    @property
    def row_sums(self) -> Tensor:
        """Sum of the weights of each query, (batch · window, head, query)."""
        if (summary := self.summary) is not None:
            return summary.top_weights.sum(-1) + summary.remainder
        weights = self.flat_weights
        assert weights is not None, "kept in full"
        return weights.sum(-1, dtype=torch.promote_types(weights.dtype, torch.float32))

    @property
    def is_partial(self) -> bool:
        """Whether some keys of the softmax are missing, so that rows sum to less than 1.

        Their weights are those of another record, of a sink, or were not followed. Rows of zeros
        are those of queries that are masked. What was applied to weights may change their sum, and
        then nothing is known.
        """
        if self.normaliser != "softmax" or self.applied:
            return False
        sums = self.row_sums
        return bool(((sums > _ROUNDING) & (sums < 1 - _ROUNDING)).any())

    @property
    def uncertain(self) -> tuple[str, ...]:
        """Axes whose role is a convention rather than known: "head", "window"."""
        return self.axes.uncertain

    @property
    def leading_keys(self) -> int:
        """Number of learned keys before the text's own, in self-attention that has some."""
        return self.axes.leading_keys if self.kind == "self" else 0

    @property
    def has_extra_keys(self) -> bool:
        """Whether there are keys besides the positions of a text: learned, zeros or summaries."""
        positions = self.axes.positions
        num_summaries = 0 if positions is None else positions.num_extra
        return bool(self.extra_keys or self.leading_keys or num_summaries)

    @property
    def num_windows(self) -> int:
        """Number of windows, if attention is within windows of the positions."""
        return self.axes.num_windows

    def release(self) -> None:
        """Drop the state used to recognise the next generation step."""
        self._keys = None

    @property
    def weights(self) -> Tensor | None:
        """The weights (batch, head, query, key); None if they were summarized.

        Attention within windows has an axis more: (batch, window, head, query, key).
        """
        weights = self.flat_weights
        if weights is None or self.num_windows == 1:
            return weights
        windows: Tensor = weights.unflatten(0, (-1, self.num_windows))
        return windows

    @property
    def flat_weights(self) -> Tensor | None:
        """The weights (batch · window, head, query, key); None if they were summarized."""
        if self.is_summarized:
            return None
        width = self._num_filled_keys()
        parts = [part for part in self._parts if isinstance(part, Tensor)]
        parts = [_with_width(part, width) for part in parts]
        if len(parts) > 1:
            parts = [torch.cat(parts, dim=-2)]
        self._parts[:] = parts  # joined once, not at every access
        return parts[0]

    @property
    def summary(self) -> TensorSummary | None:
        """The summary of the weights; None if they were kept in full."""
        parts = [part for part in self._parts if isinstance(part, TensorSummary)]
        return join_summaries(parts, self._num_filled_keys()) if parts else None

    @property
    def is_summarized(self) -> bool:
        """Whether the weights were summarized rather than kept in full."""
        return any(isinstance(part, TensorSummary) for part in self._parts)

    @property
    def storage(self) -> str:
        """A description of what was kept."""
        what = f"top {TOP_KEYS} keys and tiles" if self.is_summarized else "all weights"
        if len(self.heads) == self.num_heads:
            return what
        listed = ", ".join(map(str, self.heads[:6])) + (", …" if len(self.heads) > 6 else "")
        return f"heads {listed} of {self.num_heads}, {what}"

    def _should_summarize(self) -> bool:
        if self.keep == "auto":
            return self._num_weights > self.max_full_weights
        return self.keep == "summary"

    def _summarize_parts(self) -> None:
        first = self.offset
        for n, part in enumerate(self._parts):
            if isinstance(part, Tensor):
                heads = list(range(part.shape[1]))
                part = self._parts[n] = summarize_call(MaterializedWeights(part), heads, first)
            first += part.top_keys.shape[2]

    def _num_filled_keys(self) -> int:
        """Return the number of keys; of a static cache, only those that have been filled."""
        if self.kind != "causal":
            return self.num_keys
        return min(self.num_keys, self.offset + self.num_queries + self.extra_keys)

    def _end(self) -> int:
        """Return the number of positions that the keys should have before the next step."""
        return self.num_keys if self.kind == "cross" else self.offset + self.num_queries

    def _num_dropped(self, call: CapturedCall) -> int:
        """Return how many of the first keys the cache has dropped, as a sliding window does."""
        return 0 if self.kind == "cross" else self._end() - call.offset


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


def _with_width(weights: Tensor, width: int) -> Tensor:
    """Return weights of that many keys, without a copy if they have them."""
    missing = width - weights.shape[-1]
    return pad(weights, (0, missing)) if missing > 0 else weights[..., :width]
