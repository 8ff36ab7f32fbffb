"""Modes of torch around a watched model: isolation from them, and their order on the stack."""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any

import torch
from torch.overrides import (
    TorchFunctionMode,
    _get_current_function_mode_stack,
    _pop_mode,
    _push_mode,
)
from torch.utils._device import DeviceContext

from regard.errors import RegardError

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

    def __init__(self) -> None:
        self._was_isolated = self._had_gradients = False  # before it is entered
        self._modes: AbstractContextManager[Any] | None = None

    def __enter__(self) -> None:
        self._was_isolated, self._had_gradients = is_isolated(), torch.is_grad_enabled()
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
    """Run compiled models eagerly in all threads; the last of overlapping contexts restores.

    Raises:
        RegardError: inside a function that `torch.compile` has compiled.
    """
    global _num_eager
    with _eager_lock:
        if _num_eager == 0:
            try:
                _restore_stance.enter_context(torch.compiler.set_stance("force_eager"))
            except RuntimeError as error:
                raise RegardError(
                    "watch and edit cannot be entered in what torch.compile compiles; enter them "
                    "around the call of the compiled function, which then runs eagerly"
                ) from error
        _num_eager += 1
    try:
        yield
    finally:
        with _eager_lock:
            _num_eager -= 1
            if _num_eager == 0:
                _restore_stance.close()


def remove(mode: TorchFunctionMode) -> None:
    """Remove a mode from this thread's stack; modes above it stay.

    Raises:
        RegardError: if it is not on this thread's stack.
    """
    if not any(entry is mode for entry in _get_current_function_mode_stack()):
        raise RegardError("watch and edit must be left in the thread that entered them")
    _pop_while(lambda entry: entry is not mode, then=_pop_mode)


def push_below(mode: TorchFunctionMode, stays_below: Callable[[TorchFunctionMode], bool]) -> None:
    """Put a mode below all others but the default device and those that stay below it."""

    def is_above(entry: TorchFunctionMode) -> bool:
        return not (stays_below(entry) or isinstance(entry, DeviceContext))

    _pop_while(is_above, then=lambda: _push_mode(mode))


def _pop_while(is_above: Callable[[TorchFunctionMode], bool], then: Callable[[], object]) -> None:
    """Take the upper modes off the stack, call a function, and put them back."""
    above = []
    while (stack := _get_current_function_mode_stack()) and is_above(stack[-1]):
        above.append(_pop_mode())
    then()
    for entry in reversed(above):
        _push_mode(entry)
