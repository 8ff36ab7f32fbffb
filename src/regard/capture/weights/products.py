"""What a product does with weights: mix them, multiply values with them, or add them up."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Literal

from torch import Tensor

from regard.capture.axes import Axis, AxisTracker, origins_of
from regard.capture.functions import Equation, FunctionCall, TensorMap
from regard.capture.weights.normalisers import NORMALISERS
from regard.capture.weights.tracked import TrackedWeights, WeightStore

ProductKind = Literal["other", "mixing", "matrix", "elementwise", "sum", "values"]


@dataclass(frozen=True, slots=True)
class ProductReading:
    """The roles of the operands of a product.

    Attributes:
        kind: "mixing" of heads or of layers leaves weights what they are, a "matrix" is made of
            weights, as an approximate inverse, an "elementwise" product is yet to be summed, a
            "sum" is one of the weights alone, and "values" are summed.
        own: index of the weights among the operands.
        values: index of the values among the operands.
    """

    kind: ProductKind
    own: int = 0
    values: int = 0


class ProductReader:
    """Reads products by the labels of their axes."""

    def __init__(self, store: WeightStore, axes: AxisTracker) -> None:
        self._store, self._axes = store, axes
        self._matrices = TensorMap[bool]()

    def __bool__(self) -> bool:
        return bool(self._matrices)

    def mark_matrix(self, tensor: Tensor) -> None:
        """Note a product of weights with each other that is no weights."""
        self._matrices[tensor] = True

    def follow(self, call: FunctionCall) -> None:
        """Follow what is computed of such products alone."""
        if all(x in self._matrices or self._axes.is_constant(x) for x in call.inputs) and any(
            x in self._matrices for x in call.inputs
        ):
            for result in call.results:
                self._matrices[result] = True

    def read(self, equation: Equation, weights: Tensor) -> ProductReading:
        """Return what a product does with weights."""
        own = next((n for n, x in enumerate(equation.operands) if x is weights), None)
        if own is None:  # the weights were added to a product
            return ProductReading("other")
        tracked: TrackedWeights = self._store.tracked[weights]
        by_letter = dict(zip(equation.terms[own], self._axes.axes(weights), strict=True))
        summed = {x for x in by_letter if x not in equation.result}
        if tracked.is_single and any(by_letter[x] for x in summed):
            return ProductReading("other")  # not over the keys, of which there is one
        if self._mixes(equation, own, by_letter, summed):
            return ProductReading("mixing", own)
        with_keys = [n for n, term in enumerate(equation.terms) if n != own and summed & set(term)]
        others = [x for n, x in enumerate(equation.operands) if n != own]
        if summed and all(map(self.is_of_ones, others)):
            return ProductReading("sum", own)
        if not with_keys:
            return ProductReading("elementwise", own)
        if any(map(self._is_of_weights, others)):
            return ProductReading("matrix", own)
        computed = (n for n in with_keys if not self._axes.is_constant(equation.operands[n]))
        return ProductReading("values", own, next(computed, with_keys[0]))

    def _mixes(
        self,
        equation: Equation,
        own: int,
        by_letter: dict[Any, Axis],
        summed: set[Hashable],
    ) -> bool:
        """Return whether the result are weights again, of mixed heads or of several layers."""
        operands, store = equation.operands, self._store
        tracked: TrackedWeights = store.tracked[operands[own]]
        others = [n for n, x in enumerate(operands) if n != own and x in store.tracked]
        if others and self._is_product_of_weights(equation, others[0]):
            return True
        stays = origins_of(by_letter[x] for x in by_letter if x not in summed)
        over = [f for x in summed for f in by_letter[x]]
        is_own = any(f.origin in tracked.normalised for f in over)
        is_over_heads = bool(over) and all(f.origin.is_feature for f in over)
        return stays >= tracked.normalised and is_over_heads and not is_own

    def _is_product_of_weights(self, equation: Equation, other: int) -> bool:
        tensor = equation.operands[other]
        axes = dict(zip(equation.terms[other], self._axes.axes(tensor), strict=True))
        left = origins_of(axes[x] for x in equation.terms[other] if x in equation.result)
        normalised = self._store.tracked[tensor].normalised
        return self._is_of_weights(tensor) and bool(normalised) and left >= normalised

    def _is_of_weights(self, tensor: Tensor) -> bool:
        """Return whether a tensor is made of weights over positions."""
        tracked = self._store.tracked.get(tensor)
        if tracked is None:
            return tensor in self._matrices
        softmaxes = [self._store.softmaxes[number] for number in tracked.softmaxes]
        is_activation = tracked.normaliser in NORMALISERS
        return not is_activation and not any(x.is_feature for x in softmaxes)

    def is_of_ones(self, tensor: Tensor) -> bool:
        """Return whether a tensor is a constant that adds up what it multiplies."""
        return self._axes.is_constant(tensor) and not tensor.is_meta and bool((tensor == 1).all())
