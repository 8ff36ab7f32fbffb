"""Axis tracking: where each axis of a tensor comes from, followed through torch functions.

Shapes alone do not distinguish a head from a batch item, a window or a query. Each axis is
therefore labelled with the `Origin` that it has: the axis of an input, or the one that a projection
made. Reshapes split and merge axes, so that an axis is a product of `Factor`s, each with a stride
in the index of its origin. An axis that was split from the width of a projection is a head; one
that was split from the axis of the queries is a window, and the strides say which positions are in
it.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from regard.capture.axis_labels import (
    Axes,
    Axis,
    Factor,
    Origin,
    as_rows,
    axis_size,
    axis_sizes,
    gathered_axis,
    index_at,
    joined_axis,
    merged,
    new_axes,
    new_axis,
    preferred_axis,
    share_gathers,
    split_factor,
    with_aliases,
)
from regard.capture.equations import PRODUCTS, Equation
from regard.capture.function_call import FunctionCall
from regard.capture.lineage import tensors_in
from regard.capture.scatter import SCATTER_SUMS, ScatterSum, scatter_sum
from regard.capture.tensor_map import TensorMap
from regard.capture.views import VIEWS, read_strides, strided, strides_of_views

_REDUCTIONS = {"sum", "mean", "amax", "amin", "max", "min", "prod", "logsumexp", "norm", "any"}
_REDUCTIONS |= {"all", "std", "var", "argmax", "argmin"}
_COPIES = {"contiguous", "clone", "to", "float", "half", "type_as", "detach"}
_PICKS = {"index_select", "__getitem__"}
_INDICES = (torch.int64, torch.int32)
_CONVOLUTIONS = {"conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d"}
_JOINS = {"cat", "concat", "concatenate", "stack"}
_RESIZES = {"repeat_interleave", "repeat", "tile", "pad", "index_select"}
_HAVE_RULES = {
    *(*VIEWS, *PRODUCTS, *_JOINS, *_CONVOLUTIONS, *_REDUCTIONS, *_RESIZES),
    *("roll", "view_as_complex", "view_as_real", "linear", "embedding", "__setitem__", "scatter"),
    *("as_strided", *SCATTER_SUMS, *(f"{name}_" for name in (*SCATTER_SUMS, "scatter"))),
}
_KEEP_PARAMETERS = {*VIEWS, *_COPIES}


class Labels(NamedTuple):
    """What is known about a tensor."""

    axes: Axes
    is_constant: bool = False  # computed from parameters and buffers alone
    is_parameter: bool = False  # a parameter or buffer, or a view of one


class AxisTracker:
    """The labels of all live tensors, updated with each torch function.

    Args:
        constants: the parameters and buffers of the model.
    """

    def __init__(self, constants: Iterable[Tensor] = ()) -> None:
        self._labels = TensorMap[Labels]()
        self._has_gathers = False  # whether any elements were picked by indices
        # buffers that are written to, such as KV caches, are no constants any more
        self._constants = {id(x): x._version for x in constants if not x.is_inference()}

    def labels(self, tensor: Tensor) -> Labels:
        """Return the labels of a tensor; an unknown one gets new origins."""
        labels = self._labels.get(tensor)
        if labels is None or len(labels.axes) != tensor.ndim:
            axes = new_axes(tensor)
            for factor in axes[0] if axes else ():
                factor.origin.is_leading = True
            is_parameter = self._constants.get(id(tensor)) == version_of(tensor)
            labels = Labels(axes, is_parameter, is_parameter)
            self._labels[tensor] = labels
        return labels

    def axes(self, tensor: Tensor) -> Axes:
        """Return the axes of a tensor."""
        return self.labels(tensor).axes

    def is_constant(self, tensor: Tensor) -> bool:
        """Return whether a tensor depends on parameters and buffers alone."""
        return self.labels(tensor).is_constant

    def is_parameter(self, tensor: Tensor) -> bool:
        """Return whether a tensor is a parameter or buffer, or a view of one."""
        return self.labels(tensor).is_parameter

    def relabel(self, tensor: Tensor, axes: Axes, *, is_constant: bool) -> None:
        """Replace the labels of a tensor."""
        self._labels[tensor] = Labels(axes, is_constant)

    def update(self, call: FunctionCall, weights: Tensor | None = None) -> None:
        """Derive the labels of a function's result from those of its arguments.

        `weights` are attention weights among the arguments: their labels come first, and a product
        with them does not compare queries with keys.
        """
        inputs = [*call.inputs, *tensors_in(call.kwargs.values())] if call.kwargs else call.inputs
        results = inputs[:1] if call.name == "__setitem__" else call.results
        if not inputs or not results:
            return
        is_constant = True
        for tensor in inputs:
            if not self.labels(tensor).is_constant:
                is_constant = False
                break
        first = self.labels(inputs[0])
        is_parameter = first.is_parameter and call.name in _KEEP_PARAMETERS
        if weights is None and _keeps_axes(call.name, inputs[0], results):
            if self._has_gathers:
                self._share_gathers(inputs)
            self._labels[results[0]] = Labels(first.axes, is_constant, is_parameter)
            return
        axes = self._result_axes(call, inputs, results, weights)
        for result, found in zip(results, axes, strict=True):
            if found is not None and axis_sizes(found) == list(result.shape):
                axes_of_result = with_aliases(found)
            else:
                axes_of_result = new_axes(result)
            self._labels[result] = Labels(axes_of_result, is_constant, is_parameter)

    def _result_axes(
        self,
        call: FunctionCall,
        inputs: list[Tensor],
        results: list[Tensor],
        weights: Tensor | None,
    ) -> Sequence[Axes | None]:
        """Return the axes of each result, None where they are unknown."""
        name, first = call.name, inputs[0]
        has_index = name == "__getitem__" and _has_tensor(call.args[1:2])
        if name in _PICKS and (gathered := self._gathered(call)) is not None:
            return [gathered]
        if name.rstrip("_") == "scatter":
            return [self.axes(first)]
        if name == "as_strided" and first.is_contiguous():
            return self._through_view(call, len(results))
        if call.function is functional.unfold:
            return [self._unfolded(call)]
        if name in VIEWS and isinstance(call.args[0], Tensor) and not has_index:
            return self._through_view(call, len(results))
        if (summed := scatter_sum(call.renamed(name.strip("_")))) is not None:
            return [self._scattered(summed, results[0])]
        if name == "roll":
            return [self._rolled(call)]
        if name in _JOINS:
            return [self._joined(call, inputs, results[0])]
        if name == "view_as_complex":
            return [self.axes(first)[:-1]]
        if name == "view_as_real":
            return [(*self.axes(first), new_axis(2, is_projected=True))]
        if name == "linear":
            return [(*self.axes(first)[:-1], new_axis(results[0].shape[-1], is_projected=True))]
        if (equation := call.equation()) is not None:
            return [self._through_product(equation, weights is None)]
        if name in _CONVOLUTIONS:
            return [self._convolved(first, results[0])]
        if name == "embedding":
            ids = self.axes(inputs[0] if not inputs[0].is_floating_point() else inputs[1])
            return [(*ids, new_axis(results[0].shape[-1], is_projected=True))]
        if name == "__setitem__":
            return [self._written(first)]
        if name in _REDUCTIONS:
            return [self._reduced(call, first, x) for x in results]
        if name in _RESIZES:
            return [self._resized(call, first, results[0])]
        if weights is not None:
            inputs = [weights, *(x for x in inputs if x is not weights)]
        return [self._elementwise(inputs, x) for x in results]

    def _through_view(self, call: FunctionCall, count: int) -> Sequence[Axes | None]:
        """Read the strides of views, of a contiguous stand-in without memory if need be."""
        tensor, *rest = call.args
        if not tensor.numel():
            return [None] * count
        axes = self.axes(tensor)
        if tensor.is_contiguous() and _is_view_of_first(call):
            start = tensor.storage_offset()
            return [read_strides(axes, strided(view, start)) for view in call.results]
        views = strides_of_views(call.function, tensor, rest, call.kwargs)
        return [read_strides(axes, view) for view in views]

    def _gathered(self, call: FunctionCall) -> Axes | None:
        """Return the axes of elements picked by indices; None if the function picks none."""
        if (picked := picked_indices(call)) is None:
            return None
        dim, indices = picked
        axes = self.axes(call.args[0])
        if len(indices) == 1 and indices[0].ndim == 1:
            rows = gathered_axis(axes[dim], indices[0])
            self._has_gathers = True
            for factor in rows:
                factor.origin.is_flat = len(axes) == 2 and dim == 0
            new: Axes | None = (rows,)
        else:
            shape = torch.broadcast_shapes(*(index.shape for index in indices))
            new = self._elementwise(indices, torch.empty(shape, device="meta"))
        return None if new is None else (*axes[:dim], *new, *axes[dim + len(indices) :])

    def _share_gathers(self, inputs: list[Tensor]) -> None:
        """Note by which indices the axes of other tensors of the same shape were picked."""
        for other in inputs[1:]:
            if other.shape == inputs[0].shape:
                for axis, its in zip(self.axes(inputs[0]), self.axes(other), strict=True):
                    share_gathers(axis, its)

    def _scattered(self, summed: ScatterSum, out: Tensor) -> Axes:
        """Return the axes of a sum by index: those of its source, but rows of its own."""
        axes = self.axes(summed.source)
        rows = new_axis(out.shape[summed.dim])
        for factor in rows:
            factor.origin.is_flat = out.ndim == 2 and summed.dim == 0
        return (*axes[: summed.dim], rows, *axes[summed.dim + 1 :])

    def _unfolded(self, call: FunctionCall) -> Axes | None:
        """Return the axes (batch, channel · offset, window) of the sliding windows of an image."""
        image = call.args[0]
        if image.ndim != 4:
            return None
        batch, channel, *sides = self.axes(image)
        options = (("kernel_size", None), ("dilation", 1), ("padding", 0), ("stride", 1))
        arguments = [call.argument(name, n, x) for n, (name, x) in enumerate(options, start=1)]
        pairs = [(x, x) if isinstance(x, int) else tuple(x) for x in arguments]
        offsets: list[Factor] = []
        windows: list[Factor] = []
        for side, size, *numbers in zip(sides, image.shape[2:], *pairs, strict=True):
            kernel, dilation, padding, stride = numbers
            if len(side) != 1 or side[0][1:] != (size, 1, 0):
                return None
            count = (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
            offsets.append(Factor(side[0].origin, kernel, dilation))
            windows.append(Factor(side[0].origin, count, stride, -padding))
        return (batch, merged((*channel, *_long(offsets))), merged(_long(windows)))

    def _rolled(self, call: FunctionCall) -> Axes:
        """Return the axes of a rolled tensor, whose indices are a table of the former ones."""
        tensor = call.args[0]
        shifts, dims = (
            _as_tuple(call.argument("shifts", 1)),
            _as_tuple(call.argument("dims", 2, ())),
        )
        axes = list(self.axes(tensor))
        for shift, dim in zip(shifts, dims, strict=False):
            size, axis = tensor.shape[dim], axes[dim]
            if len(axis) == 1:
                indices = [index_at(axis, (i - shift) % size) for i in range(size)]
                rolled = Origin(size, root=axis[0].origin, table=indices)
                rolled.is_feature = axis[0].origin.is_feature
                axes[dim] = (Factor(rolled, size),)
        return tuple(axes)

    def _joined(self, call: FunctionCall, inputs: list[Tensor], out: Tensor) -> Axes | None:
        """Return the axes of concatenated tensors; parts of one axis become that axis again."""
        name, dim = call.name, int(call.argument("dim", 1, call.kwargs.get("axis", 0))) % out.ndim
        inputs = [x for x in inputs if x.numel()] or inputs  # an empty cache is no part
        parts = [self.axes(x) for x in inputs if x.ndim == out.ndim - (name == "stack")]
        if len(parts) != len(inputs):
            return None
        if len(parts) == 1 and name != "stack":
            return parts[0]
        split = split_factor(parts)
        if name == "stack":
            new = new_axis(out.shape[dim], is_stack=True) if split is None else (split,)
            parts = [(*axes[:dim], (), *axes[dim:]) for axes in parts]
        elif split is not None:
            new = merged((split, *parts[0][dim]))
        else:
            new = joined_axis([axes[dim] for axes in parts], out.shape[dim])
        axes = parts[0]
        for other in parts[1:]:
            pairs = zip(axes, other, strict=True)
            axes = tuple(preferred_axis(known, axis, other) for known, axis in pairs)
        if split is not None:
            axes = tuple(
                tuple(f._replace(start=0) if f.origin is split.origin else f for f in axis)
                for axis in parts[0]
            )
        return (*axes[:dim], new, *axes[dim + 1 :])

    def _through_product(self, equation: Equation, compares: bool) -> Axes | None:
        """Return the axes of a product, and recognise what its operands compare.

        A product of vectors over their width compares rows: those of the second operand become
        keys, which are no features even if a projection made them.
        """
        operands = [self.labels(x) for x in equation.operands]
        if _is_projection(equation, operands):
            size = equation.operands[1].shape[equation.terms[1].index(equation.result[-1])]
            return (*operands[0].axes[:-1], new_axis(size, is_projected=True))
        letters: dict[Any, Axis] = {}
        for labels, term in zip(operands, equation.terms, strict=True):
            for letter, axis in zip(term, labels.axes, strict=True):
                letters[letter] = preferred_axis(letters.get(letter, ()), axis, labels.axes)
        projected = self._projected_letters(equation, operands)
        if projected:
            for letter in projected:
                letters[letter] = new_axis(axis_size(letters[letter]), is_projected=True)
        elif compares and len(operands) == 2:
            self._mark_compared(equation, letters)
        return tuple(letters[letter] for letter in equation.result)

    def _projected_letters(self, equation: Equation, operands: list[Labels]) -> set[Any]:
        """Return the axes of the result that a parameter makes.

        A single one of a first operand is no projection: learned queries are compared with keys.
        """
        if all(labels.is_parameter for labels in operands):
            return set()
        found: set[Any] = set()
        for n, labels in enumerate(operands):
            others = {x for m, term in enumerate(equation.terms) if m != n for x in term}
            own = [x for x in equation.terms[n] if x in equation.result and x not in others]
            if labels.is_parameter and (n or len(own) > 1):
                found.update(own)
        return found

    def _mark_compared(self, equation: Equation, letters: dict[Any, Axis]) -> None:
        first, second = map(set, equation.terms)
        result = set(equation.result)
        width = [f for x in (first & second) - result for f in letters[x]]
        rows = [(first - second) & result, (second - first) & result]
        row_factors = [f for side in rows for x in side for f in letters[x]]
        if not width or not all(rows):
            return
        if not any(f.origin.is_feature for f in (*row_factors, *width)):
            for factor in width:
                factor.origin.is_feature = factor.origin.root.is_feature = True
        if not any(f.origin.is_feature for f in width):
            return  # a product over rows, as of channel attention
        sides = [[f for x in side for f in letters[x]] for side in rows]
        has_heads = not all(any(f.origin.is_feature for f in side) for side in sides)
        roots = {f.origin.root for f in width}
        compared = {}
        for number, (side, factors) in enumerate(zip(rows, sides, strict=True), start=1):
            for letter in side:
                heads = [has_heads and f.origin.is_feature for f in letters[letter]]
                if all(f.origin.is_feature for f in factors):  # there must be rows to compare
                    heads = [has_heads and f.origin.root in roots for f in letters[letter]]
                    heads = [False] * len(heads) if len(side) == 1 and all(heads) else heads
                compared[letter] = tuple(
                    factor if is_head else as_rows((factor,), number)[0]
                    for factor, is_head in zip(letters[letter], heads, strict=True)
                )
        letters.update(compared)

    def _convolved(self, tensor: Tensor, out: Tensor) -> Axes | None:
        if tensor.ndim != out.ndim:
            return None
        axes, channel = self.axes(tensor), 1 if out.ndim > 2 else 0
        kept = [
            axis if axis_size(axis) == size else new_axis(size)
            for axis, size in zip(axes, out.shape, strict=True)
        ]
        kept[channel] = new_axis(out.shape[channel], is_projected=True)
        return tuple(kept)

    def _written(self, tensor: Tensor) -> Axes:
        """Return the axes of a tensor that was written to: its rows are no repetitions any more."""
        new = new_axes(tensor)
        return tuple(
            fresh if any(f.origin.is_broadcast for f in axis) else axis
            for fresh, axis in zip(new, self.axes(tensor), strict=True)
        )

    def _reduced(self, call: FunctionCall, tensor: Tensor, out: Tensor) -> Axes | None:
        axes = self.axes(tensor)
        if out.ndim == tensor.ndim:
            return self._elementwise([tensor], out)
        dim = call.argument("dim", 1, call.kwargs.get("axis"))
        if dim is None or isinstance(dim, Tensor | str):
            return None
        removed = {d % tensor.ndim for d in _as_tuple(dim)}
        return tuple(axis for n, axis in enumerate(axes) if n not in removed)

    def _resized(self, call: FunctionCall, tensor: Tensor, out: Tensor) -> Axes | None:
        """Return the axes of a tensor of which one or more axes were repeated, padded or picked."""
        axes = ((),) * (out.ndim - tensor.ndim) + self.axes(tensor)
        if len(axes) != out.ndim:
            return None
        name = call.name
        padding = call.argument("pad", 1, ()) if name == "pad" else ()
        resized: list[Axis] = []
        for n, (axis, size) in enumerate(zip(axes, out.shape, strict=True)):
            before, times = axis_size(axis), size // max(axis_size(axis), 1)
            if size == before and name != "index_select":
                resized.append(axis)
            elif name == "pad" and len(axis) == 1:
                left = padding[2 * (out.ndim - 1 - n)]
                start = axis[0].start - left * axis[0].stride
                resized.append((axis[0]._replace(size=size, start=start),))
            elif name.startswith(("repeat", "tile")) and times * before == size:
                copies = new_axis(times, is_broadcast=True)
                resized.append((*axis, *copies) if "interleave" in name else (*copies, *axis))
            else:
                is_picked = name != "index_select" or n == int(call.argument("dim", 1)) % out.ndim
                resized.append(new_axis(size) if is_picked else axis)
        return tuple(resized)

    def _elementwise(self, inputs: list[Tensor], out: Tensor) -> Axes | None:
        """Return the axes of a result with the axes of its inputs, broadcast against each other.

        Also for any other function whose first input has as many axes: those of equal size stay.
        """
        known = [x for x in inputs if x in self._labels and x.ndim <= out.ndim]
        known = known or [x for x in inputs[:1] if x.ndim <= out.ndim]
        known.sort(key=lambda x: (not x.is_floating_point(), -_num_equal(x.shape, out.shape)))
        known = [
            x
            for x in known
            if (x is inputs[0] and x.ndim == out.ndim) or _broadcasts(x.shape, out.shape)
        ]
        found: list[Axis | None] = [None] * out.ndim
        is_feature = [False] * out.ndim
        for tensor in known:
            for n, axis in enumerate(reversed(self.axes(tensor)), start=1):
                if n > out.ndim:
                    break
                is_feature[-n] |= any(f.origin.is_feature for f in axis)
                if axis_size(axis) == out.shape[-n]:
                    known_axis = found[-n] = found[-n] or axis
                    share_gathers(known_axis, axis)
        return tuple(
            new_axis(size, is_projected=feature)
            if axis is None or (size > 1 and not axis)
            else axis
            for axis, size, feature in zip(found, out.shape, is_feature, strict=True)
        )


def _keeps_axes(name: str, tensor: Tensor, results: list[Tensor]) -> bool:
    """Return whether a function computes one element of its result from each of a tensor's."""
    is_elementwise = name not in _HAVE_RULES and len(results) == 1
    return is_elementwise and tensor.is_floating_point() and results[0].shape == tensor.shape


def _is_projection(equation: Equation, operands: list[Labels]) -> bool:
    """Return whether a matrix of parameters is all that makes the last axis of a product."""
    if len(operands) != 2 or len(equation.terms[1]) != 2:
        return False
    first, second = equation.terms
    is_matmul = equation.result == (*first[:-1], *(x for x in second if x != first[-1]))
    return is_matmul and operands[1].is_parameter and not operands[0].is_parameter


def _is_view_of_first(call: FunctionCall) -> bool:
    """Return whether the results are views of a tensor that the function left as it was."""
    if call.name != "__getitem__":
        return call.name[-1] != "_"
    index = call.args[1]
    parts = index if isinstance(index, tuple) else (index,)
    return all(part is None or part is ... or type(part) in (int, slice) for part in parts)


def picked_indices(call: FunctionCall) -> tuple[int, list[Tensor]] | None:
    """Return the first of the axes of which indices pick elements, and these indices."""
    tensor = call.args[0] if call.args else None
    if not isinstance(tensor, Tensor):
        return None
    dim, items = 0, []
    if call.name == "index_select":
        dim, items = int(call.argument("dim", 1)) % tensor.ndim, [call.argument("index", 2)]
    elif call.name == "__getitem__":
        items = list(call.args[1]) if isinstance(call.args[1], tuple) else [call.args[1]]
    while items and _is_whole(items[0]):
        dim, items = dim + 1, items[1:]
    while items and _is_whole(items[-1]):
        items = items[:-1]
    is_index = [isinstance(x, Tensor) and x.ndim > 0 and x.dtype in _INDICES for x in items]
    return (dim, items) if items and all(is_index) else None


def _is_whole(item: Any) -> bool:
    return isinstance(item, slice) and item == slice(None)


def _long(factors: Iterable[Factor]) -> Axis:
    """Return an axis without the factors of size 1."""
    return tuple(factor for factor in factors if factor.size > 1)


def version_of(tensor: Tensor) -> int:
    """Return the number of in-place changes of a tensor."""
    return -1 if tensor.is_inference() else tensor._version


def _as_tuple(value: Any) -> tuple[int, ...]:
    return (value,) if isinstance(value, int) else tuple(value)


def _has_tensor(values: Iterable[Any]) -> bool:
    """Return whether an index has tensors: then the result is no view."""
    for value in values:
        if isinstance(value, Tensor) or (isinstance(value, list) and value):
            return True
        if isinstance(value, tuple) and any(isinstance(x, Tensor | list) for x in value):
            return True
    return False


def _num_equal(shape: torch.Size, out: torch.Size) -> int:
    return sum(a == b for a, b in zip(reversed(shape), reversed(out), strict=False))


def _broadcasts(shape: torch.Size, out: torch.Size) -> bool:
    pairs = zip(reversed(shape), reversed(out), strict=False)
    return len(shape) <= len(out) and all(a in (1, b) for a, b in pairs)
