"""`watch`, and the torch function mode behind it that sees every torch call."""

import inspect
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from threading import get_ident
from types import FunctionType
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.overrides import TorchFunctionMode

from regard._support.torch_modes import in_functorch
from regard.attention import AttentionCall, register_observer
from regard.capture.arrangement import PLAIN_AXES, CallAxes, FusedLayout
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
    capture_regard_call,
    to_four_axes,
)
from regard.capture.capture import Capture
from regard.capture.edited import with_edits
from regard.capture.function_call import FunctionCall
from regard.capture.isolation import (
    compiled_models_run_eagerly,
    is_isolated,
    isolated,
    side_effect_free_copy,
    uncaptured,
)
from regard.capture.lineage import Lineage, tensors_in
from regard.capture.mask_analysis import as_tensor
from regard.capture.mode_stack import remove
from regard.capture.record import KEEP_CHOICES, Keep
from regard.capture.score_products import ScoreTracker
from regard.capture.tracked_weights import MatchedAttention
from regard.capture.weight_tracker import WeightTracker, appended_keys
from regard.errors import RegardError, unknown_name, wrong_type

FUSED_FUNCTIONS = {"scaled_dot_product_attention", "flex_attention"}

# called constantly and irrelevant: skipped for speed
_IGNORED = {"", "dim", "size", "is_floating_point", "stride", "numel", "__set__"}
_IGNORED |= {"_set_grad_enabled", "__len__", "__bool__", "item", "is_contiguous"}
_TENSOR_ATTRIBUTES = {"T", "mT", "H", "mH"}  # attributes that are views of the tensor
_SCRIPTED = "it is TorchScript, whose functions torch does not show; watch the Python module"
_OTHER_THREAD = "it ran in another thread; call it in the thread of `with watch(...)`"
_ON_META = "tensors on the meta device have no values; watch a pass on a real device"
_NESTED = "nested tensors are not supported; pad them, and pass a mask of the padding"
_UNDER_TRANSFORM = (
    "tensors have no values under torch.func or forward-mode differentiation; watch a plain pass"
)
# names of tensor arguments of torch functions, in the order of their positions
_TENSOR_ARGUMENTS = (
    *("query", "key", "value", "condition", "input", "self", "tensors", "mat1", "batch1"),
    *("other", "mat2", "batch2", "vec", "weight", "bias"),
)


@contextmanager
def watch(
    model: nn.Module,
    keep: Keep = "auto",
    modules: str | Sequence[str] | None = None,
    heads: Sequence[int] | None = None,
    *,
    keep_vectors: bool = False,
) -> Iterator[Capture]:
    """Capture the attention of a model: `with watch(model) as capture: model(x)`.

    The output is bit-identical to that of an unwatched pass, with two exceptions. A compiled model
    runs eagerly. `nn.MultiheadAttention`, `nn.TransformerEncoderLayer`, `nn.TransformerEncoder` and
    modules made of them take their slow path in eval mode, which rounds differently; an encoder
    that is given `src_key_padding_mask` then writes values rather than zeros at padded positions.

    Not captured: other threads, TorchScript, and passes under `torch.func`. The steps of a
    generation with a KV cache become one record, also over a sliding window. A beam search that
    reorders rows between steps is not joined; watch a single pass over its result instead. Several
    `watch` may overlap in one thread, as in asyncio tasks; each captures all calls of its model.

    Args:
        model: any PyTorch model, or a part of one.
        keep: "all" keeps the weights in full, "summary" keeps the heaviest keys of each row, a
            coarse picture and statistics, and "auto" summarizes calls of more than four million
            weights.
        modules: names or patterns such as "decoder.*" of the modules to capture; all by default.
        heads: indices of the heads to keep; all by default.
        keep_vectors: also keep the queries and keys that were compared, as `vectors` of each
            record, which `viz.plot_neuron_view` draws; None where the scores are not one product of
            queries and keys.

    Yields:
        The capture, which is filled while the model runs.

    Raises:
        TypeError: if `model` is no module.
        RegardError: if an argument has no meaning for this model.

    Example:
        >>> import torch
        >>> model = torch.nn.MultiheadAttention(12, num_heads=3, batch_first=True)
        >>> x = torch.randn(2, 5, 12)
        >>> with watch(model) as capture:
        ...     output, _ = model(x, x, x, need_weights=False)
        >>> capture[0].weights.shape
        torch.Size([2, 3, 5, 5])
    """
    if not isinstance(model, nn.Module):
        raise wrong_type("model", "an nn.Module", model)
    names = ModuleNames(model)
    patterns = _check_arguments(keep, modules, names)
    capture = Capture(type(model).__name__, keep, patterns, heads, keep_vectors=keep_vectors)
    mode = CaptureMode(names, capture)
    with compiled_models_run_eagerly(), mode.observing(), mode.noting_other_threads(), mode:
        try:
            yield capture
        finally:
            mode.close()


class CaptureMode(TorchFunctionMode):
    """A torch function mode that runs every function unchanged and examines what it did."""

    def __init__(self, names: ModuleNames, capture: Capture) -> None:
        super().__init__()
        self._names, self._capture = names, capture
        self._lineage = Lineage()
        with uncaptured():
            self._axes = AxisTracker(names.constants())
        scores = ScoreTracker(self._axes) if capture.keep_vectors else None
        self._weight_tracker = WeightTracker(
            self._lineage, self._axes, names.find_call_site, scores
        )
        self._in_regard_call = False
        self._num_recognised = 0
        self._thread = get_ident()  # a mode sees its own thread only, an observer all of them

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
        self._capture.num_functions += 1
        if func is functional.multi_head_attention_forward:
            return self._run_python_twin(func, args, kwargs)
        positional, rest = tensors_by_position(args, kwargs)
        if "dropout" in name:
            with isolated(), self._never_fail(positional):
                self._weight_tracker.before_dropout(name, positional, rest)
        out = func(*args, **kwargs)
        with isolated():
            try:  # as `_never_fail`, which takes longer
                self._examine(FunctionCall(func, name, positional, rest, out))
            except Exception as error:
                self._handle_failure(error, positional)
        return out

    def __exit__(self, *error: object) -> None:
        """Leave the mode stack, even if other modes have been entered meanwhile."""
        remove(self)

    def close(self) -> None:
        """List what was seen but is not attention or was not captured; close the capture."""
        for name in self._names.scripted():
            self._capture.record_module(name, _SCRIPTED)
        for root in self._weight_tracker.unresolved():
            if root.site is not None:
                is_mixture = root.is_feature or root.state == "not attention"
                self._capture.record_softmax(root.site, is_over_positions=not is_mixture)
        self._capture.close()

    def on_regard_call(self, call: AttentionCall, run: Callable[[], object]) -> object:
        """Run a call of regard's own attention, then record it; its inner functions are skipped."""
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
        self._capture.num_functions += 1
        with isolated(), self._never_fail(), call.preserve_rng():
            # queries with a position among the keys belong to the same text
            has_position = call.shape.offset is not None
            same_rows = has_position or self._lineage.same_rows(call.queries, call.keys)
            from_cache = has_position or self._lineage.from_cache(call.keys)
            self._record(capture_regard_call(call), same_rows, from_cache, result)
        return result

    @contextmanager
    def observing(self, *, innermost: bool = False) -> Iterator[None]:
        """Observe calls that no torch function shows: regard's own, and kernels of transformers."""
        with (
            register_observer(self.on_regard_call, innermost=innermost),
            observe_attention_functions(self.on_attention_function, innermost=innermost),
        ):
            yield

    @contextmanager
    def noting_other_threads(self) -> Iterator[None]:
        """Note calls of the model's modules in other threads.

        The hook is torch's own, not the model's, and changes nothing that a module computes. torch
        warns about such hooks in compiled modules, where they run twice; this one may run twice.
        """
        hook = register_module_forward_pre_hook(self.on_module_call)
        warnings.filterwarnings("ignore", "Using `torch.compile.module.` when there are global")
        ignored = warnings.filters[0]
        try:
            yield
        finally:
            hook.remove()
            with suppress(ValueError):  # others may have reset the filters
                cast(list[Any], warnings.filters).remove(ignored)

    def on_module_call(self, module: nn.Module, _: tuple[Any, ...]) -> None:
        """Note a module of the model that another thread calls: this mode cannot see inside."""
        if get_ident() != self._thread and (name := self._names.name_of(module)) is not None:
            self._capture.record_module(name, _OTHER_THREAD)

    def on_attention_function(self, call: AttentionFunctionCall, run: Callable[[], Any]) -> Any:
        """Run an attention function of transformers; record it unless torch functions showed it."""
        if self._paused() or get_ident() != self._thread:
            return run()
        num_recognised = self._num_recognised
        result = run()
        if self._num_recognised == num_recognised:
            with isolated(), self._never_fail():
                captured = call.to_captured()
                self._record_pair(captured, call.queries, call.keys, result, PLAIN_AXES)
        return result

    def _paused(self) -> bool:
        return self._in_regard_call or is_isolated() or _in_backward()

    def _examine(self, call: FunctionCall) -> None:
        """Recognise attention, or follow the tensors that may become part of it."""
        self._axes.update(call, self._weight_tracker.find(call.args))
        if call.name in FUSED_FUNCTIONS:
            captured, axes = self._fused_call(call.name, call.args, call.kwargs)
            self._record_pair(captured, call.args[0], call.args[1], call.out, axes)
        elif (match := self._weight_tracker.update(call)) is not None:
            self._record_match(match, call.out)
        elif retracted := self._weight_tracker.take_retracted():
            for roots in retracted:
                self._retract(roots)
        else:
            # a context has no lineage: it is not the rows that were attended to
            self._lineage.derive(call.name, call.inputs, call.results)

    def _retract(self, roots: frozenset[int]) -> None:
        """Remove the record of a pool of features that queries were multiplied with."""
        self._capture.remove(roots)

    def _record_match(self, match: MatchedAttention, out: Any) -> None:
        axes = replace(match.axes, roots=match.roots, part=match.part)
        self._record(match.call, match.same_rows, match.from_cache, out, axes, match.site)

    def _fused_call(
        self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[SDPACall | FlexCall, CallAxes]:
        """Return the call of a fused function, whose weights it does not compute."""
        if name == "flex_attention":
            return FlexCall(*args, **kwargs), PLAIN_AXES
        queries, keys, values, *rest = args
        layout = FusedLayout(self._axes, queries, keys, values)
        mask = kwargs.pop("attn_mask", None) if "attn_mask" in (kwargs := dict(kwargs)) else None
        if rest:
            mask, *rest = rest
        call = SDPACall(
            layout.rows(queries, "query"),
            layout.rows(keys, "key"),
            layout.rows(values, "key"),
            None if mask is None else layout.mask(as_tensor(mask)),
            *rest,
            **kwargs,
            extra_keys=appended_keys.get(),
        )
        return call, layout.axes_of_call(keys)

    def _context_layout(self, name: str, args: tuple[Any, ...]) -> Callable[[Tensor], Tensor]:
        """Return how the context of a fused call is brought to (batch, head, query, value)."""
        if name == "flex_attention":
            return to_four_axes
        layout = FusedLayout(self._axes, *args[:3])
        return lambda context: layout.rows(context, "query")

    def _record_pair(
        self, call: CapturedCall, queries: Tensor, keys: Tensor, out: Any, axes: CallAxes
    ) -> None:
        lineage = self._lineage
        same_rows = lineage.same_rows(queries, keys)
        self._record(call, same_rows, lineage.from_cache(keys), out, axes)

    def _record(
        self,
        call: CapturedCall,
        same_rows: bool | None,
        from_cache: bool,
        out: Any,
        axes: CallAxes = PLAIN_AXES,
        site: CallSite | None = None,
    ) -> None:
        self._num_recognised += 1
        call = with_edits(call, out)
        site = site or self._names.find_call_site()
        if site is None or not all(call.shape):
            return
        may_be_step = call.shape[2] == 1
        model_call = self._names.find_model_call() if may_be_step else None
        with _without_autocast():
            self._capture.add(site, call, same_rows, from_cache, model_call, axes)

    def _run_python_twin(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Run a torch function that is written in Python so that the mode sees its inner calls.

        Such a function calls `has_torch_function` first and, if a mode is active, passes itself to
        the mode, where its inner calls are hidden. The twin has the same code, but globals in which
        `has_torch_function` returns False.
        """
        assert isinstance(func, FunctionType), "it is written in Python"
        twin = FunctionType(
            func.__code__,
            {**func.__globals__, "has_torch_function": lambda _: False},
            func.__name__,
            func.__defaults__,
            func.__closure__,
        )
        twin.__kwdefaults__ = func.__kwdefaults__
        arguments = inspect.signature(func).bind(*args, **kwargs).arguments
        num_appended = (arguments["bias_k"] is not None) + bool(arguments["add_zero_attn"])
        token = appended_keys.set(num_appended)
        try:
            with self:
                return twin(*args, **kwargs)
        finally:
            appended_keys.reset(token)

    @contextmanager
    def _never_fail(self, args: tuple[Any, ...] = ()) -> Iterator[None]:
        """Turn any error of capturing into a note, so that the forward pass continues."""
        try:
            yield
        except Exception as error:
            self._handle_failure(error, args)

    def _handle_failure(self, error: Exception, args: tuple[Any, ...]) -> None:
        """Note an error of capturing.

        A `RegardError` is a mistake in the arguments of `watch` and is raised.
        """
        if isinstance(error, RegardError):
            raise error
        site = self._names.find_call_site()
        if site is not None:
            self._capture.record_failure(site, _failure_reason(error, args))


def function_name(func: Callable[..., Any]) -> str:
    """Return a function's name without its overload, and "" for most attributes of tensors."""
    name = getattr(func, "__name__", "")
    if name == "__get__":
        name = getattr(getattr(func, "__self__", None), "__name__", "")
        return name if name in _TENSOR_ATTRIBUTES else ""
    return name.partition(".")[0]


def tensors_by_position(
    args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Append tensors that were passed by name to the positional arguments, in torch's order."""
    if not kwargs:
        return args, kwargs
    names = [
        name
        for name, value in kwargs.items()
        if name in _TENSOR_ARGUMENTS and isinstance(value, Tensor | list | tuple)
    ]
    if not names:
        return args, kwargs
    names.sort(key=_TENSOR_ARGUMENTS.index)
    rest = {name: value for name, value in kwargs.items() if name not in names}
    return (*args, *(kwargs[name] for name in names)), rest


def _in_backward() -> bool:
    """Return whether this is a backward pass, in which checkpointed layers run again."""
    return bool(torch._C._current_graph_task_id() != -1)


@contextmanager
def _without_autocast() -> Iterator[None]:
    """Disable autocast: queries and keys have been rounded when the call was captured."""
    devices = [d for d in ("cpu", "cuda") if torch.is_autocast_enabled(d)]
    with ExitStack() as stack:
        for device in devices:
            stack.enter_context(torch.autocast(device, enabled=False))
        yield


def _failure_reason(error: Exception, args: tuple[Any, ...]) -> str:
    """Return why a call could not be captured, in terms of what the user passed."""
    tensors = tensors_in(args)
    if in_functorch():
        return _UNDER_TRANSFORM
    if any(x.is_nested for x in tensors):
        return _NESTED
    return _ON_META if any(x.is_meta for x in tensors) else _first_line(error)


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def _check_arguments(
    keep: Keep, modules: str | Sequence[str] | None, names: ModuleNames
) -> tuple[str, ...]:
    if keep not in KEEP_CHOICES:
        raise RegardError(f"keep must be one of {', '.join(KEEP_CHOICES)}, but it is {keep!r}")
    patterns = (modules,) if isinstance(modules, str) else tuple(modules or ())
    for pattern in patterns:
        if not names.any_match(pattern):
            raise unknown_name("module", pattern, names.all())
    return patterns
