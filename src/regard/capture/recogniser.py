"""Recognition of attention among the torch functions that a model calls.

Four trackers follow every tensor from one function to the next: `AxisTracker` (which axis is
which), `RowTracker` (which element is which), `Lineage` (which rows it was projected from) and
`WeightTracker` (whether it is weights on their way to values). What they know of a call's tensors
makes a `RecognisedAttention` of it.
"""

from dataclasses import replace
from typing import Any

from regard.attention import AttentionCall
from regard.capture.attention_interface import AttentionFunctionCall
from regard.capture.axes import AxisTracker
from regard.capture.call_site import CallSite, ModuleNames
from regard.capture.calls import CapturedCall, capture_regard_call, to_four_axes
from regard.capture.functions import FunctionCall
from regard.capture.fused_functions import FUSED_FUNCTIONS, SDPAReader, read_flex_call
from regard.capture.lineage import Lineage
from regard.capture.modes import uncaptured
from regard.capture.recognised_attention import RecognisedAttention
from regard.capture.rows import RowTracker
from regard.capture.weights import MatchedAttention, ScoreTracker, WeightTracker, appended_keys

# functions that make constants of a shape and numbers
_FILLED = {"arange", "eye", "full", "linspace", "logspace", "ones", "zeros"}


class AttentionRecogniser:
    """Recognises attention, one call of a function after the other.

    Args:
        names: the modules of the model.
        keep_vectors: whether to follow queries and keys of weights that the model computes itself.

    Attributes:
        num_recognised: number of calls that were recognised.
        retracted: softmaxes of which the latest function showed that they are no attention.
        weights: the tracker of weights that the model computes itself.
    """

    def __init__(self, names: ModuleNames, *, keep_vectors: bool = False) -> None:
        self._names = names
        with uncaptured():
            self._axes = AxisTracker(names.constants())
        self._rows = RowTracker(self._axes)
        self._lineage = Lineage(self._axes.is_parameter, self._axes.is_constant)
        self._sdpa = SDPAReader(self._axes, self._rows)
        scores = ScoreTracker(self._axes) if keep_vectors else None
        self.weights = WeightTracker(
            self._lineage, self._axes, self._rows, names.find_call_site, scores
        )
        self.num_recognised = 0
        self.retracted: list[frozenset[int]] = []

    def examine(self, call: FunctionCall) -> RecognisedAttention | None:
        """Return the attention that a function completes, or follow what may become part of it."""
        if call.name in _FILLED and self._names.find_call_site() is not None:
            self._axes.add_filled(call.results)  # elsewhere it may be an input of the model
        self._axes.update(call, self.weights.find(call.inputs))
        self._rows.update(call)
        self.retracted = []
        if call.name in FUSED_FUNCTIONS:
            return self._of_fused_function(call)
        match = self.weights.update(call)
        self.retracted = self.weights.take_retracted()
        if match is not None:
            return self._of_match(match, call)
        if not self.retracted:
            # a context has no lineage: it is not the rows that were attended to
            self._lineage.update(call)
        return None

    def of_regard_call(self, call: AttentionCall, result: object) -> RecognisedAttention | None:
        """Return a call of regard's own attention; None if the model did not make it."""
        captured = capture_regard_call(call)
        if (site := self._site_of(captured)) is None:
            return None
        # queries with a position among the keys belong to the same text
        has_position = call.shape.offset is not None
        return RecognisedAttention(
            captured,
            result,
            has_position or self._lineage.same_rows(call.queries, call.keys),
            has_position or self._lineage.from_cache(call.keys),
            site,
            capture_again=lambda: capture_regard_call(call),
            by_head=lambda context: context.reshape(*captured.shape[:3], -1),
            returns_weights=isinstance(result, tuple),
        )

    def of_attention_function(
        self, call: AttentionFunctionCall, result: Any
    ) -> RecognisedAttention | None:
        """Return a call of a kernel of transformers; None if the model did not make it."""
        captured = call.to_captured()
        if (site := self._site_of(captured)) is None:
            return None
        return RecognisedAttention(
            captured,
            result,
            self._lineage.same_rows(call.queries, call.keys),
            self._lineage.from_cache(call.keys),
            site,
            capture_again=call.to_captured,
            by_head=lambda context: context.transpose(1, 2),
        )

    def _of_fused_function(self, function: FunctionCall) -> RecognisedAttention | None:
        queries, keys = function.args[:2]
        same_rows = self._lineage.same_rows(queries, keys)
        if function.name == "flex_attention":
            fused = read_flex_call(function)
        else:
            fused = self._sdpa.read(function, same_rows, appended_keys.get())
        call = fused.capture()
        if (site := self._site_of(call)) is None:
            return None
        return RecognisedAttention(
            call,
            function.out,
            same_rows,
            self._lineage.from_cache(keys),
            site,
            capture_again=fused.capture,
            by_head=fused.by_head,
            axes=fused.axes,
            function=function,
        )

    def _of_match(
        self, match: MatchedAttention, function: FunctionCall
    ) -> RecognisedAttention | None:
        if (site := self._site_of(match.call, match.site)) is None:
            return None
        function = match.follow_up or function
        return RecognisedAttention(
            match.call,
            function.out,
            match.same_rows,
            match.from_cache,
            site,
            capture_again=lambda: match.call,
            by_head=to_four_axes,
            axes=replace(match.axes, softmaxes=match.softmaxes, part=match.part),
            function=function,
            match=match,
        )

    def _site_of(self, call: CapturedCall, site: CallSite | None = None) -> CallSite | None:
        """Return where the model made a call; None if it did not, or the call is empty."""
        self.num_recognised += 1
        site = site or self._names.find_call_site()
        return site if all(call.shape) else None
