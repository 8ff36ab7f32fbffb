"""Products of tensors as einsum equations, however they were written."""

from collections.abc import Hashable, Sequence
from functools import cache
from string import ascii_letters
from typing import Any, NamedTuple

from torch import Tensor

from regard.capture.functions.arguments import tensors_in

Letters = tuple[Hashable, ...]

_MATMULS = {"matmul", "__matmul__", "linalg_matmul", "bmm", "mm", "mv", "dot"}
_ADDED_MATMULS = {"addmm", "baddbmm", "addmv"}  # the first operand is added to the product
_OTHER_PRODUCTS = {"einsum", "__rmatmul__", "inner", "linear", "tensordot", "cdist"}
PRODUCTS = frozenset(_MATMULS | _ADDED_MATMULS | _OTHER_PRODUCTS)


class Equation(NamedTuple):
    """A product: a letter per axis of each operand, and of the result."""

    operands: list[Tensor]
    terms: Sequence[Letters]
    result: Letters


def equation_of(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Equation | None:
    """Return the equation of a call; None if the function is no product."""
    if name not in PRODUCTS:
        return None
    operands = tensors_in(args)
    if name == "einsum":
        return _einsum(args[0], operands)
    if name in _ADDED_MATMULS:
        operands = operands[1:]
    if len(operands) != 2:
        return None
    if name == "__rmatmul__":
        return _matmul([operands[1], operands[0]])
    if name in _MATMULS or name in _ADDED_MATMULS:
        return _matmul(operands)
    if name == "inner":
        return _inner(operands)
    if name == "linear":
        return _linear(operands)
    if name == "tensordot":
        dims = kwargs.get("dims", args[2] if len(args) > 2 else 2)
        return _tensordot(operands, dims)
    if name == "cdist":
        return _cdist(operands)
    return None


def _matmul(operands: list[Tensor]) -> Equation:
    terms, result = _matmul_letters(operands[0].ndim, operands[1].ndim)
    return Equation(operands, terms, result)


@cache
def _matmul_letters(first: int, second: int) -> tuple[tuple[Letters, Letters], Letters]:
    """Return the terms and the result of a matmul of operands with so many axes."""
    leading = _aligned(first - 2, second - 2)
    rows: Letters = ("rows",) if first > 1 else ()
    columns: Letters = ("columns",) if second > 1 else ()
    left = (*_last(leading, first - 2), *rows, "inner")
    right = (*_last(leading, second - 2), "inner", *columns)
    return (left, right), (*leading, *rows, *columns)


def _linear(operands: list[Tensor]) -> Equation | None:
    if operands[1].ndim != 2:
        return None
    leading = _aligned(operands[0].ndim - 1, 0)
    terms = ((*leading, "inner"), ("columns", "inner"))
    return Equation(operands, terms, (*leading, "columns"))


def _inner(operands: list[Tensor]) -> Equation:
    left, right = (
        tuple((side, n) for n in range(x.ndim - 1))
        for side, x in zip(("left", "right"), operands, strict=True)
    )
    return Equation(operands, [(*left, "inner"), (*right, "inner")], (*left, *right))


def _cdist(operands: list[Tensor]) -> Equation:
    leading = _aligned(operands[0].ndim - 2, operands[1].ndim - 2)
    terms: list[Letters] = [
        (*_last(leading, operands[0].ndim - 2), "rows", "inner"),
        (*_last(leading, operands[1].ndim - 2), "columns", "inner"),
    ]
    return Equation(operands, terms, (*leading, "rows", "columns"))


def _tensordot(operands: list[Tensor], dims: Any) -> Equation | None:
    first, second = operands
    if isinstance(dims, int):
        dims = (list(range(-dims, 0)), list(range(dims)))
    if isinstance(dims, Tensor) or len(dims) != 2:
        return None
    left = [("left", n) for n in range(first.ndim)]
    right: list[Hashable] = [("right", n) for n in range(second.ndim)]
    ours, theirs = ([d] if isinstance(d, int) else list(d) for d in dims)
    for a, b in zip(ours, theirs, strict=True):
        right[b] = left[a]
    summed = {left[a] for a in ours}
    result = [x for x in (*left, *right) if x not in summed]
    return Equation(operands, [tuple(left), tuple(right)], tuple(result))


def _einsum(equation: Any, operands: list[Tensor]) -> Equation | None:
    if not isinstance(equation, str) or len(equation.split(",")) != len(operands):
        return None
    joined, arrow, result = equation.replace(" ", "").partition("->")
    if not arrow:  # an implicit result has the letters that occur once
        once = (axis for axis in joined if axis.isalpha() and joined.count(axis) == 1)
        result = "..." + "".join(sorted(once))
    terms = joined.split(",")
    hidden = [
        x.ndim - len(term.replace("...", "")) for term, x in zip(terms, operands, strict=True)
    ]
    unused = "".join(axis for axis in ascii_letters if axis not in joined)
    ellipsis = unused[: max(hidden)]
    expanded = [
        term.replace("...", ellipsis[len(ellipsis) - n :])
        for term, n in zip(terms, hidden, strict=True)
    ]
    if any(len(term) != x.ndim for term, x in zip(expanded, operands, strict=True)):
        return None
    return Equation(
        operands, [tuple(term) for term in expanded], tuple(result.replace("...", ellipsis))
    )


def _aligned(first: int, second: int) -> Letters:
    """Return letters of broadcast leading axes, the outermost first."""
    return tuple(range(max(first, second, 0), 0, -1))


def _last(leading: Letters, count: int) -> Letters:
    return leading[len(leading) - count :] if count > 0 else ()
