"""Contexts of parts of the keys that are rescaled and added up, as in ring attention.

Each part has a softmax of its own. What the parts weigh follows from the logarithms of their sums,
so that the weights of the whole are those of no tensor.
"""

from torch import Tensor

from regard.capture.axes import AxisTracker
from regard.capture.functions import (
    CASTS,
    COPIES,
    JOINS,
    PRODUCTS,
    RESHAPES,
    SLICES,
    SPLITS,
    TRANSPOSES,
    FunctionCall,
    TensorMap,
)

# functions that leave the elements of contexts what they are
_SAME_ELEMENTS = RESHAPES | TRANSPOSES | SPLITS | SLICES | JOINS | CASTS | COPIES
_SAME_ELEMENTS |= {"gather", "index_select", "take_along_dim"}


class RescaledContexts:
    """Contexts by the softmax that they come from, and factors made of logarithms of sums."""

    def __init__(self, axes: AxisTracker) -> None:
        self._axes = axes
        self._contexts = TensorMap[frozenset[int]]()
        self._factors = TensorMap[bool]()

    def add(self, context: Tensor, softmaxes: frozenset[int]) -> None:
        """Note the context of some softmaxes."""
        self._contexts[context] = softmaxes

    def update(self, call: FunctionCall) -> frozenset[int]:
        """Follow contexts and factors; return the softmaxes whose contexts a call rescales."""
        softmaxes = self._softmaxes_of(call)
        if softmaxes and call.name in _SAME_ELEMENTS:
            for result in call.results:
                self._contexts[result] = softmaxes
        elif softmaxes and (call.name == "mul" or call.name in PRODUCTS):
            return softmaxes if any(x in self._factors for x in call.inputs) else frozenset()
        elif call.name == "logsumexp" or self._is_of_factors(call):
            for result in call.results:
                self._factors[result] = True
        return frozenset()

    def _softmaxes_of(self, call: FunctionCall) -> frozenset[int]:
        known = [self._contexts.get(x) for x in call.inputs] if self._contexts else []
        return frozenset().union(*(softmaxes for softmaxes in known if softmaxes is not None))

    def _is_of_factors(self, call: FunctionCall) -> bool:
        """Return whether a function combines factors with each other, or with constants."""
        if not self._factors or all(x not in self._factors for x in call.inputs):
            return False
        inputs = [x for x in call.inputs if x.is_floating_point()]  # others are indices
        return all(x in self._factors or self._axes.is_constant(x) for x in inputs)
