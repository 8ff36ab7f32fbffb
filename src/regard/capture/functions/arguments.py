"""The names of torch functions, and the tensors among their arguments."""

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from torch import Tensor

_TENSOR_ATTRIBUTES = {"T", "mT", "H", "mH"}  # attributes that are views of the tensor
# names of tensor arguments of torch functions, in the order of their positions
_TENSOR_ARGUMENTS = (
    *("query", "key", "value", "condition", "input", "self", "tensors", "mat1", "batch1"),
    *("other", "mat2", "batch2", "vec", "weight", "bias"),
)

_PLAIN_NAMES = {
    **dict.fromkeys(("__itruediv__", "__truediv__", "true_divide", "divide"), "div"),
    "__rtruediv__": "rdiv",
    "__rmatmul__": "__rmatmul__",
    "multiply": "mul",
    "_segment_reduce": "segment_reduce",
    "_safe_softmax": "softmax",
    "_softmax": "softmax",
    "linalg_matmul": "matmul",
    "nansum": "sum",
}


def function_name(func: Callable[..., Any]) -> str:
    """Return a function's name without its overload, and "" for most attributes of tensors."""
    name = getattr(func, "__name__", "")
    if name == "__get__":
        name = getattr(getattr(func, "__self__", None), "__name__", "")
        return name if name in _TENSOR_ATTRIBUTES else ""
    return name.partition(".")[0]


@cache
def plain_name(name: str) -> str:
    """Return a function's name without the marks of operators and in-place variants."""
    if name in _PLAIN_NAMES:
        return _PLAIN_NAMES[name]
    if name.startswith("__") and name.endswith("__"):
        plain = name.strip("_")
        for operator in ("mul", "add", "sub", "matmul", "pow"):
            if plain in (f"r{operator}", f"i{operator}"):
                return operator
        return plain
    return name.rstrip("_") if not name.startswith("_") else name


def tensors_by_position(
    args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Append tensors that were passed by name to the positional arguments, in torch's order."""
    if not kwargs:
        return args, kwargs
    names = [
        name
        for name, value in kwargs.items()
        if name in _TENSOR_ARGUMENTS and isinstance(value, Tensor | list | tuple)
    ]
    if not names:
        return args, kwargs
    names.sort(key=_TENSOR_ARGUMENTS.index)
    rest = {name: value for name, value in kwargs.items() if name not in names}
    return (*args, *(kwargs[name] for name in names)), rest


def tensors_in(values: Iterable[Any]) -> list[Tensor]:
    """Return the tensors among values, and in lists and tuples among them."""
    found: list[Tensor] = []
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, list | tuple):
            found += [inner for inner in value if isinstance(inner, Tensor)]
    return found
