"""The sources of all live tensors, updated with each torch function."""

from functools import partial
from math import prod
from typing import Any

from torch import Tensor
from torch.nn import functional

from regard.capture.axes import Axis, AxisTracker
from regard.capture.functions import (
    CASTS,
    COPIES,
    EXPANSIONS,
    JOINS,
    PRODUCTS,
    RESHAPES,
    SLICES,
    SPLITS,
    TRANSPOSES,
    FunctionCall,
    Letters,
    TensorMap,
    plain_name,
)
from regard.capture.rows.sources import (
    Anchor,
    Combined,
    Compared,
    Empty,
    Projected,
    Rearranged,
    Source,
    anchors_of,
    pad_with_zeros,
    stride_indices,
    unfold_indices,
)

_MAX_DEPTH = 100  # functions to run again: a cache gains one with each token
_MAX_ANCHORS = 4

_REARRANGES = RESHAPES | TRANSPOSES | EXPANSIONS | SPLITS | SLICES | JOINS
_REARRANGES |= {
    *("unfold", "diagonal", "atleast_2d", "atleast_3d", "as_strided", "pad", "flip", "fliplr"),
    *("roll", "repeat", "tile", "repeat_interleave", "gather", "take_along_dim", "index_select"),
    *("slice_scatter", "select_scatter", "index_copy", "index_put", "setitem", "copy", "scatter"),
}
"""Functions that only arrange elements, by their plain names."""

_REORDERS = {"roll": 2, "flip": 1, "gather": 1, "index_select": 1, "take_along_dim": 2}
_REORDERS |= {"getitem": 1, **dict.fromkeys(JOINS - {"stack"}, 1)}
"""Those that may bring rows to another order, and the position of their axis or index."""

_WRITES = {"__setitem__", "index_put_", "index_copy_", "copy_", "scatter_"}
"""Those that write elements into their first argument."""

_ELEMENTWISE = CASTS | COPIES
_ELEMENTWISE |= {
    *("add", "sub", "mul", "div", "rdiv", "rsub", "neg", "pow", "exp", "sqrt", "rsqrt", "abs"),
    *("softmax", "log_softmax", "special_softmax", "tanh", "sigmoid", "relu", "gelu", "silu"),
    *("softplus", "elu", "clamp", "clamp_min", "clamp_max", "dropout", "masked_fill", "where"),
    *("nan_to_num", "layer_norm", "rms_norm", "normalize", "tril", "triu", "cpu", "cuda"),
    *("addcmul", "maximum", "minimum", "square"),
}
"""Functions of the elements at the same place in tensors of the same shape, by plain names.

Norms are among them, since they are functions of the elements of a row.
"""

_LISTS = {list, tuple}

_FILLS = {"arange", "empty", "eye", "full", "linspace", "ones", "zeros"}
_FILLS |= {"empty_like", "full_like", "ones_like", "zeros_like"}
_FILLS |= {"new_empty", "new_full", "new_ones", "new_tensor", "new_zeros"}
"""Functions whose elements come from no other tensor."""


class RowTracker:
    """Where the elements of each tensor come from.

    Args:
        axes: the labels of tensors, which know what is a parameter.
    """

    def __init__(self, axes: AxisTracker) -> None:
        self._axes = axes
        self._sources = TensorMap[tuple[Source, int]]()
        self._writes: dict[int, int] = {}  # by memory, of tensors that torch counts none for

    def source(self, tensor: Tensor) -> Source:
        """Return the source of a tensor, which is its own anchor if nothing else is known."""
        known = self._known(tensor)
        return self._new_anchor(tensor) if known is None else known

    def update(self, call: FunctionCall) -> None:
        """Derive the sources of a function's results from those of its arguments."""
        results = call.inputs[:1] if call.name == "__setitem__" else call.results
        if call.name in _FILLS:
            for result in results:
                self._set([result], Empty(tuple(result.shape)))
            return
        if not call.inputs or not results or not results[0].is_floating_point():
            return
        if results[0] is call.inputs[0] and results[0].is_inference():
            memory = _memory(results[0])
            self._writes[memory] = self._writes.get(memory, 0) + 1
        name = plain_name(call.name)
        if name in _REARRANGES:
            self._rearrange(call, name, results)
        elif call.name in PRODUCTS:
            self._set(results, self._multiplied(call))
        else:
            self._set(results, self._combined(call, results[0]) if name in _ELEMENTWISE else None)

    def rearrange(self, tensor: Tensor, function: Any, result: Tensor) -> None:
        """Note that a tensor was made of another one by a function that arranges elements."""
        self._rearrange(FunctionCall(function, "view", (tensor,), {}, result), "view", [result])

    def _known(self, tensor: Tensor) -> Source | None:
        """Return the source of a tensor; None if it has none, or was written to since."""
        known = self._sources.get(tensor)
        return None if known is None or known[1] != self._version(tensor) else known[0]

    def _before(self, tensor: Tensor) -> Source | None:
        """Return the source that a tensor had before the function that may have changed it."""
        known, version = self._sources.get(tensor), self._version(tensor)
        return None if known is None or known[1] not in (version, version - 1) else known[0]

    def _set(self, results: list[Tensor], source: Source | None) -> None:
        for result in results:
            if source is not None and source.depth < _MAX_DEPTH and source.shape == result.shape:
                self._sources[result] = source, self._version(result)
            elif result in self._sources:  # overwritten in place
                self._sources.forget(result)

    def _version(self, tensor: Tensor) -> int:
        """Return the number of changes in place, which tensors with the same memory share."""
        if tensor.is_inference():
            return self._writes.get(_memory(tensor), 0)
        return tensor._version

    def _rearrange(self, call: FunctionCall, name: str, results: list[Tensor]) -> None:
        """Set the sources of results that have elements of the arguments."""
        first = call.inputs[0]
        writes = call.name in _WRITES
        if writes and not isinstance(call.args[-1], Tensor):
            self._set(results, self._before(first))  # a number, as of a mask: rows stay
            return
        sources: list[Source] = []

        is_plain = len(call.inputs) == 1 and call.args[0] is first and first.is_floating_point()
        if is_plain and _LISTS.isdisjoint(map(type, call.args)):
            sources.append(self._before(first) or self.source(first))
            args = sources[0], *call.args[1:]  # the same, without a call for each argument
        else:
            args = self._with_sources(call.args, first, sources)
        anchors = anchors_of(sources)
        if not sources or len(anchors) > _MAX_ANCHORS:
            self._set(results, None)
            return
        function, kwargs = call.function, call.kwargs
        if name == "pad":
            function, kwargs = pad_with_zeros, {n: x for n, x in kwargs.items() if n != "value"}
        elif name == "as_strided":
            strides, offset = first.stride(), int(first.storage_offset())
            function = partial(stride_indices, strides=strides, offset=offset)
        elif function is functional.unfold:
            function = unfold_indices
        is_single = isinstance(call.out, Tensor) or writes
        reorders = name in _REORDERS and self._reorders_rows(call, name, sources)
        for n, result in enumerate(results):
            item = None if is_single else n
            shape = tuple(result.shape)
            source = Rearranged(function, args, kwargs, shape, item, writes, sources)
            source.is_reordered |= reorders
            self._set([result], source)

    def _source_of_rows(self, tensor: Tensor) -> Source:
        """Return the source of rows, which are new ones if each is made of several.

        So are those of an image whose neighbouring rows were joined, to be projected to one.
        """
        source = self.source(tensor)
        has_all = source.num_elements == tensor.numel()
        return (
            self._new_anchor(tensor) if has_all and 0 < source.width < tensor.shape[-1] else source
        )

    def _new_anchor(self, tensor: Tensor) -> Anchor:
        shape, is_parameter = tuple(tensor.shape), self._axes.is_parameter(tensor)
        pairs = zip(self._axes.axes(tensor), shape, strict=True)
        features = [size for axis, size in pairs if _are_features(axis)]
        width = prod(features) if features else 0
        anchor = Anchor(shape, tensor.device, width, is_parameter=is_parameter)
        self._set([tensor], anchor)
        return anchor

    def _sums_rows(self, tensor: Tensor, term: Letters, result: Letters) -> bool:
        """Return whether a product sums over an axis of rows, rather than over features."""
        axes = zip(term, self._axes.axes(tensor), strict=True)
        summed = [f.origin for letter, axis in axes if letter not in result for f in axis]
        return any(not (x.is_feature or x.root.may_be_feature) for x in summed)

    def _reorders_rows(self, call: FunctionCall, name: str, sources: list[Source]) -> bool:
        """Return whether a function may bring rows to another order, rather than features."""
        if any(x.is_compared for x in sources):
            return False
        dims = call.argument("dim", _REORDERS[name], call.kwargs.get("dims", 0))
        if name == "getitem":
            index = dims if isinstance(dims, tuple) else (dims,)
            return any(isinstance(x, Tensor | list) for x in index)
        if name in JOINS and len(anchors_of(sources)) == sum(len(anchors_of([x])) for x in sources):
            return False  # they are no parts of the same rows
        axes = self._axes.axes(call.inputs[0])
        dims = call.args[1:] if name == "flip" and len(call.args) > 2 else dims
        dims = (dims,) if isinstance(dims, int) else dims or ()
        return not dims or any(not _are_features(axes[n]) for n in dims)

    def _with_sources(self, value: Any, first: Tensor, sources: list[Source]) -> Any:
        """Return arguments with sources in the place of tensors of numbers; collect the sources.

        A method, since a nested function that calls itself would keep the tensor until the next
        garbage collection.
        """
        if isinstance(value, Tensor):
            if not value.is_floating_point():
                return value.detach()
            known = self._before(value) if value is first else None
            sources.append(known or self.source(value))
            return sources[-1]
        if type(value) in _LISTS:
            return type(value)(self._with_sources(x, first, sources) for x in value)
        return value

    def _combined(self, call: FunctionCall, result: Tensor) -> Source | None:
        """Return the source of what is computed element by element, perhaps in place."""
        known: list[Source] = []
        for tensor in call.inputs:
            if tensor.shape != result.shape or tensor not in self._sources:
                continue
            source = self._before(tensor) if tensor is result else self._known(tensor)
            is_new = source is not None and not any(x is source for x in known)
            if source is not None and is_new and not isinstance(source, Empty):
                known.append(source)
        compared = [x for x in known if x.is_compared]
        known = compared or known
        if len(known) < 2:
            return known[0] if known else None
        anchors = anchors_of(known)
        if not compared and any(x.anchors != anchors for x in known):
            first = min(
                known, key=_first_order
            )  # of a residual sum: the rows that were there before
            has_all = any(x.num_elements == result.numel() for x in anchors_of([first]))
            return first if has_all else None
        return None if len(anchors) > _MAX_ANCHORS else Combined(known)

    def _multiplied(self, call: FunctionCall) -> Source | None:
        """Return the source of projected rows, or of scores."""
        if call.name == "linear" and self._axes.is_parameter(call.inputs[1]):
            return Projected(self._source_of_rows(call.inputs[0]), tuple(call.out.shape))
        equation = call.equation()
        if equation is None or len(equation.operands) != 2 or not isinstance(call.out, Tensor):
            return None
        (first, second), (left, right) = equation.operands, equation.terms
        result, shape = equation.result, tuple(call.out.shape)
        if self._axes.is_parameter(second):
            is_by_row = result[:-1] == left[:-1] and result[-1] not in left
            return Projected(self.source(first), shape) if is_by_row else None
        if self._axes.is_parameter(first):
            return None
        sources = self.source(first), self.source(second)
        if any(x.is_compared for x in sources) or self._sums_rows(first, left, result):
            return None  # a context, scores of scores, or summaries of rows
        return Compared(sources, (left, right), result, shape)


def _first_order(source: Source) -> tuple[bool, int]:
    """Return the order of the first of a source's anchors."""
    return min((x.order for x in anchors_of([source])), default=(True, 0))


def _are_features(axis: Axis) -> bool:
    return bool(axis) and all(f.origin.is_feature for f in axis)


def _memory(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()
