"""`watch`, and the torch function mode behind it that records the attention of a model."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from threading import get_ident
from typing import Any, cast

import torch
from torch import nn
from torch.jit import ScriptFunction
from torch.nn.modules.module import register_module_forward_pre_hook

from regard._support.entered_context import entered_context
from regard._support.torch_modes import in_functorch
from regard.capture.attention_mode import AttentionMode
from regard.capture.call_site import ModuleNames
from regard.capture.calls import with_edits
from regard.capture.capture import Capture
from regard.capture.functions import tensors_in
from regard.capture.modes import compiled_models_run_eagerly, isolated
from regard.capture.recognised_attention import RecognisedAttention
from regard.capture.recorder import Recorder
from regard.capture.records import KEEP_CHOICES, CapturedAttention, Keep
from regard.capture.scripted_functions import has_softmax, observing_scripted_functions
from regard.errors import RegardError, unknown_name, wrong_type

_SCRIPTED = "it is TorchScript, whose functions torch does not show; watch the Python module"
_SCRIPTED_FUNCTION = "it calls a TorchScript function with a softmax, which torch does not show"
_OTHER_THREAD = "it ran in another thread; call it in the thread of `with watch(...)`"
_ON_META = "tensors on the meta device have no values; watch a pass on a real device"
_NESTED = "nested tensors are not supported; pad them, and pass a mask of the padding"
_UNDER_TRANSFORM = (
    "tensors have no values under torch.func or forward-mode differentiation; watch a plain pass"
)


@entered_context("with regard.watch(model) as capture:")
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
    recorder = Recorder(type(model).__name__, keep, patterns, heads, keep_vectors=keep_vectors)
    mode = CaptureMode(names, recorder)
    with (
        compiled_models_run_eagerly(),
        mode.observing(),
        mode.noting_other_threads(),
        observing_scripted_functions(mode.on_scripted_function),
        mode,
    ):
        try:
            yield recorder.capture
        finally:
            mode.close()


class CaptureMode(AttentionMode):
    """A mode that records the attention of a model."""

    def __init__(self, names: ModuleNames, recorder: Recorder) -> None:
        super().__init__(names, keep_vectors=recorder.keep_vectors)
        self._recorder, self._diagnostics = recorder, recorder.diagnostics

    def on_attention(self, attention: RecognisedAttention) -> Any:
        """Record a call; its result stays as it is."""
        function = attention.function
        with isolated(), self._never_fail(() if function is None else function.args):
            self._record(attention)
        return attention.result

    def on_function(self) -> None:
        """Count the functions, to distinguish a model without attention from one that never ran."""
        self._diagnostics.num_functions += 1

    def on_retraction(self, softmaxes: frozenset[int]) -> None:
        """Remove the record of a pool of features that queries were multiplied with."""
        self._recorder.remove(softmaxes)

    def on_failure(self, error: Exception, args: tuple[Any, ...]) -> None:
        """Note an error of capturing.

        A `RegardError` is a mistake in the arguments of `watch` and is raised.
        """
        if isinstance(error, RegardError):
            raise error
        site = self._names.find_call_site()
        if site is not None:
            self._diagnostics.add_failure(site, _failure_reason(error, args))

    def close(self) -> None:
        """List what was seen but is not attention or was not captured; close the capture."""
        for name in self._names.scripted():
            self._diagnostics.add_module(name, _SCRIPTED)
        for softmax in self._recogniser.weights.unresolved():
            if softmax.site is not None:
                is_mixture = softmax.is_feature or softmax.state == "not attention"
                self._recorder.note_softmax(softmax.site, is_over_positions=not is_mixture)
        self._recorder.close()

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
            self._diagnostics.add_module(name, _OTHER_THREAD)

    def on_scripted_function(self, function: "ScriptFunction[Any, Any]") -> None:
        """Note a TorchScript function that may be attention: this mode cannot see inside."""
        if get_ident() != self._thread or self._paused():
            return
        self.on_function()
        with isolated(), self._never_fail():
            site = self._names.find_call_site()
            if site is not None and has_softmax(function):
                self._diagnostics.add_failure(site, _SCRIPTED_FUNCTION)

    def _record(self, attention: RecognisedAttention) -> CapturedAttention | None:
        """Record a call, with the weights that edits gave it; None if it is not kept."""
        attention = replace(attention, call=with_edits(attention.call, attention.result))
        may_be_step = attention.call.shape[2] == 1
        model_call = self._names.find_model_call() if may_be_step else None
        with _without_autocast():
            return self._recorder.add(attention, model_call)


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
