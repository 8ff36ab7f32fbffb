"""Queries and keys behind scores that a model computes itself, followed from their product."""

from collections.abc import Hashable
from dataclasses import dataclass, replace
from math import prod

from torch import Tensor

from regard.capture.axes import Axis, AxisTracker, Factor, axis_size, new_axis
from regard.capture.calls import QueryKeyVectors
from regard.capture.functions import (
    CASTS,
    COPIES,
    RESHAPES,
    SLICES,
    SPLITS,
    TRANSPOSES,
    FunctionCall,
    Letters,
    TensorMap,
)
from regard.capture.layout import ROLES, Layout, Piece, Role

_SAME_ELEMENTS = RESHAPES | TRANSPOSES | SPLITS | SLICES | CASTS | COPIES
_MASKS = {"masked_fill", "where", "tril", "triu", "nan_to_num"}
_CAPS = {"tanh", "clamp", "clamp_min", "clamp_max", "exp", "log_softmax"}
_SUMS = {"add", "sub"}
_REVERSED = {"__rsub__", "rsub"}  # scores are subtracted from a number


@dataclass(frozen=True, slots=True)
class ScoreProduct:
    """The product that scores come from, and what they were multiplied by since.

    Attributes:
        operands: of the product.
        terms: a letter for each axis of each operand.
        axes: of the result, by letter.
        scale: factor of the product.
        is_capped: a function that is not linear was applied; what follows is no scale.
    """

    operands: tuple[Tensor, Tensor]
    terms: tuple[Letters, Letters]
    axes: dict[Hashable, Axis]
    scale: float = 1.0
    is_capped: bool = False


class ScoreTracker:
    """Follows products of queries and keys through scaling, biases, masks and layouts.

    The operands are held as long as the scores are, so it is used only if vectors are kept.
    """

    def __init__(self, axes: AxisTracker) -> None:
        self._axes = axes
        self._products = TensorMap[ScoreProduct]()

    def product(self, scores: Tensor) -> ScoreProduct | None:
        """Return the product that scores come from; None if there is none, or it was not followed.

        Scores that are a sum of several products, as of contents and of relative positions, have
        none.
        """
        return self._products.get(scores)

    def update(self, call: FunctionCall) -> None:
        """Follow the result of a function."""
        if not call.inputs or not call.results:
            return
        product = self._result(call)
        for result in call.results:
            if product is not None and result.is_floating_point():
                self._products[result] = product
            elif result in self._products:  # overwritten in place
                self._products.forget(result)

    def _result(self, call: FunctionCall) -> ScoreProduct | None:
        known = [n for n, x in enumerate(call.inputs) if x in self._products]
        if not known:
            return self._new(call)
        if len(known) > 1:
            return None
        position = known[0]
        product = self._products[call.inputs[position]]
        if getattr(call.function, "__name__", "") in _REVERSED:
            return None
        if call.name in _SAME_ELEMENTS:
            return product if position == 0 else None
        if call.name in _MASKS or (call.name in _SUMS and position == 0) or call.name == "add":
            return product
        if call.name in _CAPS:
            return replace(product, is_capped=True)
        return self._scaled(product, call, position)

    def _scaled(
        self, product: ScoreProduct, call: FunctionCall, position: int
    ) -> ScoreProduct | None:
        """Return the product with another scale, if the function multiplies it by a number."""
        is_factor = call.name == "mul" or (call.name == "div" and position == 0)
        others = [x for x in call.args if x is not call.inputs[position]]
        if not is_factor or len(others) != 1 or call.kwargs:
            return None
        factor = others[0]
        if isinstance(factor, Tensor):
            if factor.numel() != 1:
                return None
            factor = factor.item()
        if product.is_capped:
            return product
        scale = product.scale * factor if call.name == "mul" else product.scale / factor
        return replace(product, scale=float(scale))

    def _new(self, call: FunctionCall) -> ScoreProduct | None:
        equation = None if call.name == "cdist" else call.equation()
        if equation is None or len(equation.operands) != 2:
            return None
        first, second = equation.operands
        if any(map(self._axes.is_parameter, (first, second))):
            return None
        terms = tuple(equation.terms[0]), tuple(equation.terms[1])
        if not set(terms[0]) & set(terms[1]) - set(equation.result):
            return None
        axes = dict(zip(equation.result, self._axes.axes(call.results[0]), strict=True))
        scale = float(call.kwargs.get("alpha", 1.0))
        return ScoreProduct((first.detach(), second.detach()), terms, axes, scale)


def vectors_of(product: ScoreProduct, weights: Layout) -> QueryKeyVectors | None:
    """Return the queries and keys of weights; None if their axes are not those of the product."""
    sides = [_own_roles(product, n, weights) for n in (0, 1)]
    if "key" in sides[0] or "query" in sides[1]:
        sides.reverse()
        product = replace(product, operands=product.operands[::-1], terms=product.terms[::-1])
    if sides[0] - {"query"} or sides[1] - {"key"}:
        return None
    queries = _arrange(product, 0, "query", weights)
    keys = _arrange(product, 1, "key", weights)
    return (
        None if queries is None or keys is None else QueryKeyVectors(queries, keys, product.scale)
    )


def _own_roles(product: ScoreProduct, side: int, weights: Layout) -> set[Role]:
    """Return the roles of the rows that one operand alone has."""
    own = set(product.terms[side]) - set(product.terms[1 - side])
    factors = [f for x in own if x in product.axes for f in product.axes[x]]
    rows = [p.role for f in factors for p in _pieces(f, weights) or ()]
    return {role for role in rows if role in ("query", "key")}


def _arrange(product: ScoreProduct, side: int, role: Role, weights: Layout) -> Tensor | None:
    """Return one operand as (batch · window, head, row, width)."""
    operand, pieces = product.operands[side], list[Piece]()
    for letter, size in zip(product.terms[side], operand.shape, strict=True):
        axis = product.axes.get(letter)
        if axis is None:
            pieces.append(Piece(letter, next(iter(new_axis(size)), None), "value"))
        elif size == 1:
            pieces.append(Piece(letter, None, "batch"))
        elif size != axis_size(axis):
            return None
        else:
            for factor in axis:
                found = _pieces(factor, weights)
                if found is None:
                    return None
                pieces += found
    layout = Layout(tuple(pieces))
    roles: tuple[Role, ...] = (*ROLES[:3], role)
    if any(p.role not in (*roles, "value") for p in pieces):
        return None
    for known in roles:  # in the order of the weights, or the first ones: those of groups
        own, theirs = _ids(layout, known), _ids(weights, known)
        if own != theirs and not (known == "head" and own == theirs[: len(own)]) and own:
            return None
    arranged = layout.arrange(operand, (*roles, "value"))
    batch = weights.size("batch") * weights.size("window")
    fits = len(arranged) in (1, batch) and arranged.shape[2] == weights.size(role)
    return arranged if fits else None


def _ids(layout: Layout, role: Role) -> list[tuple[int, int]]:
    return [
        (id(p.factor.origin), p.factor.stride) for p in layout.pieces if p.role == role and p.factor
    ]


def _pieces(factor: Factor, weights: Layout) -> list[Piece] | None:
    """Return the pieces of the weights that make up a factor, the outermost first."""
    end = factor.stride * factor.size
    same = [
        p
        for p in weights.pieces
        if p.factor and p.factor.origin is factor.origin and factor.stride <= p.factor.stride < end
    ]
    same.sort(key=lambda p: -p.factor.stride if p.factor else 0)
    return same if same and prod(p.size for p in same) == factor.size else None
