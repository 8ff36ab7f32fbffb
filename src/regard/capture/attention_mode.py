"""The torch function mode that sees what a model computes, and what is recognised in it."""

import inspect
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
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
from regard.capture.call_site import ModuleNames
from regard.capture.calls import side_effect_free_copy
from regard.capture.functions import (
    FunctionCall,
    function_name,
    python_twin,
    tensors_by_position,
)
from regard.capture.modes import is_isolated, isolated, remove
from regard.capture.recognised_attention import RecognisedAttention
from regard.capture.recogniser import AttentionRecogniser
from regard.capture.weights import appended_keys

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
        self._recogniser = AttentionRecogniser(names, keep_vectors=keep_vectors)
        self._in_regard_call = False
        self._thread = get_ident()  # a mode sees its own thread only, an observer all of them

    @abstractmethod
    def on_attention(self, attention: RecognisedAttention) -> Any:
        """Return what the model receives as the result of a call."""

    def on_function(self) -> None:
        """Note that a torch function runs, or regard's own attention."""

    def on_retraction(self, softmaxes: frozenset[int]) -> None:
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
                self._recogniser.weights.before_dropout(name, positional, rest)
        out, attention = func(*args, **kwargs), None
        with isolated():
            try:  # as `_never_fail`, which takes longer
                call = FunctionCall(func, name, positional, rest, out)
                attention = self._recogniser.examine(call)
                for softmaxes in self._recogniser.retracted:
                    self.on_retraction(softmaxes)
            except Exception as error:
                self.on_failure(error, positional)
        if attention is None:
            return out
        result = self.on_attention(attention)
        if result is not out and isinstance(out, Tensor) and isinstance(result, Tensor):
            self._recogniser.weights.replace(out, result)
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
                attention = self._recogniser.of_regard_call(call, result)
            return result if attention is None else self.on_attention(attention)

    def on_attention_function(self, call: AttentionFunctionCall, run: Callable[[], Any]) -> Any:
        """Run an attention function of transformers, unless torch functions show what it does."""
        if self._paused() or get_ident() != self._thread:
            return run()
        num_recognised = self._recogniser.num_recognised
        result, attention = run(), None
        if self._recogniser.num_recognised == num_recognised:
            with isolated(), self._never_fail():
                attention = self._recogniser.of_attention_function(call, result)
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


def _in_backward() -> bool:
    """Return whether this is a backward pass, in which checkpointed layers run again."""
    return bool(torch._C._current_graph_task_id() != -1)
