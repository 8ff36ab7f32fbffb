"""Twins of torch functions that are written in Python."""

from collections.abc import Callable
from types import FunctionType
from typing import Any


def python_twin(func: Callable[..., Any]) -> Callable[..., Any]:
    """Return a twin of a function, whose inner calls a torch function mode sees.

    Such a function calls `has_torch_function`, or its variant for one argument, first and, if a
    mode is active, passes itself to the mode, where its inner calls are hidden. The twin has the
    same code, but globals in which these return False.
    """
    checks = dict.fromkeys(("has_torch_function", "has_torch_function_unary"), lambda _: False)
    assert isinstance(func, FunctionType), "it is written in Python"
    twin = FunctionType(
        func.__code__,
        {**func.__globals__, **checks},
        func.__name__,
        func.__defaults__,
        func.__closure__,
    )
    twin.__kwdefaults__ = func.__kwdefaults__
    return twin
