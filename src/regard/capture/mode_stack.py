"""The stack of torch function modes of a thread: entries are left and entered in any order."""

from collections.abc import Callable

from torch.overrides import (
    TorchFunctionMode,
    _get_current_function_mode_stack,
    _pop_mode,
    _push_mode,
)
from torch.utils._device import DeviceContext

from regard.errors import RegardError


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
