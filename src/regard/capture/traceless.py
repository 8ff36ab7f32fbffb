"""A score that leaves no trace: the same numbers, but what it notes down is its own."""

from collections.abc import Callable
from functools import lru_cache
from types import MethodType
from typing import Any

from torch import Tensor, nn
from torch.jit import ScriptModule


def traceless(score: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Copy a score so that calling it leaves no trace in the model.

    A module, or the module whose method it is, shares its parameters with the copy. Buffers and
    attributes are the copy's own, and no hooks are called. A function is called as it is.
    """
    if isinstance(score, nn.Module):
        return _copied(score, {})
    owner = getattr(score, "__self__", None)
    if isinstance(owner, nn.Module) and isinstance(score, MethodType):
        return MethodType(score.__func__, _copied(owner, {}))
    return score


def _copied(module: nn.Module, made: dict[int, nn.Module]) -> nn.Module:
    written = getattr(module, "_orig_mod", module)  # what is compiled is run as it was written
    module = written if isinstance(written, nn.Module) else module
    if isinstance(module, ScriptModule):
        return module
    if id(module) not in made:
        kind: type[nn.Module] = _without_hooks(type(module))  # type: ignore[arg-type]
        copy = made[id(module)] = kind.__new__(kind)
        copy.__dict__ = dict(module.__dict__)
        copy._buffers = {
            name: None if buffer is None else buffer.clone()
            for name, buffer in module._buffers.items()
        }
        copy._modules = {
            name: None if child is None else _copied(child, made)
            for name, child in module._modules.items()
        }
    return made[id(module)]


@lru_cache(maxsize=64)
def _without_hooks(kind: type[nn.Module]) -> type[nn.Module]:
    """Make a class whose modules are their `forward` when they are called, and no more."""

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self.forward(*args, **kwargs)

    return type(kind.__name__, (kind,), {"__call__": call, "__module__": kind.__module__})
