"""The torch function mode that recognises attention in what a model computes."""

import inspect
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from threading import get_ident
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from regard.attention import AttentionCall, register_observer
from regard.capture.attention_interface import (
    AttentionFunctionCall,
    observe_attention_functions,
)
from regard.capture.axes import AxisTracker
from regard.capture.call_site import CallSite, ModuleNames
from regard.capture.calls import (
    CapturedCall,
    FlexCall,
    SDPACall,
    as_tensor,
    capture_regard_call,
    side_effect_free_copy,
    to_four_axes,
)
from regard.capture.functions import (
    FunctionCall,
    function_name,
    python_twin,
    tensors_by_position,
)
from regard.capture.layout import PLAIN_AXES, FusedLayout, WindowPositions, call_axes
from regard.capture.lineage import Lineage
from regard.capture.modes import is_isolated, isolated, remove, uncaptured
from regard.capture.recognised import RecognisedAttention
from regard.capture.rows import RowTracker, learned_keys, positions_of_vectors
from regard.capture.weights import MatchedAttention, ScoreTracker, WeightTracker, appended_keys

FUSED_FUNCTIONS = {"scaled_dot_product_attention", "flex_attention"}

# functions that make constants of a shape and numbers
_FILLED = {"arange", "eye", "full", "linspace", "logspace", "ones", "zeros"}
# called constantly and irrelevant: skipped for speed
_IGNORED = {"", "dim", "size", "is_floating_point", "stride", "numel", "__set__"}
_IGNORED |= {"_set_grad_enabled", "__len__", "__bool__", "item", "is_contiguous"}


class AttentionMode(TorchFunctionMode):
    """A torch function mode that runs every function unchanged and recognises attention.

    Subclasses decide what becomes of it: `on_attention` receives each call and returns the result
    that the model gets.
    """

    def __init__(self, names: ModuleNames, *, keep_vectors: bool = False) -> None:
        super().__init__()
        self._names = names
        with uncaptured():
            self._axes = AxisTracker(names.constants())
        self._lineage = Lineage(self._axes.is_parameter, self._axes.is_constant)
        scores = ScoreTracker(self._axes) if keep_vectors else None
        self._row_sources = RowTracker(self._axes)
        self._weight_tracker = WeightTracker(
            self._lineage, self._axes, self._row_sources, names.find_call_site, scores
        )
        self._in_regard_call = False
        self._num_recognised = 0
        self._thread = get_ident()  # a mode sees its own thread only, an observer all of them

    @abstractmethod
    def on_attention(self, attention: RecognisedAttention) -> Any:
        """Return what the model receives as the result of a call."""

    def on_function(self) -> None:
        """Note that a torch function runs, or regard's own attention."""

    def on_retraction(self, roots: frozenset[int]) -> None:
        """Note that what was recognised of some softmaxes is no attention after all."""

    @abstractmethod
    def on_failure(self, error: Exception, args: tuple[Any, ...]) -> None:
        """Handle an error in recognition, of a function with these arguments."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Run a torch function, then examine it."""
        kwargs = kwargs or {}
        name = function_name(func)
        if name in _IGNORED or self._paused():
            return func(*args, **kwargs)
        self.on_function()
        if func is functional.multi_head_attention_forward:
            return self._run_multi_head_attention(func, args, kwargs)
        positional, rest = tensors_by_position(args, kwargs)
        if "dropout" in name:
            with isolated(), self._never_fail(positional):
                self._weight_tracker.before_dropout(name, positional, rest)
        out, attention = func(*args, **kwargs), None
        with isolated():
            try:  # as `_never_fail`, which takes longer
                attention = self._examine(FunctionCall(func, name, positional, rest, out))
            except Exception as error:
                self.on_failure(error, positional)
        if attention is None:
            return out
        result = self.on_attention(attention)
        if result is not out and isinstance(out, Tensor) and isinstance(result, Tensor):
            self._weight_tracker.replace(out, result)
        return result

    def __exit__(self, *error: object) -> None:
        """Leave the mode stack, even if other modes have been entered meanwhile."""
        remove(self)

    def on_regard_call(self, call: AttentionCall, run: Callable[[], object]) -> object:
        """Run a call of regard's own attention; its inner functions are skipped."""
        if self._paused() or get_ident() != self._thread:
            return run()
        with isolated(), self._never_fail():
            # a copy, with the state that it has before the call
            call = replace(call, score=side_effect_free_copy(call.score))
        self._in_regard_call = True
        try:
            result = run()
        finally:
            self._in_regard_call = False
        self.on_function()
        with call.preserve_rng():
            attention = None
            with isolated(), self._never_fail():
                attention = self._of_regard_call(call, result)
            return result if attention is None else self.on_attention(attention)

    def on_attention_function(self, call: AttentionFunctionCall, run: Callable[[], Any]) -> Any:
        """Run an attention function of transformers, unless torch functions show what it does."""
        if self._paused() or get_ident() != self._thread:
            return run()
        num_recognised = self._num_recognised
        result, attention = run(), None
        if self._num_recognised == num_recognised:
            with isolated(), self._never_fail():
                attention = self._of_attention_function(call, result)
        return result if attention is None else self.on_attention(attention)

    @contextmanager
    def observing(self, *, innermost: bool = False) -> Iterator[None]:
        """Observe calls that no torch function shows: regard's own, and kernels of transformers."""
        with (
            register_observer(self.on_regard_call, innermost=innermost),
            observe_attention_functions(self.on_attention_function, innermost=innermost),
        ):
            yield

    def _paused(self) -> bool:
        return self._in_regard_call or is_isolated() or _in_backward()

    def _examine(self, call: FunctionCall) -> RecognisedAttention | None:
        """Recognise attention, or follow the tensors that may become part of it."""
        if call.name in _FILLED and self._names.find_call_site() is not None:
            self._axes.add_filled(call.results)  # elsewhere it may be an input of the model
        self._axes.update(call, self._weight_tracker.find(call.args))
        self._row_sources.update(call)
        if call.name in FUSED_FUNCTIONS:
            return self._of_fused_function(call)
        match = self._weight_tracker.update(call)
        retracted = self._weight_tracker.take_retracted()
        for roots in retracted:
            self.on_retraction(roots)
        if match is not None:
            return self._of_match(match, call)
        if not retracted:
            # a context has no lineage: it is not the rows that were attended to
            self._lineage.derive(call.name, call.inputs, call.results)
        return None

    def _of_fused_function(self, function: FunctionCall) -> RecognisedAttention | None:
        queries, keys, values = function.args[:3]
        is_flex = function.name == "flex_attention"
        layout = None if is_flex else FusedLayout(self._axes, queries, keys, values)
        positions = None if layout is None else self._window_positions(layout, queries, keys)
        same_rows, extra_keys = self._lineage.same_rows(queries, keys), appended_keys.get()
        leading_keys = 0
        if layout is not None and same_rows and not extra_keys:
            leading_keys, extra_keys = self._learned_keys(layout, queries, keys)
        call = _capture_fused(function, layout, extra_keys)
        if (site := self._site_of(call)) is None:
            return None
        return RecognisedAttention(
            call,
            function.out,
            same_rows,
            self._lineage.from_cache(keys),
            site,
            capture_again=lambda: _capture_fused(function, layout, extra_keys),
            by_head=to_four_axes if layout is None else partial(layout.rows, role="query"),
            axes=PLAIN_AXES
            if layout is None
            else replace(call_axes(layout.weights, positions), leading_keys=leading_keys),
            function=function,
        )

    def _window_positions(
        self, layout: FusedLayout, queries: Tensor, keys: Tensor
    ) -> WindowPositions | None:
        """Return the positions of windows, if there are several."""
        if layout.weights.size("window") == 1:
            return None
        return positions_of_vectors(
            self._row_sources.source(queries),
            layout.layout(queries, "query"),
            self._row_sources.source(keys),
            layout.layout(keys, "key"),
            layout.weights,
        )

    def _learned_keys(self, layout: FusedLayout, queries: Tensor, keys: Tensor) -> tuple[int, int]:
        """Return how many keys before and after those of a text are learned, or zeros."""
        if not 1 < queries.shape[-2] < keys.shape[-2] or layout.weights.size("window") > 1:
            return 0, 0
        return learned_keys(
            self._row_sources.source(queries),
            layout.layout(queries, "query"),
            self._row_sources.source(keys),
            layout.layout(keys, "key"),
            layout.weights,
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
            axes=replace(match.axes, roots=match.roots, part=match.part),
            function=function,
            match=match,
        )

    def _of_regard_call(self, call: AttentionCall, result: object) -> RecognisedAttention | None:
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

    def _of_attention_function(
        self, call: AttentionFunctionCall, result: Any
    ) -> RecognisedAttention | None:
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

    def _site_of(self, call: CapturedCall, site: CallSite | None = None) -> CallSite | None:
        """Return where the model made a call; None if it did not, or the call is empty."""
        self._num_recognised += 1
        site = site or self._names.find_call_site()
        return site if all(call.shape) else None

    def _run_multi_head_attention(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Run `multi_head_attention_forward` so that this mode sees its inner calls."""
        arguments = inspect.signature(func).bind(*args, **kwargs).arguments
        num_appended = (arguments["bias_k"] is not None) + bool(arguments["add_zero_attn"])
        token = appended_keys.set(num_appended)
        try:
            with self:
                return python_twin(func)(*args, **kwargs)
        finally:
            appended_keys.reset(token)

    @contextmanager
    def _never_fail(self, args: tuple[Any, ...] = ()) -> Iterator[None]:
        """Handle any error of recognition, so that the forward pass continues."""
        try:
            yield
        except Exception as error:
            self.on_failure(error, args)


def _capture_fused(
    function: FunctionCall, layout: FusedLayout | None, extra_keys: int
) -> SDPACall | FlexCall:
    """Return the call of a fused function, whose weights it does not compute.

    Without a layout, it is a call of flex_attention. `extra_keys` at the end are no positions.
    """
    if layout is None:
        return FlexCall(*function.args, **function.kwargs)
    (queries, keys, values, *rest), kwargs = function.args, dict(function.kwargs)
    mask = kwargs.pop("attn_mask", None)
    if rest:
        mask, *rest = rest
    return SDPACall(
        layout.rows(queries, "query"),
        layout.rows(keys, "key"),
        layout.rows(values, "key"),
        None if mask is None else layout.mask(as_tensor(mask)),
        *rest,
        **kwargs,
        extra_keys=extra_keys,
    )


def _in_backward() -> bool:
    """Return whether this is a backward pass, in which checkpointed layers run again."""
    return bool(torch._C._current_graph_task_id() != -1)
