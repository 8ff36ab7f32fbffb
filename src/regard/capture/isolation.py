"""Isolation of what capturing computes: from autograd, other modes, and the state of the model."""

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import lru_cache
from types import MethodType
from typing import Any, cast

import torch
from torch import nn
from torch.jit import ScriptModule

from regard.attention import FunctionScore, Score

try:  # private names of torch; without them other modes see what capturing computes
    from torch._C import _len_torch_dispatch_stack
    from torch._ops import _len_torch_dispatch_stack_pre_dispatch
    from torch.utils._python_dispatch import _disable_current_modes
except ImportError:  # pragma: no cover
    _len_torch_dispatch_stack = _len_torch_dispatch_stack_pre_dispatch = int
    _disable_current_modes = nullcontext  # type: ignore[assignment]

_thread = threading.local()
_eager_lock = threading.Lock()
_num_eager = 0
_restore_stance = ExitStack()


def is_isolated() -> bool:
    """Return whether any capture of this thread is computing for itself."""
    return getattr(_thread, "isolated", False)


@contextmanager
def uncaptured() -> Iterator[None]:
    """Compute with gradients, but unseen by the captures of this thread."""
    before = is_isolated()
    _thread.isolated = True
    try:
        yield
    finally:
        _thread.isolated = before


class isolated:
    """Compute without gradients, and unseen by captures and by all dispatch modes of torch.

    A class, since it is entered after every function of a model: a generator takes 20 times as
    long. Modes that checkpoint, export or count flops are disabled; checking for them is cheap.
    """

    __slots__ = ("_had_gradients", "_modes", "_was_isolated")

    def __enter__(self) -> None:
        self._was_isolated, self._had_gradients = is_isolated(), torch.is_grad_enabled()
        self._modes: AbstractContextManager[Any] | None = None
        _thread.isolated = True
        if self._had_gradients:
            torch.set_grad_enabled(False)
        if _len_torch_dispatch_stack() or _len_torch_dispatch_stack_pre_dispatch():
            self._modes = _disable_current_modes()
            self._modes.__enter__()

    def __exit__(self, *error: Any) -> None:
        if self._modes is not None:
            self._modes.__exit__(*error)
        if self._had_gradients:
            torch.set_grad_enabled(True)
        _thread.isolated = self._was_isolated


@contextmanager
def compiled_models_run_eagerly() -> Iterator[None]:
    """Run compiled models eagerly in all threads; the last of overlapping contexts restores."""
    global _num_eager
    with _eager_lock:
        if _num_eager == 0:
            _restore_stance.enter_context(torch.compiler.set_stance("force_eager"))
        _num_eager += 1
    try:
        yield
    finally:
        with _eager_lock:
            _num_eager -= 1
            if _num_eager == 0:
                _restore_stance.close()


def side_effect_free_copy(score: Score) -> Score:
    """Copy a score so that calling it changes nothing in the model.

    The copy of a module, or of the module that a method is bound to, shares parameters but has
    buffers and attributes of its own and runs no hooks. A plain function is called as it is.
    """
    if isinstance(score, FunctionScore) and not isinstance(score.function, nn.Module):
        function = score.function
        owner = getattr(function, "__self__", None)
        if isinstance(owner, nn.Module) and isinstance(function, MethodType):
            function = MethodType(function.__func__, _copy_module(owner, {}))
        return FunctionScore(function)
    return cast(Score, _copy_module(score, {}))


def _copy_module(module: nn.Module, copies: dict[int, nn.Module]) -> nn.Module:
    original = getattr(module, "_orig_mod", module)  # of a compiled module: what was compiled
    module = original if isinstance(original, nn.Module) else module
    if isinstance(module, ScriptModule):
        return module
    if id(module) not in copies:
        cls: type[nn.Module] = _without_hooks(type(module))  # type: ignore[arg-type]
        copy = copies[id(module)] = cls.__new__(cls)
        copy.__dict__ = dict(module.__dict__)
        copy._buffers = {
            name: None if buffer is None else buffer.clone()
            for name, buffer in module._buffers.items()
        }
        copy._modules = {
            name: None if child is None else _copy_module(child, copies)
            for name, child in module._modules.items()
        }
    return copies[id(module)]


@lru_cache(maxsize=64)
def _without_hooks(cls: type[nn.Module]) -> type[nn.Module]:
    """Return a subclass whose call runs `forward` and nothing else."""

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self.forward(*args, **kwargs)

    return type(cls.__name__, (cls,), {"__call__": call, "__module__": cls.__module__})
