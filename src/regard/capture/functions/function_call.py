"""One call of a torch function, as the capture mode sees it."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from torch import Tensor

from regard.capture.functions.arguments import tensors_in
from regard.capture.functions.equations import Equation, equation_of


class FunctionCall:
    """A torch function that was called, and its result.

    Attributes:
        function: to run it again.
        name: of the function, without its overload, such as "__getitem__" or "transpose_";
            `plain_name` and `renamed` give variants of a function one name.
        args: positional arguments, with tensors that were passed by name appended.
        kwargs: other arguments.
        out: what it returned.
        inputs: the tensors among the positional arguments.
        results: the tensors that were returned.
    """

    __slots__ = ("args", "function", "inputs", "kwargs", "name", "out", "results")

    def __init__(
        self,
        function: Callable[..., Any],
        name: str,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        out: Any,
    ) -> None:
        self.function, self.name, self.args, self.kwargs = function, name, args, kwargs
        self.out = out
        self.inputs: list[Tensor] = tensors_in(args)
        self.results: list[Tensor] = [out] if isinstance(out, Tensor) else tensors_in((out,))

    def argument(self, name: str, position: int, default: Any = None) -> Any:
        """Return an argument that was passed by name or by position."""
        known = self.args[position] if len(self.args) > position else default
        return self.kwargs.get(name, known)

    def equation(self) -> Equation | None:
        """Return the product that the function computes, if it does."""
        return equation_of(self.name, self.args, self.kwargs)

    def renamed(self, name: str) -> "FunctionCall":
        """Return the call under another name."""
        if name == self.name:
            return self
        return FunctionCall(self.function, name, self.args, self.kwargs, self.out)

    def without_result(self) -> "FunctionCall":
        """Return the call without what it returned, which is not kept alive then."""
        return FunctionCall(self.function, self.name, self.args, self.kwargs, None)

    def run_with(self, tensors: Sequence[Tensor]) -> "FunctionCall":
        """Run the function with other tensors in the place of `inputs`, and without `out=`."""
        rest = iter(tensors)
        args = tuple(_replaced(arg, rest) for arg in self.args)
        kwargs = {name: value for name, value in self.kwargs.items() if name != "out"}
        return FunctionCall(self.function, self.name, args, kwargs, self.function(*args, **kwargs))


def _replaced(arg: Any, tensors: Iterator[Tensor]) -> Any:
    if isinstance(arg, Tensor):
        return next(tensors)
    if isinstance(arg, list | tuple) and any(isinstance(x, Tensor) for x in arg):
        return type(arg)(next(tensors) if isinstance(x, Tensor) else x for x in arg)
    return arg
