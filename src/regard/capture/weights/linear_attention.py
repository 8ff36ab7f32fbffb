"""Pools of values, one per feature: heads of pooling, or the first half of linear attention.

Both are a softmax over positions of features, times values. It is linear attention, which has no
weights of pairs of queries and keys, if queries are multiplied with the pools later.
"""

from torch import Tensor

from regard.capture.axes import Axis, AxisTracker, Origin, aliased
from regard.capture.functions import Equation, FunctionCall, Letters


class FeaturePools:
    """The axes of contexts that have one pool per feature, and the softmaxes that made them."""

    def __init__(self, axes: AxisTracker) -> None:
        self._axes = axes
        self._softmaxes: dict[Origin, frozenset[int]] = {}

    def __bool__(self) -> bool:
        return bool(self._softmaxes)

    def mark(
        self, equation: Equation, weights: int, values: int, softmaxes: frozenset[int], out: Tensor
    ) -> None:
        """Mark the axes of a context that are features of the weights alone.

        Args:
            equation: the product of weights with values.
            weights: index of its operand.
            values: index of its operand.
            softmaxes: numbers of those that the weights come from.
            out: the context.
        """
        axes = self._axes.axes(out)
        own = set(equation.terms[weights]) - set(equation.terms[values])
        pools = [
            n
            for n, letter in enumerate(equation.result)
            if letter in own and axes[n] and all(f.origin.is_feature for f in axes[n])
        ]
        if pools:
            marked = tuple(aliased(x) if n in pools else x for n, x in enumerate(axes))
            self._axes.relabel(out, marked, is_constant=self._axes.is_constant(out))
            self._softmaxes |= {f.origin: softmaxes for n in pools for f in marked[n]}

    def multiplied(self, call: FunctionCall, queries: Tensor | None = None) -> list[frozenset[int]]:
        """Return, once, the softmaxes whose pools a call multiplies with computed vectors.

        `queries` are vectors among the arguments whose features were normalised: no parameters.
        """
        if not self._softmaxes or (equation := call.equation()) is None:
            return []
        found = {
            softmaxes
            for n, (tensor, term) in enumerate(zip(equation.operands, equation.terms, strict=True))
            for letter, axis in zip(term, self._axes.axes(tensor), strict=True)
            if letter not in equation.result and letter in self._computed(equation, n, queries)
            for softmaxes in self._softmaxes_of(axis)
        }
        self._softmaxes = {origin: x for origin, x in self._softmaxes.items() if x not in found}
        return list(found)

    def _computed(self, equation: Equation, operand: int, queries: Tensor | None) -> set[object]:
        """Return the letters of all operands but one that are no parameters."""
        pairs = enumerate(zip(equation.operands, equation.terms, strict=True))
        others: list[Letters] = [
            term
            for n, (x, term) in pairs
            if n != operand and (x is queries or not self._axes.is_constant(x))
        ]
        return {letter for term in others for letter in term}

    def _softmaxes_of(self, axis: Axis) -> list[frozenset[int]]:
        return [self._softmaxes[f.origin] for f in axis if f.origin in self._softmaxes]
