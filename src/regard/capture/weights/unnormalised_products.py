"""Weights that multiply values before they are normalised: exp(scores) @ values / sum.

Dividing the context by the sum of the weights is the same as dividing the weights. Once a model
does so, the division and the product are computed again in the usual order, whose weights are those
that the context is made of.
"""

from dataclasses import dataclass, replace
from functools import reduce

import torch
from torch import Tensor

from regard.capture.axes import Axes, AxisTracker
from regard.capture.calls import edited_weights
from regard.capture.functions import (
    CASTS,
    COPIES,
    RESHAPES,
    TRANSPOSES,
    FunctionCall,
    TensorMap,
)
from regard.capture.weights.tracked import (
    MatchedAttention,
    Multiplication,
    WeightStore,
)

# functions of a context that are computed again
_FOLLOWED = (RESHAPES | TRANSPOSES | CASTS | COPIES | {"sum"}) - {"detach"}
_DIVISIONS = {"div", "mul", "einsum"}  # by a sum, or with its reciprocal


@dataclass(frozen=True, slots=True)
class UnnormalisedProduct:
    """A product of values with weights that a sum may divide later.

    Attributes:
        calls: the product, and what was computed of it since: a sum, and changes of its layout.
        weights: among the tensors of the product.
        position: of the weights among these tensors.
        softmaxes: the normalisers that the weights come from.
        is_matched: whether the product was recognised as attention.
        is_edited: whether what the model has of it is not what the product returned.
    """

    calls: tuple[FunctionCall, ...]
    weights: Tensor
    position: int
    softmaxes: frozenset[int]
    is_matched: bool
    is_edited: bool = False

    def with_weights(self, weights: Tensor) -> list[FunctionCall]:
        """Run the functions again with other weights; return their calls."""
        first, *others = self.calls
        tensors = list(first.inputs)
        tensors[self.position] = weights
        found = [first.run_with(tensors)]
        for call in others:
            found.append(call.run_with([found[-1].out, *call.inputs[1:]]))
        return found


class UnnormalisedProducts:
    """The products with weights that are not normalised yet, and sums that divide them."""

    def __init__(self, store: WeightStore, axes: AxisTracker) -> None:
        self._store, self._axes = store, axes
        self._products = TensorMap[UnnormalisedProduct]()

    def __bool__(self) -> bool:
        return bool(self._products)

    def add(
        self, call: FunctionCall, position: int, softmaxes: frozenset[int], *, is_matched: bool
    ) -> None:
        """Note a product of weights with values."""
        out = call.out
        if isinstance(out, Tensor) and all(x is not out for x in call.inputs):
            calls, weights = (call.without_result(),), call.inputs[position]
            self._products[out] = UnnormalisedProduct(
                calls, weights, position, softmaxes, is_matched
            )

    def replace(self, context: Tensor, edited: Tensor) -> None:
        """Note that the model gets an edited context instead of the one that was computed."""
        if (known := self._products.get(context)) is not None:
            self._products[edited] = replace(known, is_edited=True)

    def follow(self, call: FunctionCall) -> None:
        """Follow a product through sums and other layouts."""
        if call.name not in _FOLLOWED or not call.inputs:
            return
        known, out = self._products.get(call.inputs[0]), call.out
        if known is not None and isinstance(out, Tensor) and out is not call.inputs[0]:
            self._products[out] = replace(known, calls=(*known.calls, call.without_result()))

    def divided(self, call: FunctionCall) -> tuple[UnnormalisedProduct, list[FunctionCall]] | None:
        """Return a product that a call divides by the sum of its weights.

        Also the division of the weights, and all that follows it, computed in this order; nothing
        if that does not give the same.
        """
        if call.name not in _DIVISIONS or len(call.inputs) != 2 or not isinstance(call.out, Tensor):
            return None
        if (found := self._operands(call)) is None:
            return None
        product, total = found
        axes = self._axes.axes(total), self._axes.axes(product.weights)
        with torch.set_grad_enabled(call.out.requires_grad):
            divisor = _aligned(total if call.name == "div" else total.reciprocal(), *axes)
            if divisor is None:
                return product, []
            self._store.sums[divisor] = self._store.sums[total]
            weights = product.weights / divisor
            division = FunctionCall(torch.div, "div", (product.weights, divisor), {}, weights)
            calls = [division, *product.with_weights(weights)]
        is_known = product.is_edited or bool(edited_weights(call.out))
        return product, calls if is_known or _is_close(calls[-1].out, call.out) else []

    def _operands(self, call: FunctionCall) -> tuple[UnnormalisedProduct, Tensor] | None:
        """Return a product and the sum of its weights, or its reciprocal, if a call has both."""
        pairs = [call.inputs, call.inputs[::-1]]
        for context, total in pairs[: 1 if call.name == "div" else 2]:
            product, known = self._products.get(context), self._store.sums.get(total)
            if product is not None and known is not None and known.softmaxes & product.softmaxes:
                return product, total
        return None


def match_of_division(
    match: MatchedAttention,
    product: UnnormalisedProduct,
    calls: list[FunctionCall],
    call: FunctionCall,
) -> MatchedAttention:
    """Return the match of a product that was computed again, as one of the model's division.

    Args:
        match: of the product.
        product: that the model computed.
        calls: the division of the weights, the product, and what follows it.
        call: the model's division.
    """
    multiplied, others = calls[1], calls[2:]
    known = match.multiplication
    arrange = match.to_weights if known is None else known.arrange

    def follow(context: Tensor) -> Tensor:
        return reduce(lambda x, y: y.run_with([x, *y.inputs[1:]]).out, others, context)

    def to_weights(gradient: Tensor) -> Tensor:
        with torch.enable_grad():
            weights = calls[0].out.detach().requires_grad_()
            context = product.with_weights(weights)[-1].out
        (found,) = torch.autograd.grad(context, weights, gradient.to(context.dtype))
        return arrange(found)

    return replace(
        match,
        operand=call.out,
        to_weights=to_weights,
        multiplication=Multiplication(multiplied, product.position, arrange),
        follow_up=FunctionCall(
            follow,
            call.name,
            (multiplied.out.detach(),),  # not the result itself, which is not changed in place
            {},
            calls[-1].out if product.is_edited else call.out,
        ),
    )


def _aligned(total: Tensor, total_axes: Axes, axes: Axes) -> Tensor | None:
    """Return a sum with the axes of the weights, of size 1 where it has none; None if it differs.

    Axes along which it is repeated are left out.
    """
    order, rest = [], []
    for axis in axes:
        found = next((n for n, x in enumerate(total_axes) if x and x == axis), None)
        order.append(found)
    for n, axis in enumerate(total_axes):
        if n not in order:
            if axis and not any(f.origin.is_broadcast for f in axis):
                return None
            rest.append(n)
    kept = [n for n in range(total.ndim) if n not in rest]
    for n in reversed(rest):
        total = total.select(n, 0)
    total = total.permute([kept.index(n) for n in order if n is not None])
    index = tuple(None if n is None else slice(None) for n in order)
    return total[index]


def _is_close(found: Tensor, out: Tensor) -> bool:
    """Return whether two results are the same up to rounding."""
    if found.shape != out.shape or not out.numel() or out.is_meta:
        return False
    rounding = torch.finfo(out.dtype).eps ** 0.5
    scale = float(out.detach().nan_to_num().abs().amax())
    found = found.to(out.dtype)
    return torch.allclose(found, out, rtol=rounding, atol=rounding * scale, equal_nan=True)
