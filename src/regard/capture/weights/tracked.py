"""What is known of weights on their way from the softmax to the values."""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from torch import Tensor

from regard.capture.axes import Origin
from regard.capture.call_site import CallSite
from regard.capture.calls import EdgeWeights, MaterializedWeights
from regard.capture.functions import FunctionCall, Letters, ScatterSum, TensorMap
from regard.capture.layout import CallAxes, Part
from regard.capture.weights.score_products import ScoreProduct

SCATTERED = "scatter softmax"  # a normaliser: exponentials are divided by their sum by index


@dataclass(slots=True)
class SoftmaxCall:
    """A softmax, or another normaliser, that the model called, and what became of it."""

    site: CallSite | None
    is_feature: bool  # over features, classes or experts rather than positions
    is_softmax: bool
    origins: frozenset[Origin]  # of the axes of its result
    state: str = "open"  # or "attention", "not attention"


@dataclass(frozen=True, slots=True)
class TrackedWeights:
    """Normalised scores on their way to the values."""

    normaliser: str
    softmaxes: frozenset[int]
    normalised: frozenset[Origin]  # of the axis that sums to 1
    same_rows: bool | None  # whether queries and keys come from the same rows; None if unknown
    from_cache: bool = False  # whether keys came from a KV cache
    has_mask: bool = False
    is_single: bool = False  # whether they are those of a single key
    num_keys: int = 0  # of the axis that sums to 1
    is_skewed: bool = False  # whether they have no axis of keys, as diagonals in columns
    is_product: bool = False  # whether the scores are a product of queries and keys
    scores: ScoreProduct | None = None  # of queries and keys, if it is followed
    applied: tuple[str, ...] = ()
    before_dropout: Tensor | None = None

    def values(self, weights: Tensor) -> Tensor:
        """Return the tracked weights as they were before dropout."""
        kept = self.before_dropout
        return weights.detach() if kept is None else kept

    def with_applied(self, name: str) -> "TrackedWeights":
        """Add the name of a function that changed the weights."""
        return replace(self, applied=tuple(dict.fromkeys((*self.applied, name))))


@dataclass(frozen=True, slots=True)
class Multiplication:
    """The function that multiplied weights with values element by element, to run it again."""

    function: FunctionCall
    position: int  # of the weights among its tensors
    arrange: Callable[[Tensor], Tensor]  # brings a tensor of their layout to another one

    @property
    def weights(self) -> Tensor:
        """The weights, in the model's layout and autograd graph."""
        return self.function.inputs[self.position]

    def then(self, arrange: Callable[[Tensor], Tensor]) -> "Multiplication":
        """Return it with a further rearrangement."""
        return replace(self, arrange=lambda tensor: arrange(self.arrange(tensor)))


@dataclass(frozen=True, slots=True)
class ElementwiseProduct:
    """Weights times values, element by element, that are yet to be summed over the keys."""

    tracked: TrackedWeights
    weights: Tensor
    values: Tensor
    weights_term: Letters
    values_term: Letters
    multiplication: Multiplication

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the product."""
        sizes = dict(zip(self.weights_term, self.weights.shape, strict=True))
        sizes |= zip(self.values_term, self.values.shape, strict=True)
        return tuple(sizes[n] for n in range(len(sizes)))

    def expanded_values(self) -> Tensor:
        """Return the values with an axis for each of the product's."""
        sizes = dict(zip(self.values_term, self.values.shape, strict=True))
        return self.values.reshape([sizes.get(n, 1) for n in range(len(self.shape))])


class WeightSum(NamedTuple):
    """A sum of weights, that they may be divided by."""

    softmaxes: frozenset[int] = frozenset()
    scattered: frozenset[Origin] = frozenset()  # of the axis that was summed by index, if it was


@dataclass(frozen=True, slots=True)
class WeightProduct:
    """A product of weights with what may be values, as an einsum."""

    operand: Tensor  # of the function: the weights, or a product that is yet to be summed
    weights: Tensor  # before dropout
    term: Letters  # of the weights
    values: Tensor
    values_term: Letters
    result: frozenset[Hashable]
    position: int  # of the operand among the tensors of the function's arguments
    to_operand: Callable[[Tensor], Tensor] | None = None  # its gradient to that of the weights
    multiplication: Multiplication | None = None  # that made the operand, if it is such a product

    @property
    def labelled(self) -> Tensor:
        """The tensor of weights whose axes are known."""
        return self.operand if self.to_operand is None else self.weights


@dataclass(frozen=True, slots=True)
class MatchedAttention:
    """Weights that have multiplied values."""

    call: MaterializedWeights | EdgeWeights
    axes: CallAxes
    same_rows: bool | None
    from_cache: bool
    operand: Tensor  # of the product, in the model's layout and autograd graph
    to_weights: Callable[[Tensor], Tensor]  # brings the operand's gradient to that of the weights
    softmaxes: frozenset[int]  # the softmaxes that the weights come from
    part: Part | None  # of the softmax, that the weights are
    position: int  # of the operand among the tensors of the function's arguments
    site: CallSite | None = None  # of the softmax, where another module sums the products
    multiplication: Multiplication | None = None  # whose result is summed
    summed: ScatterSum | None = None  # the sum, if it is by index
    follow_up: FunctionCall | None = None  # what follows it, if that is not the function itself


class WeightStore:
    """All live weights, sums of weights, and the softmaxes that were seen.

    Attributes:
        tracked: weights by tensor.
        sums: sums of weights, or of exponentials, by tensor.
        softmaxes: softmaxes and other normalisers by number.
    """

    def __init__(self) -> None:
        self.tracked = TensorMap[TrackedWeights]()
        self.sums = TensorMap[WeightSum]()
        self.softmaxes: dict[int, SoftmaxCall] = {}

    def settle(
        self, softmaxes: Iterable[int], state: Literal["attention", "not attention"]
    ) -> None:
        """Note what became of some softmaxes; one that became attention stays that."""
        for number in softmaxes:
            if self.softmaxes[number].state != "attention":
                self.softmaxes[number].state = state
