"""Reading one frame of the Python call stack, without a change that its function would notice."""

import inspect
import os
import sys
from pathlib import Path
from types import FrameType

from torch import nn

MODULE_CALL = nn.Module._call_impl.__code__
_CAPTURE_FOLDER = f"{Path(__file__).parents[1]}{os.sep}"

_READS_LOCALS = {"locals", "vars", "eval", "exec", "f_locals"}  # names that give access to locals


def outside_frame(frame: FrameType | None) -> FrameType | None:
    """Return the first frame, from this one up, that is not one of the capture package."""
    while frame is not None and frame.f_code.co_filename.startswith(_CAPTURE_FOLDER):
        frame = frame.f_back
    return frame


def first_argument(frame: FrameType) -> object:
    """Return the first argument of the frame's function; None if it has none."""
    code = frame.f_code
    if not code.co_argcount or not code.co_flags & inspect.CO_OPTIMIZED:
        return None
    if _may_hold_locals(frame):
        return _module_of_caller(frame)
    return local_variable(frame, code.co_varnames[0])


def _may_hold_locals(frame: FrameType) -> bool:
    """Return whether the function may hold its locals() dict.

    Before Python 3.13, reading `frame.f_locals` updates that very dict, which the function would
    notice.
    """
    return sys.version_info < (3, 13) and not _READS_LOCALS.isdisjoint(frame.f_code.co_names)


def local_variable(frame: FrameType, name: str) -> object:
    """Return a local variable; None where reading it would be noticed."""
    if _may_hold_locals(frame):
        return None
    variables = frame.f_locals
    value = variables.get(name)
    if type(variables) is dict:
        # before Python 3.13 the copy stays with the frame and would keep its tensors alive
        variables.clear()
    return value


def _module_of_caller(frame: FrameType) -> object:
    """Return the module from the frame of `nn.Module._call_impl` that called this function."""
    caller = frame.f_back
    while caller is not None and caller.f_code.co_filename == MODULE_CALL.co_filename:
        if caller.f_code is MODULE_CALL:
            return first_argument(caller)
        caller = caller.f_back
    return None


def is_method_name(frame: FrameType) -> bool:
    """Return whether the first argument is called self."""
    return bool(frame.f_code.co_argcount) and frame.f_code.co_varnames[0] == "self"


def is_method(frame: FrameType) -> bool:
    """Return whether a frame is of a module's method, other than those of torch that call it."""
    code = frame.f_code
    if code.co_filename == MODULE_CALL.co_filename:
        return False
    if is_method_name(frame):
        return True
    method = getattr(type(first_argument(frame)), code.co_name, None)
    return getattr(method, "__code__", None) is code  # forward(this, x)
