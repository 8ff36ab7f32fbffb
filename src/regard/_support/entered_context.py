"""Context managers whose results are used inside `with`, and say so when they are used without."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
from types import TracebackType
from typing import Generic, NoReturn, ParamSpec, TypeVar

from regard.errors import RegardError

Params = ParamSpec("Params")
Value = TypeVar("Value")


class NotEnteredError(RegardError, AttributeError):
    """Raised when a context manager is used as if it were the value that `with` returns."""


class EnteredContext(AbstractContextManager[Value], Generic[Value]):
    """A context manager that names its usage if it is indexed, or an attribute of it is read."""

    def __init__(self, context: AbstractContextManager[Value], usage: str) -> None:
        self._context, self._usage = context, usage

    def __enter__(self) -> Value:
        return self._context.__enter__()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        return self._context.__exit__(kind, error, traceback)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):  # looked up by copy, pickle and notebooks
            raise AttributeError(name)
        raise NotEnteredError(f"this is a context manager without {name!r}: use `{self._usage}`")

    def __getitem__(self, index: object) -> NoReturn:
        raise NotEnteredError(f"this is a context manager and has no items: use `{self._usage}`")

    def __repr__(self) -> str:
        return f"<context manager, not entered: use `{self._usage}`>"


def entered_context(
    usage: str,
) -> Callable[[Callable[Params, Iterator[Value]]], Callable[Params, EnteredContext[Value]]]:
    """Return a decorator like `contextlib.contextmanager`, for what is used inside `with` only.

    Args:
        usage: the first line of a `with` statement.

    Example:
        >>> @entered_context("with opened(path) as book:")
        ... def opened(path):
        ...     yield ["a", "b"]
        >>> with opened("pairs.tsv") as book:
        ...     print(book[0])
        a
        >>> opened("pairs.tsv")
        <context manager, not entered: use `with opened(path) as book:`>
    """

    def decorate(
        generator: Callable[Params, Iterator[Value]],
    ) -> Callable[Params, EnteredContext[Value]]:
        make = contextmanager(generator)

        @wraps(generator)
        def function(*args: Params.args, **kwargs: Params.kwargs) -> EnteredContext[Value]:
            return EnteredContext(make(*args, **kwargs), usage)

        return function

    return decorate
