"""Axis tracking: where each axis of a tensor comes from, followed through torch functions.

Shapes alone do not tell a head from a batch item, a window or a query. Each axis is therefore
labelled with the `Origin` that it has: the axis of an input, or the one that a projection made.
Reshapes split and merge axes, so that an axis is a product of `Factor`s, each with a stride in the
index of its origin. An axis that was split from the width of a projection is a head; one that was
split from the axis of the queries is a window, and the strides say which positions are in it.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from regard.capture.equations import Equation, equation_of
from regard.capture.lineage import tensors_in

VIEWS = {
    *("view", "reshape", "view_as", "reshape_as", "transpose", "permute", "movedim", "moveaxis"),
    *("swapaxes", "swapdims", "t", "adjoint", "unsqueeze", "squeeze", "flatten", "unflatten"),
    *("expand", "expand_as", "broadcast_to", "chunk", "split", "split_with_sizes", "unbind"),
    *("tensor_split", "narrow", "select", "slice", "__getitem__", "unfold", "T", "mT", "H", "mH"),
    *("_unsafe_view", "atleast_2d", "atleast_3d", "diagonal", "hsplit", "vsplit", "dsplit"),
    *("transpose_", "unsqueeze_", "squeeze_", "ravel"),
}
"""Functions whose result is a view of a contiguous tensor, so that its strides tell all."""

_REDUCTIONS = {"sum", "mean", "amax", "amin", "max", "min", "prod", "logsumexp", "norm", "any"}
_REDUCTIONS |= {"all", "std", "var", "argmax", "argmin"}
_COPIES = {"contiguous", "clone", "to", "float", "half", "type_as", "detach"}
_MAX_PARTS = 8  # origins that a joined axis remembers
_CONVOLUTIONS = {"conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d"}


class Origin:
    """An axis as it first appeared: of an input, or made by a function.

    Attributes:
        root: itself, or the origin that it is an alias of. Scores of a text with itself have its
            rows twice, once as queries and once as keys; the latter are an alias.
        is_feature: made by a projection, or the width of vectors that were compared.
        is_projected: made by a projection.
        is_stack: made by stacking tensors.
        is_broadcast: made by repeating a tensor.
        is_compared: the queries or the keys of scores.
        is_attended: rows that were compared before, which are therefore no batch.
        is_flat: the first axis of a matrix, as of the tokens of all texts of a batch.
        table: for a rolled axis, the index of each element in the origin `root`.
        parts: the origins of axes that were joined to this one.
    """

    __slots__ = (
        *("is_attended", "is_broadcast", "is_compared", "is_feature", "is_flat", "is_projected"),
        *("is_stack", "parts", "root", "size", "table"),
    )

    def __init__(
        self,
        size: int,
        *,
        is_projected: bool = False,
        is_stack: bool = False,
        is_broadcast: bool = False,
        root: "Origin | None" = None,
        table: "list[int] | None" = None,
    ) -> None:
        self.size, self.is_projected, self.is_feature = size, is_projected, is_projected
        self.is_stack, self.is_broadcast = is_stack, is_broadcast
        self.is_attended = self.is_compared = self.is_flat = False
        self.root: Origin = self if root is None else root.root
        self.table = table
        self.parts: frozenset[Origin] = frozenset()


class Factor(NamedTuple):
    """A part of an axis: `size` indices of an origin, `stride` apart, from `start` on."""

    origin: Origin
    size: int
    stride: int = 1
    start: int = 0


Axis = tuple[Factor, ...]  # outermost first; empty if the axis has size 1
Axes = tuple[Axis, ...]


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
        self._labels: Any = WeakTensorKeyDictionary()
        # buffers that are written to, such as KV caches, are no constants any more
        self._constants = {id(x): x._version for x in constants if not x.is_inference()}

    def labels(self, tensor: Tensor) -> Labels:
        """Return the labels of a tensor; an unknown one gets new origins."""
        labels: Labels | None = self._labels.get(tensor)
        if labels is None or len(labels.axes) != tensor.ndim:
            axes = _new_axes(tensor)
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

    def relabel(self, tensor: Tensor, axes: Axes) -> None:
        """Replace the axes of a tensor."""
        self._labels[tensor] = Labels(axes, self.is_constant(tensor))

    def mark_constant(self, tensor: Tensor) -> None:
        """Note that a tensor depends on parameters and buffers alone."""
        self._labels[tensor] = Labels(self.axes(tensor), True)

    def update(
        self,
        function: Callable[..., Any],
        name: str,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        out: Any,
        weights: Tensor | None = None,
    ) -> None:
        """Derive the labels of a function's result from those of its arguments.

        `weights` are attention weights among the arguments: their labels come first, and a product
        with them does not compare queries with keys.
        """
        inputs = list(tensors_in((*args, *kwargs.values())))
        results = [inputs[0]] if name == "__setitem__" and inputs else list(tensors_in((out,)))
        if not inputs or not results:
            return
        is_constant = all(self.is_constant(x) for x in inputs)
        is_parameter = name in (*VIEWS, *_COPIES) and self.labels(inputs[0]).is_parameter
        axes = self._result_axes(function, name, args, kwargs, inputs, results, weights)
        for result, found in zip(results, axes, strict=True):
            if found is not None and _sizes(found) == list(result.shape):
                axes_of_result = _with_aliases(found)
            else:
                axes_of_result = _new_axes(result)
            self._labels[result] = Labels(axes_of_result, is_constant, is_parameter)

    def _result_axes(
        self,
        function: Callable[..., Any],
        name: str,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        inputs: list[Tensor],
        results: list[Tensor],
        weights: Tensor | None,
    ) -> Sequence[Axes | None]:
        """Return the axes of each result, None where they are unknown."""
        first = inputs[0]
        has_index = name == "__getitem__" and _has_tensor(args[1:2])
        if name in VIEWS and isinstance(args[0], Tensor) and not has_index:
            return self._through_view(function, args, kwargs, len(results))
        if name == "roll" and (rolled := self._rolled(args, kwargs)) is not None:
            return [rolled]
        if name in ("cat", "concat", "concatenate", "stack"):
            return [self._joined(name, args, kwargs, inputs, results[0])]
        if name == "view_as_complex":
            return [self.axes(first)[:-1]]
        if name == "view_as_real":
            return [(*self.axes(first), new_axis(2, is_projected=True))]
        if name == "linear":
            return [(*self.axes(first)[:-1], new_axis(results[0].shape[-1], is_projected=True))]
        equation = equation_of(name, args, kwargs)
        if equation is not None:
            return [self._through_product(equation, weights is None)]
        if name in _CONVOLUTIONS:
            return [self._convolved(first, results[0])]
        if name == "embedding":
            ids = self.axes(inputs[0] if not inputs[0].is_floating_point() else inputs[1])
            return [(*ids, new_axis(results[0].shape[-1], is_projected=True))]
        if name == "__setitem__":
            return [self._written(first)]
        if name in _REDUCTIONS:
            return [self._reduced(args, kwargs, first, x) for x in results]
        if name in ("repeat_interleave", "repeat", "tile", "pad", "index_select"):
            return [self._resized(name, args, kwargs, first, results[0])]
        if weights is not None:
            inputs = [weights, *(x for x in inputs if x is not weights)]
        return [self._elementwise(inputs, x) for x in results]

    def _through_view(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        count: int,
    ) -> Sequence[Axes | None]:
        """Run a view function on a contiguous stand-in without memory, and read its strides."""
        tensor = args[0]
        if not tensor.numel():
            return [None] * count
        dtype = torch.float32 if tensor.is_floating_point() else tensor.dtype
        stand_in = torch.empty(tensor.shape, dtype=dtype, device="meta")
        views = list(tensors_in((function(stand_in, *args[1:], **kwargs),)))
        axes = self.axes(tensor)
        return [_read_strides(axes, view) for view in views]

    def _rolled(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Axes | None:
        """Return the axes of a rolled tensor, whose indices are a table of the former ones."""
        tensor, shifts = args[0], args[1] if len(args) > 1 else kwargs["shifts"]
        dims = args[2] if len(args) > 2 else kwargs.get("dims", ())
        shifts, dims = _as_tuple(shifts), _as_tuple(dims)
        axes = list(self.axes(tensor))
        for shift, dim in zip(shifts, dims, strict=False):
            size, axis = tensor.shape[dim], axes[dim]
            if len(axis) == 1:
                indices = [index_at(axis, (i - shift) % size) for i in range(size)]
                rolled = Origin(size, root=axis[0].origin, table=indices)
                rolled.is_feature = axis[0].origin.is_feature
                axes[dim] = (Factor(rolled, size),)
        return tuple(axes)

    def _joined(
        self,
        name: str,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        inputs: list[Tensor],
        out: Tensor,
    ) -> Axes | None:
        """Return the axes of tensors that were joined; parts of one axis make it up again."""
        dim = int(kwargs.get("dim", kwargs.get("axis", args[1] if len(args) > 1 else 0))) % out.ndim
        inputs = [x for x in inputs if x.numel()] or inputs  # an empty cache is no part
        parts = [self.axes(x) for x in inputs if x.ndim == out.ndim - (name == "stack")]
        if len(parts) != len(inputs):
            return None
        if len(parts) == 1 and name != "stack":
            return parts[0]
        split = _split_factor(parts)
        if name == "stack":
            new = new_axis(out.shape[dim], is_stack=True) if split is None else (split,)
            parts = [(*axes[:dim], (), *axes[dim:]) for axes in parts]
        elif split is not None:
            new = _merged((split, *parts[0][dim]))
        else:
            new = _same_origin([axes[dim] for axes in parts], out.shape[dim])
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
        letters: dict[Any, Axis] = {}
        for labels, term in zip(operands, equation.terms, strict=True):
            for letter, axis in zip(term, labels.axes, strict=True):
                letters[letter] = preferred_axis(letters.get(letter, ()), axis, labels.axes)
        projected = self._projected_letters(equation, operands)
        if projected:
            for letter in projected:
                letters[letter] = new_axis(_size(letters[letter]), is_projected=True)
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
        for side, factors in zip(rows, sides, strict=True):
            for letter in side:
                heads = [has_heads and f.origin.is_feature for f in letters[letter]]
                if all(f.origin.is_feature for f in factors):  # there must be rows to compare
                    heads = [has_heads and f.origin.root in roots for f in letters[letter]]
                    heads = [False] * len(heads) if len(side) == 1 and all(heads) else heads
                compared[letter] = tuple(
                    factor if is_head else as_rows((factor,))[0]
                    for factor, is_head in zip(letters[letter], heads, strict=True)
                )
        letters.update(compared)

    def _convolved(self, tensor: Tensor, out: Tensor) -> Axes | None:
        if tensor.ndim != out.ndim:
            return None
        axes, channel = self.axes(tensor), out.ndim - (3 if out.ndim > 3 else 2)
        channel = 1 if out.ndim > 2 else channel
        kept = [
            axis if _size(axis) == size else new_axis(size)
            for axis, size in zip(axes, out.shape, strict=True)
        ]
        kept[channel] = new_axis(out.shape[channel], is_projected=True)
        return tuple(kept)

    def _written(self, tensor: Tensor) -> Axes:
        """Return the axes of a tensor that was written to: its rows are no repetitions any more."""
        new = _new_axes(tensor)
        return tuple(
            fresh if any(f.origin.is_broadcast for f in axis) else axis
            for fresh, axis in zip(new, self.axes(tensor), strict=True)
        )

    def _reduced(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], tensor: Tensor, out: Tensor
    ) -> Axes | None:
        axes = self.axes(tensor)
        if out.ndim == tensor.ndim:
            return self._elementwise([tensor], out)
        dim = kwargs.get("dim", kwargs.get("axis", args[1] if len(args) > 1 else None))
        if dim is None or isinstance(dim, Tensor | str):
            return None
        removed = {d % tensor.ndim for d in _as_tuple(dim)}
        return tuple(axis for n, axis in enumerate(axes) if n not in removed)

    def _resized(
        self,
        name: str,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        tensor: Tensor,
        out: Tensor,
    ) -> Axes | None:
        """Return the axes of a tensor of which one or more axes were repeated, padded or picked."""
        axes = ((),) * (out.ndim - tensor.ndim) + self.axes(tensor)
        if len(axes) != out.ndim:
            return None
        padding = (args[1] if len(args) > 1 else kwargs.get("pad", ())) if name == "pad" else ()
        resized: list[Axis] = []
        for n, (axis, size) in enumerate(zip(axes, out.shape, strict=True)):
            before, times = _size(axis), size // max(_size(axis), 1)
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
                is_picked = n == int(args[1]) % out.ndim if name == "index_select" else True
                resized.append(new_axis(size) if is_picked else axis)
        return tuple(resized)

    def _elementwise(self, inputs: list[Tensor], out: Tensor) -> Axes | None:
        """Return the axes of a result with the axes of its inputs, broadcast against each other.

        Also for any other function whose first input has as many axes: those of equal size stay.
        """
        known = [x for x in inputs if x in self._labels and x.ndim <= out.ndim] or inputs[:1]
        known.sort(key=lambda x: (not x.is_floating_point(), -_num_equal(x.shape, out.shape)))
        known = [x for x in known if x is inputs[0] or _broadcasts(x.shape, out.shape)]
        found: list[Axis | None] = [None] * out.ndim
        is_feature = [False] * out.ndim
        for tensor in known:
            for n, axis in enumerate(reversed(self.axes(tensor)), start=1):
                if n > out.ndim:
                    break
                is_feature[-n] |= any(f.origin.is_feature for f in axis)
                if found[-n] is None and _size(axis) == out.shape[-n]:
                    found[-n] = axis
        return tuple(
            new_axis(size, is_projected=feature)
            if axis is None or (size > 1 and not axis)
            else axis
            for axis, size, feature in zip(found, out.shape, is_feature, strict=True)
        )


def new_axis(
    size: int,
    *,
    is_projected: bool = False,
    is_stack: bool = False,
    is_broadcast: bool = False,
) -> Axis:
    """Return an axis with a new origin."""
    if size == 1:
        return ()
    origin = Origin(size, is_projected=is_projected, is_stack=is_stack, is_broadcast=is_broadcast)
    return (Factor(origin, size),)


def _new_axes(tensor: Tensor) -> Axes:
    axes = tuple(new_axis(size) for size in tensor.shape)
    if tensor.ndim == 2 and axes[0]:
        axes[0][0].origin.is_flat = True
    return axes


def as_rows(axis: Axis) -> Axis:
    """Return the axis with aliases of its origins that are rows, not features."""
    return _aliased(axis, is_rows=True)


def index_at(axis: Axis, index: int) -> int:
    """Return the index in the root origin of an axis with a single factor."""
    (factor,) = axis
    found = factor.start + index * factor.stride
    table = factor.origin.table
    return found if table is None else table[found % len(table)]


def positions(factors: Sequence[Factor], root: Origin) -> Tensor | None:
    """Return the index in an origin for every combination of factors; None if none is of it.

    Args:
        factors: some of which are parts of the origin; the others do not change the index.
        root: the origin.

    Returns:
        A tensor with an axis per factor.
    """
    parts: dict[int, Tensor] = {}  # by the table of a rolled origin, which its aliases share
    tables: dict[int, list[int] | None] = {}
    for n, factor in enumerate(factors):
        if factor.origin.root is root:
            key = id(factor.origin.table)
            steps = torch.arange(factor.size, device="cpu") * factor.stride + factor.start
            steps = steps.view(*(-1 if m == n else 1 for m in range(len(factors))))
            parts[key], tables[key] = parts.get(key, 0) + steps, factor.origin.table
    if not parts:
        return None
    index = torch.zeros([factor.size for factor in factors], dtype=torch.long, device="cpu")
    for key, part in parts.items():
        table = tables[key]
        index += part if table is None else torch.tensor(table, device="cpu")[part % len(table)]
    return index


def version_of(tensor: Tensor) -> int:
    """Return the number of in-place changes of a tensor."""
    return -1 if tensor.is_inference() else tensor._version


def _size(axis: Axis) -> int:
    size = 1
    for factor in axis:
        size *= factor.size
    return size


def _sizes(axes: Axes) -> list[int]:
    return [_size(axis) for axis in axes]


def preferred_axis(known: Axis, other: Axis, other_axes: Axes) -> Axis:
    """Choose between the labels that an axis has in two operands.

    Repeated axes and those that were split from another axis say less than an axis of its own.
    """
    if not other or not known:
        return other or known
    if any(f.origin.is_broadcast for f in known):
        return known if any(f.origin.is_broadcast for f in other) else other
    rest = {f.origin.root for axis in other_axes if axis is not other for f in axis}
    is_split = any(f.origin.root in rest or f.origin.is_feature for f in other)
    return other if any(f.origin.is_flat for f in known) and not is_split else known


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


def _read_strides(axes: Axes, view: Tensor) -> Axes | None:
    """Return the axes of a view of a contiguous tensor with the given axes, from its strides."""
    factors: list[tuple[Factor, int]] = []  # innermost first, with strides in the tensor
    stride = 1
    for axis in reversed(axes):
        for factor in reversed(axis):
            factors.append((factor, stride))
            stride *= factor.size
    offset = int(view.storage_offset())
    found: list[Axis] = []
    for size, step in zip(view.shape, view.stride(), strict=True):
        if size == 1:
            found.append(())
        elif step == 0:
            found.append(new_axis(size, is_broadcast=True))
        else:
            read = _read_axis(factors, size, step)
            found.append(new_axis(size) if read is None else read)
    found = _with_starts(found, factors, offset)
    return tuple(_merged(axis) for axis in found)


def _read_axis(factors: list[tuple[Factor, int]], size: int, step: int) -> Axis | None:
    """Return the factors, outermost first, that an axis of a size and stride goes over."""
    pieces: list[Factor] = []
    for factor, stride in factors:
        if not stride <= step < stride * factor.size or step % stride:
            continue
        times = step // stride
        if (size - 1) * times < factor.size:
            return (Factor(factor.origin, size, factor.stride * times), *pieces[::-1])
        if factor.size % times or size % (factor.size // times):
            return None
        inner = factor.size // times
        pieces.append(Factor(factor.origin, inner, factor.stride * times))
        size, step = size // inner, stride * factor.size
        if size == 1:
            return tuple(pieces[::-1])
    return None


def _with_starts(axes: list[Axis], factors: list[tuple[Factor, int]], offset: int) -> list[Axis]:
    """Add where a factor, and a slice of it, starts to the outermost part that is left of it."""
    for factor, stride in factors:
        shift = factor.start + offset // stride % factor.size * factor.stride
        if not shift:
            continue
        parts = [
            (n, m)
            for n, axis in enumerate(axes)
            for m, f in enumerate(axis)
            if f.origin is factor.origin
        ]
        if not parts:
            continue
        n, m = max(parts, key=lambda at: axes[at[0]][at[1]].stride)
        moved = axes[n][m]._replace(start=axes[n][m].start + shift)
        axes[n] = (*axes[n][:m], moved, *axes[n][m + 1 :])
    return axes


def _merged(axis: Axis) -> Axis:
    """Join neighbouring factors that are one stretch of their origin."""
    merged: list[Factor] = []
    for factor in axis:
        last = merged[-1] if merged else None
        if (
            last is not None
            and last.origin is factor.origin
            and last.stride == factor.stride * factor.size
        ):
            start = last.start + factor.start
            merged[-1] = Factor(last.origin, last.size * factor.size, factor.stride, start)
        else:
            merged.append(factor)
    return tuple(merged)


def _with_aliases(axes: Axes) -> Axes:
    """Give the later of two axes over the same rows an alias: they are queries and keys."""
    known: set[tuple[Origin, int, int]] = set()
    found: list[Axis] = []
    for axis in axes:
        keys = {(f.origin, f.stride, f.start) for f in axis}
        found.append(_aliased(axis) if keys & known else axis)
        known |= keys
    return tuple(found)


def _aliased(axis: Axis, is_rows: bool = False) -> Axis:
    aliases: dict[Origin, Origin] = {}
    for factor in axis:
        origin = factor.origin
        if origin not in aliases:
            alias = Origin(origin.size, root=origin, table=origin.table)
            alias.is_stack, alias.is_broadcast = origin.is_stack, origin.is_broadcast
            if is_rows:
                alias.is_compared = origin.root.is_attended = True
            else:
                alias.is_feature, alias.is_projected = origin.is_feature, origin.is_projected
                alias.is_compared = origin.is_compared
            aliases[origin] = alias
    return tuple(f._replace(origin=aliases[f.origin]) for f in axis)


def _split_factor(parts: Sequence[Axes]) -> Factor | None:
    """Return the factor that enumerates tensors which are consecutive parts of one tensor."""
    starts = [{f.origin: f.start for axis in axes for f in axis} for axes in parts]
    shapes = [[[f[:3] for f in axis] for axis in axes] for axes in parts]
    if len(parts) < 2 or any(shape != shapes[0] for shape in shapes):
        return None
    moving = [o for o in starts[0] if len({s[o] for s in starts}) > 1]
    if len(moving) != 1:
        return None
    origin = moving[0]
    values = [s[origin] for s in starts]
    steps = {b - a for a, b in pairwise(values)}
    if len(steps) != 1 or (step := steps.pop()) <= 0:
        return None
    return Factor(origin, len(parts), step, values[0])


def _same_origin(axes: Sequence[Axis], size: int) -> Axis:
    """Return an axis of joined parts: of one origin again, or a new one."""
    origins = {f.origin for axis in axes for f in axis}
    is_feature = any(origin.is_feature for origin in origins)
    if len(origins) == 1 and all(axes):
        return (Factor(origins.pop(), size),)
    joined = new_axis(size, is_projected=is_feature)
    roots = {origin.root for origin in origins}
    parts = frozenset(roots).union(*(root.parts for root in roots))
    for factor in joined:  # a cache that is joined with each token would keep all of them alive
        factor.origin.parts = parts if len(parts) <= _MAX_PARTS else frozenset()
    return joined
