"""The stack of torch's function modes, which may be left in another order than entered."""

from torch.overrides import (
    TorchFunctionMode,
    _get_current_function_mode_stack,
    _pop_mode,
    _push_mode,
)

from regard.errors import RegardError


def leave(mode: TorchFunctionMode) -> None:
    """Take a mode from the stack of this thread, and leave those that came after it."""
    if not any(one is mode for one in _get_current_function_mode_stack()):
        raise RegardError(
            "watch must be left in the thread that entered it, but it is left in another one"
        )
    later = []
    while (top := _pop_mode()) is not mode:
        later.append(top)
    for one in reversed(later):
        _push_mode(one)
