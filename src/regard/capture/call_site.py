"""Which module looked, and on which line: found on the stack of calls."""

import inspect
import sys
from fnmatch import fnmatchcase
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from torch import nn

_HOLDING = {"locals", "vars", "eval", "exec", "f_locals"}  # ways to the dict of own variables
_CALL = nn.Module._call_impl.__code__


class Call:
    """One call of a model, told from its other calls.

    A call of a module makes a dict of keyword arguments that is its own. A method that makes none
    is known by the line that called it.
    """

    def __init__(self, frame: FrameType) -> None:
        code, caller = frame.f_code, frame.f_back
        self._place = (id(caller), 0 if caller is None else caller.f_lasti)
        self._own: object = None
        if code.co_flags & inspect.CO_VARKEYWORDS:
            before = code.co_argcount + code.co_kwonlyargcount
            starred = bool(code.co_flags & inspect.CO_VARARGS)
            self._own = _variable(frame, code.co_varnames[before + starred])

    def is_also(self, other: "Call") -> bool:
        """Tell whether two looks fell into the same call."""
        if self._own is None or other._own is None:
            return self._place == other._place
        return self._own is other._own


class Site(NamedTuple):
    """A module by its name in the model, and the file and line of its code that looked."""

    name: str
    place: str
    module: nn.Module


class Names:
    """The modules of a model, by the names that a user knows them by."""

    def __init__(self, model: nn.Module) -> None:
        self._names = {
            id(module): _plain(name) or type(module).__name__
            for name, module in model.named_modules()
        }

    def all(self) -> list[str]:
        """List the names."""
        return list(self._names.values())

    def match(self, pattern: str) -> bool:
        """Tell whether a pattern such as "decoder.*" fits any of the names."""
        return any(fnmatchcase(name, pattern) for name in self.all())

    def site(self) -> Site | None:
        """Go up the calls to the first function whose first argument is one of the modules.

        Of the functions that are handed that module, its own method is the user's code.
        """
        frame: FrameType | None = sys._getframe(1)
        found: Site | None = None
        while frame is not None:
            module = _first_argument(frame)
            if isinstance(module, nn.Module) and id(module) in self._names:
                if found is None or (module is found.module and _is_method(frame)):
                    found = self._at(frame, module)
                if module is not found.module or _is_method(frame):
                    return found
            frame = frame.f_back
        return found

    def call(self) -> Call | None:
        """Go up to the outermost call of one of the modules."""
        frame: FrameType | None = sys._getframe(1)
        outermost: FrameType | None = None
        while frame is not None:
            if id(_first_argument(frame)) in self._names and _is_method(frame):
                outermost = frame
            frame = frame.f_back
        return None if outermost is None else Call(outermost)

    def _at(self, frame: FrameType, module: nn.Module) -> Site:
        place = f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
        return Site(self._names[id(module)], place, module)


def _first_argument(frame: FrameType) -> object:
    code = frame.f_code
    if not code.co_argcount or not code.co_flags & inspect.CO_OPTIMIZED:
        return None
    return _called(frame) if _holds_variables(frame) else _variable(frame, code.co_varnames[0])


def _holds_variables(frame: FrameType) -> bool:
    return sys.version_info < (3, 13) and not _HOLDING.isdisjoint(frame.f_code.co_names)


def _variable(frame: FrameType, name: str) -> object:
    if _holds_variables(frame):
        return None
    variables = frame.f_locals
    value = variables.get(name)
    if type(variables) is dict:
        # before Python 3.13 a copy stays with the frame, and would keep its tensors alive
        variables.clear()
    return value


def _called(frame: FrameType) -> object:
    """Ask the call of a module, instead of the function that it called, for the module.

    Before Python 3.13, to read a function's variables is to write into the dict that it holds.
    """
    caller = frame.f_back
    while caller is not None and caller.f_code.co_filename == _CALL.co_filename:
        if caller.f_code is _CALL:
            return _first_argument(caller)
        caller = caller.f_back
    return None


def _is_method(frame: FrameType) -> bool:
    return frame.f_code.co_varnames[0] == "self"


def _plain(name: str) -> str:
    """Leave out what compiling and distributing put around a model."""
    parts = [part for part in name.split(".") if part != "_orig_mod"]
    return ".".join(parts[1:] if parts[:1] == ["module"] else parts)
