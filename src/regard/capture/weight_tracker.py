"""Attention written out in the model: normalised scores, followed until they multiply values.

A softmax, or another function that normalises a product of queries and keys, starts a track. The
weights are followed through layouts, masks, dropout, mixing of heads, gates and renormalisation to
the product that sums them over the keys. Every product is read as an einsum equation
(`equations.py`), in which the labels of the axes (`axes.py`) give each axis its role
(`arrangement.py`).
"""

from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Literal

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from regard.capture.arrangement import (
    CallAxes,
    arrange_values,
    call_axes,
    values_layout,
    weights_layout,
)
from regard.capture.axes import AxisTracker
from regard.capture.axis_labels import Axes, Axis, Origin
from regard.capture.call_site import CallSite
from regard.capture.calls import MaterializedWeights
from regard.capture.equations import Equation, Letters, equation_of
from regard.capture.lineage import Lineage, tensors_in

MASKED_BELOW = -9e3  # scores below are masked: some models add no more than -10000

_SOFTMAX = {"softmax", "special_softmax", "gumbel_softmax"}
_NORMALISERS = {"exp", "sigmoid", "relu", "clamp", "clamp_min", "square", "softplus", "elu"}
_NORMALISERS |= {"hardsigmoid", "relu6", "threshold", "special_expit", "expm1"}
_DROPOUT = {"dropout", "alpha_dropout", "native_dropout", "feature_dropout"}
_MASKING = {"masked_fill", "where", "nan_to_num"}
# functions that leave weights what they are
_UNCHANGED = {"contiguous", "clone", "detach", "to", "type", "type_as", "float", "half", "alias"}
_UNCHANGED |= {"bfloat16", "double", "cpu", "cuda", "requires_grad_", *_DROPOUT, *_MASKING}
_LAYOUT = {
    *("view", "reshape", "view_as", "reshape_as", "transpose", "permute", "movedim", "moveaxis"),
    *("swapaxes", "swapdims", "t", "unsqueeze", "squeeze", "flatten", "unflatten", "expand"),
    *("expand_as", "broadcast_to", "chunk", "split", "unbind", "narrow", "select", "getitem"),
    *("tensor_split", "T", "mT", "H", "mH", "slice", "repeat_interleave", "repeat", "_unsafe_view"),
    *("index_select", "cat", "stack", "concat"),
}
_SUMS = {"sum", "scatter_add", "index_add", "scatter_reduce", "cumsum", "logsumexp"}
_NOT_WEIGHTS = {"argmax", "argmin", "max", "min", "amax", "amin", "topk", "sort", "argsort", "log"}
_NOT_WEIGHTS |= {"eq", "ne", "lt", "gt", "le", "ge", "any", "all", "multinomial", "isnan", "isinf"}

appended_keys: ContextVar[int] = ContextVar("appended_keys", default=0)
"""Number of keys that nn.MultiheadAttention appends: `bias_k` and `add_zero_attn`."""


@dataclass(slots=True)
class Root:
    """A softmax that was seen, and what became of it."""

    site: CallSite | None
    is_feature: bool  # over features, classes or experts rather than positions
    is_softmax: bool
    origins: frozenset[Origin]  # of the axes of its result
    state: str = "open"  # or "attention", "not attention"


@dataclass(frozen=True, slots=True)
class TrackedWeights:
    """Normalised scores on their way to the values."""

    normaliser: str
    roots: frozenset[int]
    normalised: frozenset[Origin]  # of the axis that sums to 1
    same_rows: bool | None  # whether queries and keys come from the same rows; None if unknown
    from_cache: bool = False  # whether keys came from a KV cache
    has_mask: bool = False
    is_product: bool = False  # whether the scores are a product of queries and keys
    applied: tuple[str, ...] = ()
    before_dropout: Tensor | None = None

    def with_applied(self, name: str) -> "TrackedWeights":
        """Add the name of a function that changed the weights."""
        return replace(self, applied=tuple(dict.fromkeys((*self.applied, name))))


@dataclass(frozen=True, slots=True)
class PendingProduct:
    """Weights times values, element by element, that are yet to be summed over the keys."""

    tracked: TrackedWeights
    weights: Tensor
    values: Tensor
    weights_term: Letters
    values_term: Letters


@dataclass(frozen=True, slots=True)
class MatchedAttention:
    """Weights that have multiplied values."""

    call: MaterializedWeights
    axes: CallAxes
    same_rows: bool | None
    from_cache: bool
    operand: Tensor  # of the product, in the model's layout and autograd graph
    to_weights: Callable[[Tensor], Tensor]  # brings the operand's gradient to that of the weights
    is_sum: bool  # of a product that was computed element by element
    roots: frozenset[int]  # the softmaxes that the weights come from
    part: Literal["batch", "head"] | None  # of the softmax, that the weights are
    position: int  # of the operand among the tensors of the function's arguments


class WeightTracker:
    """Follows normalised scores to the product with values that makes them attention."""

    def __init__(
        self, lineage: Lineage, axes: AxisTracker, find_site: Callable[[], CallSite | None]
    ) -> None:
        self._lineage, self._axes, self._find_site = lineage, axes, find_site
        self._tracked: Any = WeakTensorKeyDictionary()
        self._pending: Any = WeakTensorKeyDictionary()
        self._sums: Any = WeakTensorKeyDictionary()  # sums of weights: the roots of these
        self._exponentials: Any = WeakTensorKeyDictionary()  # of scores that are no product
        self._log_weights: Any = WeakTensorKeyDictionary()  # logarithms: normaliser and its axis
        self._log_sums: Any = WeakTensorKeyDictionary()
        self._roots: dict[int, Root] = {}
        self._ids = count()

    def find(self, args: tuple[Any, ...]) -> Tensor | None:
        """Return the first of the arguments that are weights."""
        return next((x for x in tensors_in(args) if x in self._tracked or x in self._pending), None)

    def unresolved(self) -> Iterator[Root]:
        """Yield the softmaxes that did not become attention."""
        yield from (x for x in self._roots.values() if x.is_softmax and x.state != "attention")

    def before_dropout(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Copy tracked weights that dropout is about to overwrite in place."""
        in_place = name == "dropout_" or kwargs.get("inplace") or (len(args) > 3 and args[3])
        if in_place and args and (tracked := self._tracked.get(args[0])) is not None:
            kept = _value(args[0], tracked).clone()
            self._tracked[args[0]] = replace(tracked, before_dropout=kept)

    def update(
        self,
        function: Callable[..., Any],
        name: str,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        out: Any,
    ) -> MatchedAttention | None:
        """Track a function's result; return the attention that it completes, if it does."""
        name = _plain_name(name)
        inputs = list(tensors_in(args))
        if name in _SOFTMAX and isinstance(out, Tensor):
            self._start(name if name == "gumbel_softmax" else "softmax", args, kwargs, out)
            return None
        if name == "sum" and inputs and (pending := self._pending.get(inputs[0])) is not None:
            return self._match_sum(pending, inputs[0], args, kwargs)
        operands = [(n, x) for n, x in enumerate(inputs) if x in self._tracked]
        if not operands:
            self._start_other(name, args, kwargs, inputs, out)
            return None
        position, weights = operands[0]
        equation = equation_of(name, args, kwargs)
        if equation is not None:
            return self._multiplied(function, equation, args, kwargs, out, operands)
        if isinstance(out, Tensor) and name == "mul" and self._pend(inputs, position, out):
            return None
        self._propagate(function, name, args, kwargs, out, position, weights)
        return None

    def _start(
        self, normaliser: str, args: tuple[Any, ...], kwargs: dict[str, Any], out: Tensor
    ) -> None:
        scores = next(tensors_in((*args, *kwargs.values())))
        dim = kwargs.get("dim", args[1] if len(args) > 1 else -1)
        dim = dim if isinstance(dim, int) else -1
        axis = self._axes.axes(out)[dim] if out.ndim else ()
        self._add(normaliser, scores, out, axis, is_softmax=True)

    def _add(
        self, normaliser: str, scores: Tensor, out: Tensor, axis: Axis, *, is_softmax: bool
    ) -> None:
        number, lineage = next(self._ids), self._lineage
        is_feature = bool(axis) and all(f.origin.is_feature or f.origin.is_stack for f in axis)
        is_feature = is_feature or self._axes.is_constant(out)
        site = self._find_site() if is_softmax else None
        origins = _origins(self._axes.axes(out))
        self._roots[number] = Root(site, is_feature, is_softmax, origins)
        self._tracked[out] = TrackedWeights(
            normaliser,
            frozenset([number]),
            frozenset(f.origin for f in axis),
            lineage.same_rows_in_scores(scores),
            lineage.from_cache(scores),
            has_mask=bool((scores.detach() < MASKED_BELOW).any()),
            is_product=lineage.is_product(scores),
        )

    def _start_other(
        self,
        name: str,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        inputs: list[Tensor],
        out: Any,
    ) -> None:
        """Start a track at another normaliser than softmax, and follow sums of weights."""
        if not inputs or not isinstance(out, Tensor):
            return
        scores = inputs[0]
        dim = kwargs.get("dim", args[1] if len(args) > 1 else -1)
        if name == "log_softmax":
            self._log_weights[out] = "softmax", dim
        elif name == "logsumexp":
            self._log_sums[out] = dim
        elif name == "sub" and len(inputs) > 1 and inputs[1] in self._log_sums:
            self._log_weights[out] = "exp / sum", self._log_sums[inputs[1]]
        elif name == "exp" and scores in self._log_weights:
            normaliser, dim = self._log_weights[scores]
            self._start(normaliser, (scores, dim), {}, out)
        elif name == "div" and scores in self._exponentials and self._is_sum_of(inputs):
            self._start("exp / sum", (scores, self._divided_axis(inputs)), {}, out)
        elif name == "exp" and not self._lineage.is_product(scores):
            self._exponentials[out] = True
        elif name in _SUMS and any(x in self._exponentials for x in inputs):
            self._sums[out] = frozenset()
        elif name in _NORMALISERS and self._lineage.is_product(scores) and out.ndim > 1:
            axis = self._axes.axes(out)[-1]
            if not (axis and all(f.origin.is_feature for f in axis)):
                self._add(name, scores, out, axis, is_softmax=False)
        else:
            sums = [self._sums[x] for x in inputs if x in self._sums]
            if sums and out not in self._sums:
                self._sums[out] = frozenset().union(*sums)

    def _is_sum_of(self, inputs: list[Tensor]) -> bool:
        return len(inputs) == 2 and inputs[1] in self._sums

    def _divided_axis(self, inputs: list[Tensor]) -> int:
        """Return the axis over which a divisor is constant; the first if it varies over all."""
        exponential, total = inputs
        sizes = (1,) * (exponential.ndim - total.ndim) + tuple(total.shape)
        pairs = zip(sizes, exponential.shape, strict=True)
        return next((n for n, (a, b) in enumerate(pairs) if a == 1 and b > 1), 0)

    def _multiplied(
        self,
        function: Callable[..., Any],
        equation: Equation,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        out: Any,
        operands: list[tuple[int, Tensor]],
    ) -> MatchedAttention | None:
        """Read a product: with values it is attention, otherwise its result may be weights."""
        position, weights = operands[0]
        own = next((n for n, x in enumerate(equation.operands) if x is weights), None)
        if own is None:  # the weights were added to a product
            return None
        tracked: TrackedWeights = self._tracked[weights]
        term, axes = equation.terms[own], self._axes.axes(weights)
        others = [n for n in range(len(equation.operands)) if n != own]
        summed = {x for x in term if x not in equation.result}
        by_letter = dict(zip(term, axes, strict=True))
        stays = _origins(by_letter[x] for x in term if x not in summed) >= tracked.normalised
        over = [f for x in summed for f in by_letter[x]]
        mixes = stays and bool(over) and all(f.origin.is_feature for f in over)
        tracked_others = [n for n in others if equation.operands[n] in self._tracked]
        if tracked_others and self._is_product_of_weights(equation, tracked_others[0]):
            mixes = True
        if mixes:
            self._propagate(function, "matmul", args, kwargs, out, position, weights)
            return None
        with_keys = [n for n in others if summed & set(equation.terms[n])]
        if not with_keys:
            return None
        values = next(
            (n for n in with_keys if not self._axes.is_constant(equation.operands[n])),
            with_keys[0],
        )
        return self._match(
            tracked,
            weights,
            _value(weights, tracked),
            term,
            equation.operands[values],
            equation.terms[values],
            set(equation.result),
            position,
        )

    def _is_product_of_weights(self, equation: Equation, other: int) -> bool:
        tensor = equation.operands[other]
        axes = dict(zip(equation.terms[other], self._axes.axes(tensor), strict=True))
        left = _origins(axes[x] for x in equation.terms[other] if x in equation.result)
        normalised = self._tracked[tensor].normalised
        return bool(normalised) and left >= normalised

    def _match(
        self,
        tracked: TrackedWeights,
        operand: Tensor,
        weights: Tensor,
        term: Letters,
        values: Tensor,
        values_term: Letters,
        result: set[Any],
        position: int,
        to_operand: Callable[[Tensor], Tensor] | None = None,
    ) -> MatchedAttention | None:
        """Return the attention that a product completes; None if it is not over positions."""
        labelled = operand if to_operand is None else weights
        axes = self._with_heads_of(values, values_term, self._axes.axes(labelled), term)
        by_letter = dict(zip(term, axes, strict=True))
        keys = {x for x in term if x in values_term and x not in result}
        heads = {x for x in keys if by_letter[x] and all(f.origin.is_feature for f in by_letter[x])}
        keys = keys - heads if keys > heads else keys  # heads are summed by an output projection
        values_axes = dict(zip(values_term, self._axes.axes(values), strict=True))
        weight_keys = [f for x in term if x in keys for f in by_letter[x]]
        value_keys = [f for x in values_term if x in keys for f in values_axes[x]]
        is_constant = self._axes.is_constant(values) and not self._axes.is_constant(operand)
        if not keys or is_constant or self._is_mixture(tracked, weight_keys, value_keys):
            self._close(tracked, "not attention")
            return None
        if not tracked.is_product and self._weighs_features(term, by_letter, set(values_term)):
            self._close(tracked, "not attention")
            return None
        width = [f for x in values_term if x not in term for f in values_axes[x]]
        known = any(f.origin.is_projected for f in width)
        layout = weights_layout(term, axes, keys, set(values_term), known)
        of_values = values_layout(values_term, self._axes.axes(values), values, layout)
        self._close(tracked, "attention")
        found = None if of_values is None else arrange_values(values.detach(), of_values, layout)
        call = MaterializedWeights(
            layout.arrange(weights),
            found,
            has_mask=tracked.has_mask,
            extra_keys=appended_keys.get(),
        )
        arrange = layout.arrange if to_operand is None else lambda x: layout.arrange(to_operand(x))
        name = tracked.normaliser
        if tracked.normalised and not tracked.normalised & {f.origin for f in weight_keys}:
            name += " over queries"
        return MatchedAttention(
            call,
            call_axes(layout, of_values, name, tracked.applied),
            tracked.same_rows,
            tracked.from_cache,
            operand,
            arrange,
            to_operand is not None,
            tracked.roots,
            self._part(tracked, axes),
            position,
        )

    def _with_heads_of(
        self, values: Tensor, values_term: Letters, axes: Axes, term: Letters
    ) -> Axes:
        """Return the axes of weights, with the heads of the values where theirs are unknown.

        They are if a function that no mode sees, such as a scripted one, computed the scores.
        """
        theirs = dict(zip(values_term, self._axes.axes(values), strict=True))
        known = {f.origin.root for axis in theirs.values() for f in axis}
        found: list[Axis] = []
        for letter, axis in zip(term, axes, strict=True):
            other = theirs.get(letter, ())
            is_unknown = bool(axis) and not any(f.origin.root in known for f in axis)
            has_heads = any(f.origin.is_feature for f in other)
            is_head = any(f.origin.is_feature or f.origin.is_compared for f in axis)
            found.append(other if is_unknown and has_heads and not is_head else axis)
        return tuple(found)

    def _part(self, tracked: TrackedWeights, axes: Axes) -> Literal["batch", "head"] | None:
        """Return which axis of the softmax an index was selected of, if one was."""
        if len(tracked.roots) != 1 or tracked.applied:
            return None
        (number,) = tracked.roots
        missing = self._roots[number].origins - _origins(axes)
        if not missing or not _origins(axes) <= self._roots[number].origins:
            return None
        return "head" if all(origin.is_feature for origin in missing) else "batch"

    def _is_mixture(
        self, tracked: TrackedWeights, weight_keys: list[Any], value_keys: list[Any]
    ) -> bool:
        """Return whether the sum is over experts, features or layers rather than positions."""
        is_compared = bool(weight_keys) and all(f.origin.is_compared for f in weight_keys)
        is_made = [f.origin.is_feature or f.origin.is_broadcast for f in value_keys]
        if value_keys and all(is_made) and not is_compared:
            return True
        if any(f.origin.is_stack for f in value_keys) and not tracked.is_product:
            roots = {f.origin.root for f in weight_keys} & {f.origin.root for f in value_keys}
            if not roots:
                return True
        own = {f.origin for f in weight_keys}
        elsewhere = tracked.normalised and not tracked.normalised & own
        return bool(elsewhere) and all(origin.is_feature for origin in tracked.normalised)

    def _weighs_features(self, term: Letters, by_letter: dict[Any, Axis], shared: set[Any]) -> bool:
        """Return whether each feature has weights of its own, as in linear attention."""
        heads = {f.origin.root for x in term if x in shared for f in by_letter[x]}
        own = [f for x in term if x not in shared for f in by_letter[x] if f.origin.is_feature]
        return any(f.origin.root in heads for f in own)

    def _close(self, tracked: TrackedWeights, state: str) -> None:
        for number in tracked.roots:
            if self._roots[number].state != "attention":
                self._roots[number].state = state

    def _pend(self, inputs: list[Tensor], position: int, out: Tensor) -> bool:
        """Track weights times values that are summed later; False if it is no such product."""
        others = [x for n, x in enumerate(inputs) if n != position]
        weights = inputs[position]
        if len(others) != 1 or not isinstance(others[0], Tensor):
            return False
        values = others[0]
        weights_term = self._spanned(weights, out)
        values_term = self._spanned(values, out)
        if len(weights_term) == out.ndim or not set(values_term) - set(weights_term):
            return False
        tracked: TrackedWeights = self._tracked[weights]
        value = _value(weights, tracked)
        padded = value.detach()[(None,) * (out.ndim - value.ndim)]
        axes = ((),) * (out.ndim - value.ndim) + self._axes.axes(weights)
        for n in reversed(range(out.ndim)):
            padded = padded if n in weights_term else padded.select(n, 0)
        self._axes.relabel(padded, tuple(axes[n] for n in weights_term if isinstance(n, int)))
        padded_values = values[(None,) * (out.ndim - values.ndim)]
        value_axes = ((),) * (out.ndim - values.ndim) + self._axes.axes(values)
        kept = padded_values.detach()
        for n in reversed(range(out.ndim)):
            kept = kept if n in values_term else kept.select(n, 0)
        self._axes.relabel(kept, tuple(value_axes[n] for n in values_term if isinstance(n, int)))
        if self._axes.is_constant(values):
            self._axes.mark_constant(kept)
        self._pending[out] = PendingProduct(tracked, padded, kept, weights_term, values_term)
        return True

    def _spanned(self, tensor: Tensor, out: Tensor) -> Letters:
        """Return the axes of a broadcast result that an operand has, counted from the first."""
        first = out.ndim - tensor.ndim
        axes = self._axes.axes(tensor)
        return tuple(
            first + n
            for n, (size, axis) in enumerate(zip(tensor.shape, axes, strict=True))
            if size == out.shape[first + n] and not any(f.origin.is_broadcast for f in axis)
        )

    def _match_sum(
        self,
        pending: PendingProduct,
        product: Tensor,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> MatchedAttention | None:
        """Read (weights * values).sum(keys)."""
        dim = kwargs.get("dim", args[1] if len(args) > 1 else None)
        if dim is None:
            return None
        dims = {n % product.ndim for n in ([dim] if isinstance(dim, int) else dim)}
        result = set(range(product.ndim)) - dims
        if not dims & set(pending.weights_term):
            return None

        def to_weights(gradient: Tensor) -> Tensor:
            expanded = _expand_to(pending.values, pending.values_term, gradient.ndim)
            per_weight = gradient * expanded
            extra = [n for n in range(gradient.ndim) if n not in pending.weights_term]
            return per_weight.sum(extra) if extra else per_weight

        return self._match(
            pending.tracked,
            product,
            pending.weights,
            pending.weights_term,
            pending.values,
            pending.values_term,
            result,
            0,
            to_weights,
        )

    def _propagate(
        self,
        function: Callable[..., Any],
        name: str,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        out: Any,
        position: int,
        weights: Tensor,
    ) -> None:
        """Track what a function made of weights, as long as their normalised axis is there."""
        tracked: TrackedWeights = self._tracked[weights]
        if position and name in (*(_UNCHANGED - _MASKING), *_LAYOUT) and name not in _JOINS:
            return  # the weights only lent their dtype or shape to another tensor
        if name in _NOT_WEIGHTS:
            return
        inputs = list(tensors_in(args))
        roots = frozenset().union(*(self._tracked[x].roots for x in inputs if x in self._tracked))
        results = list(tensors_in((out,)))
        if name in _SUMS:
            for result in results:
                self._sums[result] = roots
        if not self._keeps(tracked, weights, results):
            return
        shadows = self._run_before_dropout(function, name, args, kwargs, len(results))
        tracked = self._named(replace(tracked, roots=roots), name, inputs, position)
        for n, result in enumerate(results):
            if result.is_floating_point():
                shadow = None if shadows is None else shadows[n]
                self._tracked[result] = replace(tracked, before_dropout=shadow)

    def _keeps(self, tracked: TrackedWeights, weights: Tensor, results: list[Tensor]) -> bool:
        if not tracked.normalised:
            return all(x.shape == weights.shape or x.numel() == weights.numel() for x in results)
        return all(_origins(self._axes.axes(x)) >= tracked.normalised for x in results)

    def _run_before_dropout(
        self,
        function: Callable[..., Any],
        name: str,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        num_results: int,
    ) -> list[Tensor] | None:
        """Return what the function makes of the weights before dropout, if there was any."""
        if name in _DROPOUT:
            weights = next(x for x in tensors_in(args) if x in self._tracked)
            return [_value(weights, self._tracked[weights])] * num_results
        tracked = [self._tracked.get(x) for x in tensors_in(args)]
        if all(x is None or x.before_dropout is None for x in tracked):
            return None

        def replaced(value: Any) -> Any:
            if isinstance(value, Tensor):
                known = self._tracked.get(value)
                return value.detach() if known is None else _value(value, known).clone()
            return type(value)(map(replaced, value)) if type(value) in (list, tuple) else value

        return list(tensors_in((function(*map(replaced, args), **kwargs),)))

    def _named(
        self, tracked: TrackedWeights, name: str, inputs: list[Tensor], position: int
    ) -> TrackedWeights:
        """Add what a function did to the weights: a mask, a normaliser, or its name."""
        others = [x for n, x in enumerate(inputs) if n != position]
        if name in _MASKING or (name == "mul" and any(map(_is_mask, others))):
            return replace(tracked, has_mask=True)
        if name in _UNCHANGED or name in _LAYOUT:
            return tracked
        if name == "mul":
            tracked = replace(tracked, has_mask=True)
        if name == "div" and position == 0 and others and others[0] in self._sums:
            return self._renormalised(tracked, inputs[0], others[0])
        return tracked.with_applied(name)

    def _renormalised(
        self, tracked: TrackedWeights, weights: Tensor, sums: Tensor
    ) -> TrackedWeights:
        axes = self._axes.axes(weights)
        sizes = (1,) * (weights.ndim - sums.ndim) + tuple(sums.shape)
        summed = [axis for axis, size in zip(axes, sizes, strict=True) if size == 1]
        normalised = _origins(summed) or tracked.normalised
        tracked = replace(tracked, normalised=normalised)
        if tracked.normaliser in _NORMALISERS and not tracked.applied:
            return replace(tracked, normaliser=f"{tracked.normaliser} / sum")
        return tracked.with_applied("renormalise")


_JOINS = {"cat", "stack", "concat"}


def _plain_name(name: str) -> str:
    """Return a function's name without the marks of operators and in-place variants."""
    special = {"__itruediv__": "div", "__truediv__": "div", "true_divide": "div", "divide": "div"}
    special |= {"__rtruediv__": "rdiv", "multiply": "mul", "_softmax": "softmax"}
    if name in special:
        return special[name]
    if name.startswith("__") and name.endswith("__"):
        plain = name.strip("_")
        for operator in ("mul", "add", "sub", "matmul", "pow"):
            if plain in (f"r{operator}", f"i{operator}"):
                return operator
        return plain
    return name.rstrip("_") if not name.startswith("_") else name


def _origins(axes: Any) -> frozenset[Origin]:
    return frozenset(f.origin for axis in axes for f in axis)


def _value(weights: Tensor, tracked: TrackedWeights) -> Tensor:
    """Return the weights before dropout."""
    kept = tracked.before_dropout
    return weights.detach() if kept is None else kept


def _is_mask(tensor: Tensor) -> bool:
    """Return whether a factor is a mask of zeros and ones."""
    values = tensor.detach()
    return values.dtype == torch.bool or bool(((values == 0) | (values == 1)).all())


def _expand_to(tensor: Tensor, term: Letters, ndim: int) -> Tensor:
    """Insert axes of size 1 so that the axes of a tensor are those of a term."""
    shape = [1] * ndim
    for letter, size in zip(term, tensor.shape, strict=True):
        assert isinstance(letter, int)
        shape[letter] = size
    return tensor.reshape(shape)
