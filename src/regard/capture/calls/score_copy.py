"""Copies of scores that can be called without a side effect on the model."""

from functools import lru_cache
from types import MethodType
from typing import Any, cast

from torch import nn
from torch.jit import ScriptModule

from regard.attention import FunctionScore, Score


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
