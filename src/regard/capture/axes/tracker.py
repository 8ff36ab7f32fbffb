"""The labels of all live tensors: where each axis comes from, followed through torch functions.

Shapes alone do not distinguish a head from a batch item, a window or a query. Each axis is
therefore labelled with the `Origin` that it has: the axis of an input, or the one that a projection
made. Reshapes split and merge axes, so that an axis is a product of `Factor`s, each with a stride
in the index of its origin. An axis that was split from the width of a projection is a head; one
that was split from the axis of the queries is a window, and the strides say which positions are in
it.
"""

from collections.abc import Iterable

from torch import Tensor

from regard.capture.axes.broadcasting import elementwise
from regard.capture.axes.combining import with_aliases, without_features
from regard.capture.axes.indexing import share_gathers_of
from regard.capture.axes.label_store import LabelledCall, Labels, LabelStore
from regard.capture.axes.labels import Axes, axis_sizes, new_axes
from regard.capture.axes.rules import KEEP_PARAMETERS, RULES
from regard.capture.functions import PRODUCTS, FunctionCall, tensors_in

# functions that choose elements; the indices and the tokens that they return are no features
_CHOICES = {"topk", "sort", "argsort", "gather", "take_along_dim", "multinomial"}


class AxisTracker:
    """The labels of all live tensors, updated with each torch function.

    Args:
        constants: the parameters and buffers of the model.
    """

    def __init__(self, constants: Iterable[Tensor] = ()) -> None:
        self._store = LabelStore(constants)

    def axes(self, tensor: Tensor) -> Axes:
        """Return the axes of a tensor."""
        return self._store.labels(tensor).axes

    def is_constant(self, tensor: Tensor) -> bool:
        """Return whether a tensor depends on parameters and buffers alone."""
        return self._store.is_constant(tensor)

    def is_parameter(self, tensor: Tensor) -> bool:
        """Return whether a tensor is a parameter or buffer, or a view of one."""
        return self._store.is_parameter(tensor)

    def relabel(self, tensor: Tensor, axes: Axes, *, is_constant: bool) -> None:
        """Replace the labels of a tensor."""
        self._store[tensor] = Labels(axes, is_constant)

    def add_filled(self, tensors: Iterable[Tensor]) -> None:
        """Label constants that the model made of a shape and numbers, as zeros and ranges are."""
        for tensor in tensors:
            self._store.add_filled(tensor)

    def update(self, call: FunctionCall, weights: Tensor | None = None) -> None:
        """Derive the labels of a function's result from those of its arguments.

        `weights` are attention weights among the arguments: their labels come first, and a product
        with them does not compare queries with keys.
        """
        inputs = [*call.inputs, *tensors_in(call.kwargs.values())] if call.kwargs else call.inputs
        results = inputs[:1] if call.name == "__setitem__" else call.results
        if not inputs or not results:
            return
        store, rule = self._store, RULES.get(call.name)
        if call.name in PRODUCTS:  # where most parameters are, which then need no labels
            first, is_constant = None, all(map(store.is_constant, inputs))
        else:
            first = store.labels(inputs[0])
            others = inputs[1:]
            is_constant = first.is_constant and all(store.labels(x).is_constant for x in others)
        is_parameter = first is not None and first.is_parameter and call.name in KEEP_PARAMETERS
        is_simple = rule is None and weights is None and _keeps_axes(inputs[0], results)
        # constants, as embeddings of positions that were expanded to the batch, say least
        if first and is_simple and not first.is_filled and first.is_constant == is_constant:
            if store.has_gathers:
                share_gathers_of(store, inputs)
            store[results[0]] = Labels(first.axes, is_constant, is_parameter)
            return
        labelled = LabelledCall(call, inputs, results, weights, store)
        found_axes = None if rule is None else rule(labelled)
        found_axes = elementwise(labelled) if found_axes is None else found_axes
        for result, found in zip(results, found_axes, strict=True):
            if found is not None and axis_sizes(found) == list(result.shape):
                axes_of_result = with_aliases(found)
                if call.name in _CHOICES and not result.is_floating_point():
                    axes_of_result = without_features(axes_of_result)
            else:
                axes_of_result = new_axes(result)
            store[result] = Labels(axes_of_result, is_constant, is_parameter)


def _keeps_axes(tensor: Tensor, results: list[Tensor]) -> bool:
    """Return whether a function computes one element of its result from each of a tensor's."""
    is_single = len(results) == 1 and tensor.is_floating_point()
    return is_single and results[0].shape == tensor.shape
