"""Turning recognised calls into records: which calls are kept, and which one continues another."""

from collections import deque
from collections.abc import Sequence

from regard.capture.call_site import CallSite, ModelCall, matches_name
from regard.capture.capture import Capture
from regard.capture.diagnostics import Diagnostics
from regard.capture.layout import CallAxes
from regard.capture.recognised_attention import RecognisedAttention
from regard.capture.records import (
    CapturedAttention,
    Keep,
    RecordBuilder,
    StoredWeights,
    classify,
    classify_windows,
)
from regard.errors import RegardError
from regard.trace import Kind

MAX_OPEN_RECORDS = 32  # per call site, that a step may continue: layers that share one module

_Site = tuple[str, str]  # module and line


class Recorder:
    """Fills a `Capture` with the records of recognised calls.

    Args:
        model: the model's class.
        keep: what to keep of the weights, see `watch`.
        patterns: names or patterns of the modules to capture; all if there is none.
        heads: indices of the heads to keep; all by default.
        keep_vectors: whether to keep queries and keys, too.

    Attributes:
        capture: what has been captured so far.
    """

    def __init__(
        self,
        model: str,
        keep: Keep = "auto",
        patterns: Sequence[str] = (),
        heads: Sequence[int] | None = None,
        *,
        keep_vectors: bool = False,
    ) -> None:
        self._records: list[CapturedAttention] = []
        self.diagnostics = Diagnostics(model, patterns)
        self.capture = Capture(model, self._records, self.diagnostics)
        self._keep, self._patterns, self.keep_vectors = keep, patterns, keep_vectors
        self._heads = None if heads is None else list(heads)
        self._builders: list[RecordBuilder] = []  # of all records, in their order
        # by module and line: records that a step may continue, latest first, and their number
        self._open: dict[_Site, deque[RecordBuilder]] = {}
        self._num_calls: dict[_Site, int] = {}
        # by module and softmaxes: the weights that were multiplied with values
        self._multiplied: dict[tuple[str, frozenset[int]], list[CallAxes]] = {}

    def add(
        self, attention: RecognisedAttention, model_call: ModelCall | None = None
    ) -> CapturedAttention | None:
        """Record a call, as the next step or chunk of an earlier one or on its own.

        Args:
            attention: the call.
            model_call: the call of the model that it belongs to, if it may be a generation step.

        Returns:
            The record of the call; None if it is not kept.
        """
        name, axes = attention.site.module_name, attention.axes
        if not self._selects(name):
            self.diagnostics.excluded[name] = None
            return None
        if axes.softmaxes:
            known = self._multiplied.setdefault((name, axes.softmaxes), [])
            if any(axes.are_within(others) for others in known):
                return None  # the module multiplied these very weights with other values before
            record = self._append_part(attention) if known else None
            known.append(axes)
            if record is not None:
                return record
        return self._continue_record(attention, model_call) or self._start(attention, model_call)

    def _append_part(self, attention: RecognisedAttention) -> CapturedAttention | None:
        """Append a call to the record of other parts of its softmax; None if there is none."""
        call, axes, name = attention.call, attention.axes, attention.site.module_name
        same_rows = attention.same_rows is not False
        for builder in reversed(self._builders):
            record = builder.record
            if record.name != name or record.axes.softmaxes != axes.softmaxes:
                continue
            if builder.append_part(call, axes, same_rows) or builder.append_window_part(call, axes):
                return record
        return None

    def _continue_record(
        self, attention: RecognisedAttention, model_call: ModelCall | None
    ) -> CapturedAttention | None:
        """Append a call to the record that it continues; None if there is none."""
        call, axes, same_rows = attention.call, attention.axes, attention.same_rows
        kind = _kind(attention)
        builders = self._open.get(_site(attention), deque())
        for builder in builders:
            if builder.is_next_chunk(call, axes):
                builder.append_chunk(call, axes, same_rows is not False)
                return builder.record
            if builder.is_next_step(call, kind, model_call) or (
                same_rows and builder.is_next_step(call, "causal", model_call)
            ):
                builder.append_step(call, model_call)
                builders.remove(builder)
                builders.appendleft(builder)
                return builder.record
        return None

    def _start(
        self, attention: RecognisedAttention, model_call: ModelCall | None
    ) -> CapturedAttention:
        """Record a call on its own."""
        call, site, kind = attention.call, _site(attention), _kind(attention)
        record = CapturedAttention(
            *site,
            call=self._num_calls.get(site, 0),
            kind=kind,
            heads=self._selected_heads(attention.site.module_name, call.shape[1]),
            num_heads=call.shape[1],
            offset=call.offset if kind == "causal" else 0,
            extra_keys=call.extra_keys,
            axes=attention.axes,
            keep_vectors=self.keep_vectors,
            stored=StoredWeights(self._keep),
        )
        builder = RecordBuilder(record)
        builder.append(call, model_call)
        self._records.append(record)
        self._builders.append(builder)
        self._open.setdefault(site, deque(maxlen=MAX_OPEN_RECORDS)).appendleft(builder)
        self._num_calls[site] = record.call + 1
        return record

    def remove(self, softmaxes: frozenset[int]) -> list[CapturedAttention]:
        """Remove and return the records of some softmaxes."""
        found = [
            builder for builder in self._builders if builder.record.axes.softmaxes == softmaxes
        ]
        self._multiplied = {key: x for key, x in self._multiplied.items() if key[1] != softmaxes}
        for builder in found:
            site = builder.record.name, builder.record.call_site
            self._num_calls[site] -= 1
            others = (other for other in self._open[site] if other is not builder)
            self._open[site] = deque(others, maxlen=MAX_OPEN_RECORDS)
            self._builders.remove(builder)
        removed = [builder.record for builder in found]
        self._records[:] = [x for x in self._records if all(x is not y for y in removed)]
        return removed

    def note_softmax(self, site: CallSite, is_over_positions: bool) -> None:
        """Note a softmax that did not become attention."""
        if self._selects(site.module_name):
            self.diagnostics.add_softmax(site, is_over_positions)

    def close(self) -> None:
        """Drop the state used to recognise what continues a record."""
        self._builders.clear()
        self._open.clear()
        self._multiplied.clear()

    def _selects(self, name: str) -> bool:
        """Return whether a module is to be captured."""
        return not self._patterns or any(matches_name(name, x) for x in self._patterns)

    def _selected_heads(self, name: str, num_heads: int) -> list[int]:
        heads = list(range(num_heads)) if self._heads is None else self._heads
        if not all(0 <= head < num_heads for head in heads):
            raise RegardError(
                f"heads must be indices from 0 to {num_heads - 1} for {name}, but they are {heads}"
            )
        return heads


def _site(attention: RecognisedAttention) -> _Site:
    """Return the module and line of a call."""
    return attention.site.module_name, attention.site.location


def _kind(attention: RecognisedAttention) -> Kind:
    call, same_rows = attention.call, attention.same_rows
    if attention.axes.needs_positions:
        return classify_windows(call, attention.axes, same_rows)
    return classify(call, same_rows, attention.from_cache, attention.axes.leading_keys)
