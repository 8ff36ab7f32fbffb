"""Products of weights with values, element by element, that are summed over the keys later."""

from functools import partial

from torch import Tensor

from regard.capture.axes import Axis, AxisTracker
from regard.capture.functions import (
    RESHAPES,
    Equation,
    FunctionCall,
    Letters,
    ScatterSum,
    TensorMap,
)
from regard.capture.rows import RowTracker
from regard.capture.weights.tracked import (
    ElementwiseProduct,
    Multiplication,
    TrackedWeights,
    WeightProduct,
    WeightStore,
)


class ElementwiseProducts:
    """The products that are yet to be summed."""

    def __init__(self, store: WeightStore, axes: AxisTracker, rows: RowTracker) -> None:
        self._store, self._axes, self._rows = store, axes, rows
        self._products = TensorMap[ElementwiseProduct]()
        self._reshaped = TensorMap[ElementwiseProduct]()  # in another shape

    def __contains__(self, tensor: Tensor) -> bool:
        return tensor in self._products

    def __bool__(self) -> bool:
        return bool(self._products)

    def __getitem__(self, tensor: Tensor) -> ElementwiseProduct:
        return self._products[tensor]

    def summed_by_index(self, summed: ScatterSum) -> ElementwiseProduct | None:
        """Return the product that is summed by index, perhaps in another shape."""
        return self._products.get(summed.source) or self._reshaped.get(summed.source)

    def follow(self, call: FunctionCall) -> None:
        """Follow products that are brought to another shape."""
        is_reshape = call.name in RESHAPES or call.name == "contiguous"
        if is_reshape and call.inputs and call.inputs[0] in self._products:
            self._reshaped[call.out] = self._products[call.inputs[0]]

    def add(self, call: FunctionCall, position: int) -> bool:
        """Track weights times values that are summed later; False if it is no such product."""
        inputs, out = call.inputs, call.out
        if not isinstance(out, Tensor):
            return False
        others = [x for n, x in enumerate(inputs) if n != position]
        weights = inputs[position]
        if len(others) != 1 or not isinstance(others[0], Tensor):
            return False
        values = others[0]
        weights_term = self._spanned(weights, out)
        values_term = self._spanned(values, out)
        if len(weights_term) == out.ndim or not set(values_term) - set(weights_term):
            return False
        tracked: TrackedWeights = self._store.tracked[weights]
        value = tracked.values(weights)
        own = self._without_broadcast(value, weights, weights_term, out.ndim)
        kept = self._without_broadcast(values.detach(), values, values_term, out.ndim)
        arrange = partial(_without_broadcast, term=weights_term, ndim=out.ndim)
        multiplication = Multiplication(call.without_result(), position, arrange)
        self._products[out] = ElementwiseProduct(
            tracked, own, kept, weights_term, values_term, multiplication
        )
        return True

    def add_equation(self, call: FunctionCall, equation: Equation, own: int, position: int) -> None:
        """Track an einsum of weights with values that sums over nothing."""
        result, out = equation.result, call.out
        if len(equation.operands) != 2 or not isinstance(out, Tensor):
            return
        if {x for term in equation.terms for x in term} != set(result):
            return
        weights, values = equation.operands[own], equation.operands[1 - own]
        tracked: TrackedWeights = self._store.tracked[weights]
        kept, terms, orders = [], [], []
        for n, value in ((own, tracked.values(weights)), (1 - own, values.detach())):
            term, axes = equation.terms[n], self._axes.axes(equation.operands[n])
            order = sorted(range(len(term)), key=lambda axis, term=term: result.index(term[axis]))  # type: ignore[misc]
            orders.append(order)
            kept.append(value.permute(order))
            terms.append(tuple(result.index(term[axis]) for axis in order))
            is_constant = self._axes.is_constant(equation.operands[n])
            self._axes.relabel(kept[-1], tuple(axes[n] for n in order), is_constant=is_constant)
            arrange = partial(_permuted, order=order)
            self._rows.rearrange(equation.operands[n], arrange, kept[-1])
        if set(terms[1]) - set(terms[0]):
            multiplication = Multiplication(
                call.without_result(), position, lambda x: x.permute(orders[0])
            )
            self._products[out] = ElementwiseProduct(
                tracked, kept[0], kept[1], terms[0], terms[1], multiplication
            )

    def _without_broadcast(
        self, tensor: Tensor, labelled: Tensor, term: Letters, ndim: int
    ) -> Tensor:
        """Return an operand with those axes of the product that it has, and with their labels."""
        missing = ndim - tensor.ndim
        axes = ((),) * missing + self._axes.axes(labelled)
        tensor = _without_broadcast(tensor, term, ndim)
        self._rows.rearrange(labelled, partial(_without_broadcast, term=term, ndim=ndim), tensor)
        kept = tuple(axis for n, axis in enumerate(axes) if n in term)
        self._axes.relabel(tensor, kept, is_constant=self._axes.is_constant(labelled))
        return tensor

    def _spanned(self, tensor: Tensor, out: Tensor) -> Letters:
        """Return the axes of a broadcast result that an operand has, counted from the first."""
        first = out.ndim - tensor.ndim
        axes = self._axes.axes(tensor)
        return tuple(
            first + n
            for n, (size, axis) in enumerate(zip(tensor.shape, axes, strict=True))
            if size == out.shape[first + n] and not _is_expanded(axis)
        )

    def read_sum(self, known: ElementwiseProduct, call: FunctionCall) -> WeightProduct | None:
        """Read (weights * values).sum(keys); None if it does not sum the weights."""
        product, dim = call.inputs[0], call.argument("dim", 1)
        if dim is None:
            return None
        dims = {n % product.ndim for n in ([dim] if isinstance(dim, int) else dim)}
        result = set(range(product.ndim)) - dims
        if not dims & set(known.weights_term):
            return None

        def to_weights(gradient: Tensor) -> Tensor:
            expanded = _expand_to(known.values, known.values_term, gradient.ndim)
            per_weight = gradient * expanded
            extra = [n for n in range(gradient.ndim) if n not in known.weights_term]
            return per_weight.sum(extra) if extra else per_weight

        return WeightProduct(
            operand=product,
            weights=known.weights,
            term=known.weights_term,
            values=known.values,
            values_term=known.values_term,
            result=frozenset(result),
            position=0,
            to_operand=to_weights,
            multiplication=known.multiplication,
        )


def _is_expanded(axis: Axis) -> bool:
    """Return whether an axis only repeats; that of repeated heads has the heads, too."""
    return bool(axis) and all(f.origin.is_broadcast for f in axis)


def _without_broadcast(tensor: Tensor, term: Letters, ndim: int) -> Tensor:
    """Return an operand with those axes of a product of `ndim` axes that are in a term."""
    tensor = tensor[(None,) * (ndim - tensor.ndim)]
    for n in reversed(range(ndim)):
        tensor = tensor if n in term else tensor.select(n, 0)
    return tensor


def _permuted(tensor: Tensor, order: list[int]) -> Tensor:
    return tensor.permute(order)


def _expand_to(tensor: Tensor, term: Letters, ndim: int) -> Tensor:
    """Insert axes of size 1 so that the axes of a tensor are those of a term."""
    shape = [1] * ndim
    for letter, size in zip(term, tensor.shape, strict=True):
        assert isinstance(letter, int)
        shape[letter] = size
    return tensor.reshape(shape)
