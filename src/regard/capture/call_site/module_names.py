"""The modules of a model by name, and the walk up the stack to the one that called."""

import inspect
import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from torch import Tensor, nn
from torch.jit import ScriptModule

from regard.capture.call_site.frames import (
    MODULE_CALL,
    first_argument,
    is_method,
    is_method_name,
    local_variable,
    outside_frame,
)
from regard.capture.call_site.graph_names import names_of_nodes, running_node


class CallSite(NamedTuple):
    """The module that called attention, and the file and line of its code that did."""

    module_name: str
    location: str  # file:line
    module: nn.Module


class ModelCall:
    """The identity of one call of the model, to distinguish it from other calls.

    Every call of `nn.Module.__call__` makes a dict of keyword arguments of its own. A method
    without keyword arguments is identified by the line that called it.
    """

    def __init__(self, frame: FrameType) -> None:
        code, caller = frame.f_code, frame.f_back
        self._caller = (id(caller), 0 if caller is None else caller.f_lasti)
        self._kwargs: object = None
        if code.co_flags & inspect.CO_VARKEYWORDS:
            num_named = code.co_argcount + code.co_kwonlyargcount
            has_varargs = bool(code.co_flags & inspect.CO_VARARGS)
            self._kwargs = local_variable(frame, code.co_varnames[num_named + has_varargs])

    def is_same(self, other: "ModelCall") -> bool:
        """Return whether both are one call."""
        if self._kwargs is None or other._kwargs is None:
            return self._caller == other._caller
        return self._kwargs is other._kwargs


class ModuleNames:
    """The modules of a model and their dotted names, without wrappers such as `_orig_mod`."""

    def __init__(self, model: nn.Module) -> None:
        modules = dict(model.named_modules())
        self._names = {
            id(module): _without_wrappers(name) or type(module).__name__
            for name, module in modules.items()
        }
        self._model, self._modules = model, list(modules.values())
        self._nodes = {  # of graphs: by node, the full name of the module that it comes from
            id(module): self._full_names(module, names)
            for module in self._modules
            if (names := names_of_nodes(module))
        }

    def constants(self) -> Iterator[Tensor]:
        """Yield the parameters and buffers of the model."""
        for module in self._modules:  # `model.parameters()` would search for the modules again
            for tensors in (module._parameters, module._buffers):
                yield from (tensor for tensor in tensors.values() if tensor is not None)

    def all(self) -> list[str]:
        """Return all names."""
        in_graphs = (name for names in self._nodes.values() for name in names.values())
        return list(dict.fromkeys((*self._names.values(), *in_graphs)))

    def any_match(self, pattern: str) -> bool:
        """Return whether a pattern such as "decoder.*" matches any of the names."""
        return any(matches_name(name, pattern) for name in self.all())

    def other_name(self, name: str) -> str | None:
        """Return the name of a module that the model also has under another one, or in wrappers."""
        modules = self._model.named_modules(remove_duplicate=False)
        known = (x for found, x in modules if name in (found, _without_wrappers(found)))
        return next((self._names[id(module)] for module in known), None)

    def name_of(self, module: nn.Module) -> str | None:
        """Return the name of a module; None if it is not one of the model's."""
        return self._names.get(id(module))

    def scripted(self) -> Iterator[str]:
        """Yield the names of the outermost modules that are TorchScript."""
        outermost: list[nn.Module] = []
        for module in self._modules:
            inside = any(module is part for outer in outermost for part in outer.modules())
            if isinstance(module, ScriptModule) and not inside:
                outermost.append(module)
                yield self._names[id(module)]

    def find_call_site(self) -> CallSite | None:
        """Walk up the stack to the first frame whose first argument is one of the modules.

        That frame may be a function that received the module; if one of the module's own methods
        called it, the location is in that method: that is the user's code.
        """
        frame = outside_frame(sys._getframe(1))
        caller: FrameType | None = None
        owner: nn.Module | None = None  # of the frame that called
        is_other = False  # in a module that is not one of the model's
        while frame is not None:
            module = first_argument(frame)
            if isinstance(module, nn.Module) and id(module) in self._names:
                in_method = is_method(frame)
                if is_other and not in_method:
                    return None  # a function that received both
                if owner is None or (module is owner and in_method):
                    caller, owner = frame, module
                if module is not owner or in_method:
                    break
            elif isinstance(module, nn.Module) and owner is None:
                is_other = True
            frame = frame.f_back
        return None if caller is None or owner is None else self._site_at(caller, owner)

    def find_model_call(self) -> ModelCall | None:
        """Walk up the stack to the outermost method of one of the modules."""
        frame: FrameType | None = sys._getframe(1)
        outermost: FrameType | None = None
        while frame is not None:
            is_call = frame.f_code is MODULE_CALL or is_method_name(frame)
            if is_call and id(first_argument(frame)) in self._names:
                outermost = frame
            frame = frame.f_back
        return None if outermost is None else ModelCall(outermost)

    def _site_at(self, frame: FrameType, module: nn.Module) -> CallSite:
        location = f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
        name = self._names[id(module)]
        if id(module) in self._nodes:
            name = self._nodes[id(module)].get(running_node(frame), name)
        return CallSite(name, location, module)

    def _full_names(self, module: nn.Module, names: dict[str, str]) -> dict[str, str]:
        prefix = "" if module is self._model else f"{self._names[id(module)]}."
        return {node: f"{prefix}{name}" for node, name in names.items()}


def matches_name(name: str, pattern: str) -> bool:
    """Return whether a name is the pattern itself, brackets included, or matches it."""
    return name == pattern or fnmatchcase(name, pattern)


def _without_wrappers(name: str) -> str:
    """Remove what torch.compile and DistributedDataParallel prepend to names."""
    parts = [part for part in name.split(".") if part != "_orig_mod"]
    return ".".join(parts[1:] if parts[:1] == ["module"] else parts)
