"""The arguments of a function of torch, by position, however they were handed over."""

from typing import Any

from torch import Tensor

Arguments = tuple[tuple[Any, ...], dict[str, Any]]

# names that functions of torch have for the tensors they take, in their order
_ORDER = (
    *("query", "key", "value", "condition", "input", "self", "tensors", "mat1", "batch1"),
    *("other", "mat2", "batch2", "vec", "weight", "bias"),
)


def by_position(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
    """Put tensors that were given by name behind those that were not."""
    if not kwargs:
        return args, kwargs
    named = [n for n in _ORDER if isinstance(kwargs.get(n), Tensor | list | tuple)]
    rest = {name: value for name, value in kwargs.items() if name not in named}
    return (*args, *(kwargs[name] for name in named)), rest
