"""Attention written out in the model: normalised scores, followed until they multiply values.

A softmax, or another function that normalises a product of queries and keys, starts a track. The
weights are followed through layouts, masks, dropout, mixing of heads, gates and renormalisation to
the product that sums them over the keys. Every product is read as an einsum equation
(`equations.py`), in which the labels of the axes (`axes.py`) give each axis its role
(`arrangement.py`).
"""

from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from dataclasses import replace
from functools import cache
from itertools import count
from typing import Any

import torch
from torch import Tensor

from regard.capture.axes import Axis, AxisTracker, Origin, origins_of
from regard.capture.call_site import CallSite
from regard.capture.functions import (
    SCATTER_SUMS,
    Equation,
    FunctionCall,
    Letters,
    TensorMap,
    scatter_sum,
    tensors_in,
)
from regard.capture.lineage import Lineage, is_convolution, keeps_channels
from regard.capture.weights.edges import EdgeMatcher
from regard.capture.weights.matching import ProductMatcher
from regard.capture.weights.pools import FeaturePools
from regard.capture.weights.score_products import ScoreTracker
from regard.capture.weights.tracked import (
    SCATTERED,
    MatchedAttention,
    PendingProduct,
    Root,
    TrackedWeights,
    WeightProduct,
    WeightSum,
)

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
_SUMS = {"sum", "cumsum", "logsumexp", *SCATTER_SUMS}
# functions that keep the order of elements
_RESHAPES = {"view", "reshape", "view_as", "reshape_as", "flatten", "unflatten", "_unsafe_view"}
_RESHAPES |= {"unsqueeze", "squeeze", "contiguous"}
_MAY_START = {"log_softmax", "logsumexp", "sub", "exp", "div", *_SUMS, *_NORMALISERS}
_NOT_WEIGHTS = {"argmax", "argmin", "max", "min", "amax", "amin", "topk", "sort", "argsort", "log"}
_NOT_WEIGHTS |= {"eq", "ne", "lt", "gt", "le", "ge", "any", "all", "multinomial", "isnan", "isinf"}

_JOINS = {"cat", "stack", "concat"}
_PLAIN_NAMES = {
    **dict.fromkeys(("__itruediv__", "__truediv__", "true_divide", "divide"), "div"),
    "__rtruediv__": "rdiv",
    "__rmatmul__": "__rmatmul__",
    "multiply": "mul",
    "_segment_reduce": "segment_reduce",
    "_softmax": "softmax",
}

appended_keys: ContextVar[int] = ContextVar("appended_keys", default=0)
"""Number of keys that nn.MultiheadAttention appends: `bias_k` and `add_zero_attn`."""


class WeightTracker:
    """Follows normalised scores to the product with values that makes them attention."""

    def __init__(
        self,
        lineage: Lineage,
        axes: AxisTracker,
        find_site: Callable[[], CallSite | None],
        scores: ScoreTracker | None = None,
    ) -> None:
        self._scores = scores  # followed if queries and keys are to be kept
        self._lineage, self._axes, self._find_site = lineage, axes, find_site
        self._matcher, self._edge_matcher = ProductMatcher(axes), EdgeMatcher(axes)
        self._tracked = TensorMap[TrackedWeights]()
        self._pending = TensorMap[PendingProduct]()
        self._reshaped = TensorMap[PendingProduct]()  # pending products in another shape
        self._sums = TensorMap[WeightSum]()
        self._exponentials = TensorMap[bool]()  # of scores that are no product
        self._log_weights = TensorMap[tuple[str, Any]]()  # logarithms: normaliser and its axis
        self._log_sums = TensorMap[Any]()
        self._roots: dict[int, Root] = {}
        self._pools = FeaturePools(axes)
        self._retracted: list[frozenset[int]] = []
        self._ids = count()

    def find(self, args: tuple[Any, ...]) -> Tensor | None:
        """Return the first of the arguments that are weights."""
        if not self._tracked and not self._pending:
            return None
        return next((x for x in tensors_in(args) if x in self._tracked or x in self._pending), None)

    def unresolved(self) -> Iterator[Root]:
        """Yield the softmaxes that did not become attention."""
        yield from (x for x in self._roots.values() if x.is_softmax and x.state != "attention")

    def take_retracted(self) -> list[frozenset[int]]:
        """Return, once, the roots of matches that turned out to be no attention."""
        retracted, self._retracted = self._retracted, []
        return retracted

    def before_dropout(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Copy tracked weights that dropout is about to overwrite in place."""
        in_place = name == "dropout_" or kwargs.get("inplace") or (len(args) > 3 and args[3])
        if in_place and args and (tracked := self._tracked.get(args[0])) is not None:
            kept = _value(args[0], tracked).clone()
            self._tracked[args[0]] = replace(tracked, before_dropout=kept)

    def update(self, call: FunctionCall) -> MatchedAttention | None:
        """Track a function's result; return the attention that it completes, if it does."""
        call = call.renamed(_plain_name(call.name))
        if self._scores is not None:
            self._scores.update(call)
        name, inputs, out = call.name, call.inputs, call.out
        if name in _SOFTMAX and isinstance(out, Tensor):
            normaliser = name if name == "gumbel_softmax" else "softmax"
            self._start(normaliser, inputs[0], call.argument("dim", 1, -1), out)
            return None
        if name == "sum" and inputs and (pending := self._pending.get(inputs[0])) is not None:
            return self._match_sum(pending, call)
        if (match := self._match_scattered(call)) is not None:
            return match
        position = self._position(inputs) if self._tracked else None
        if position is None:
            for roots in self._pools.multiplied(call):
                self._retracted.append(roots)
                for number in roots:
                    self._roots[number].state = "not attention"
            if name in _RESHAPES and inputs and inputs[0] in self._pending:
                self._reshaped[out] = self._pending[inputs[0]]
            if name in _MAY_START or self._sums:
                self._start_other(call)
            return None
        if (equation := call.equation()) is not None:
            return self._multiplied(call, equation, position)
        if isinstance(out, Tensor) and name == "mul" and self._pend(inputs, position, out):
            return None
        self._propagate(call, position)
        return None

    def _position(self, inputs: list[Tensor]) -> int | None:
        return next((n for n, x in enumerate(inputs) if x in self._tracked), None)

    def _start(self, normaliser: str, scores: Tensor, dim: Any, out: Tensor) -> None:
        axis = self._axes.axes(out)[dim if isinstance(dim, int) else -1] if out.ndim else ()
        self._add(normaliser, scores, out, axis, is_softmax=True)

    def _add(
        self, normaliser: str, scores: Tensor, out: Tensor, axis: Axis, *, is_softmax: bool
    ) -> None:
        number, lineage = next(self._ids), self._lineage
        is_feature = bool(axis) and all(f.origin.is_feature or f.origin.is_stack for f in axis)
        is_feature = is_feature or self._axes.is_constant(out)
        site = self._find_site() if is_softmax or normaliser == "exp" else None
        origins = origins_of(self._axes.axes(out))
        self._roots[number] = Root(site, is_feature, is_softmax, origins)
        self._tracked[out] = TrackedWeights(
            normaliser,
            frozenset([number]),
            frozenset(f.origin for f in axis),
            lineage.same_rows_in_scores(scores),
            lineage.from_cache(scores),
            has_mask=bool((scores.detach() < MASKED_BELOW).any()),
            is_product=lineage.is_product(scores),
            scores=None if self._scores is None else self._scores.product(scores),
        )

    def _start_other(self, call: FunctionCall) -> None:
        """Start a track at another normaliser than softmax, and follow sums of weights."""
        name, inputs, out = call.name, call.inputs, call.out
        if not inputs or not isinstance(out, Tensor):
            return
        scores, dim = inputs[0], call.argument("dim", 1, -1)
        if name == "log_softmax":
            self._log_weights[out] = "softmax", dim
        elif name == "logsumexp":
            self._log_sums[out] = dim
        elif name == "sub" and len(inputs) > 1 and inputs[1] in self._log_sums:
            self._log_weights[out] = "exp / sum", self._log_sums[inputs[1]]
        elif name == "exp" and scores in self._log_weights:
            normaliser, dim = self._log_weights[scores]
            self._start(normaliser, scores, dim, out)
        elif name == "div" and scores in self._exponentials and self._is_sum_of(inputs):
            is_scattered = bool(self._sums[inputs[1]].scattered)
            normaliser = SCATTERED if is_scattered else "exp / sum"
            self._start(normaliser, scores, self._divided_axis(inputs), out)
        elif name == "exp" and not self._may_be_scores(scores):
            self._exponentials[out] = True
        elif name in _SUMS and any(x in self._exponentials for x in inputs):
            self._sums[out] = WeightSum(scattered=self._scattered(call))
        elif name in _NORMALISERS and self._may_be_scores(scores):
            axis = self._axes.axes(out)[-1]
            if not (axis and all(f.origin.is_feature for f in axis)):
                self._add(name, scores, out, axis, is_softmax=False)
            elif name == "exp":  # heads or features are last: which axis is divided by?
                self._exponentials[out] = True
        else:
            sums = [self._sums[x] for x in inputs if x in self._sums]
            if sums and out not in self._sums:
                roots, scattered = zip(*sums, strict=True)
                self._sums[out] = WeightSum(
                    frozenset().union(*roots), frozenset().union(*scattered)
                )

    def _may_be_scores(self, tensor: Tensor) -> bool:
        """Return whether a tensor is computed from a product, and still has both of its sides."""
        sides = {f.origin.side for axis in self._axes.axes(tensor) for f in axis} - {0}
        return self._lineage.is_product(tensor) and tensor.ndim > 1 and len(sides) != 1

    def _scattered(self, call: FunctionCall) -> frozenset[Origin]:
        """Return the origins of the axis that a call sums by index, if it does."""
        summed = scatter_sum(call)
        if summed is None:
            return frozenset()
        return origins_of([self._axes.axes(summed.source)[summed.dim]])

    def _match_scattered(self, call: FunctionCall) -> MatchedAttention | None:
        """Read index_add(weights * values): attention over edges."""
        if call.name not in SCATTER_SUMS or (summed := scatter_sum(call)) is None:
            return None
        pending = self._pending.get(summed.source) or self._reshaped.get(summed.source)
        if pending is None or (match := self._edge_matcher.match(pending, summed)) is None:
            return None
        self._settle(match.roots, "attention")
        return replace(match, site=self._roots[min(match.roots)].site)

    def _settle(self, roots: Iterable[int], state: str) -> None:
        for number in roots:
            if self._roots[number].state != "attention":
                self._roots[number].state = state

    def _is_sum_of(self, inputs: list[Tensor]) -> bool:
        return len(inputs) == 2 and inputs[1] in self._sums

    def _divided_axis(self, inputs: list[Tensor]) -> int:
        """Return the axis over which a divisor is constant, or that was summed by index."""
        exponential, total = inputs
        scattered = self._sums[total].scattered
        for n, axis in enumerate(self._axes.axes(exponential)):
            if axis and origins_of([axis]) <= scattered:
                return n
        sizes = (1,) * (exponential.ndim - total.ndim) + tuple(total.shape)
        pairs = zip(sizes, exponential.shape, strict=True)
        return next((n for n, (a, b) in enumerate(pairs) if a == 1 and b > 1), 0)

    def _multiplied(
        self, call: FunctionCall, equation: Equation, position: int
    ) -> MatchedAttention | None:
        """Read a product: with values it is attention, otherwise its result may be weights."""
        weights = call.inputs[position]
        own = next((n for n, x in enumerate(equation.operands) if x is weights), None)
        if own is None:  # the weights were added to a product
            return None
        tracked: TrackedWeights = self._tracked[weights]
        term, axes = equation.terms[own], self._axes.axes(weights)
        others = [n for n in range(len(equation.operands)) if n != own]
        if self._is_partial(tracked, equation, own):
            return None
        summed = {x for x in term if x not in equation.result}
        by_letter = dict(zip(term, axes, strict=True))
        stays = origins_of(by_letter[x] for x in term if x not in summed) >= tracked.normalised
        over = [f for x in summed for f in by_letter[x]]
        is_own = any(f.origin in tracked.normalised for f in over)
        mixes = stays and bool(over) and not is_own and all(f.origin.is_feature for f in over)
        tracked_others = [n for n in others if equation.operands[n] in self._tracked]
        if tracked_others and self._is_product_of_weights(equation, tracked_others[0]):
            mixes = True
        if mixes:
            self._propagate(call.renamed("matmul"), position)
            return None
        with_keys = [n for n in others if summed & set(equation.terms[n])]
        if not with_keys:
            self._pend_equation(equation, own, call.out)
            return None
        values = next(
            (n for n in with_keys if not self._axes.is_constant(equation.operands[n])),
            with_keys[0],
        )
        product = WeightProduct(
            operand=weights,
            weights=_value(weights, tracked),
            term=term,
            values=equation.operands[values],
            values_term=equation.terms[values],
            result=frozenset(equation.result),
            position=position,
        )
        match = self._match(tracked, product)
        if isinstance(call.out, Tensor):
            self._pools.mark(equation, own, values, tracked.roots, call.out)
        return match

    def _is_partial(self, tracked: TrackedWeights, equation: Equation, own: int) -> bool:
        """Return whether exponentials multiply a part of the values, as block by block.

        Such a loop rescales its sums with each block, so that no tensor has the weights.
        """
        if tracked.normaliser != "exp":
            return False
        term = set(equation.terms[own]) - set(equation.result)
        parts = [
            factor
            for n, (tensor, letters) in enumerate(
                zip(equation.operands, equation.terms, strict=True)
            )
            if n != own
            for letter, axis in zip(letters, self._axes.axes(tensor), strict=True)
            if letter in term
            for factor in axis
        ]
        is_partial = any(f.size < f.origin.size and not f.origin.is_feature for f in parts)
        if is_partial:
            for number in tracked.roots:
                self._roots[number].is_softmax = True
        return is_partial

    def _is_product_of_weights(self, equation: Equation, other: int) -> bool:
        tensor = equation.operands[other]
        axes = dict(zip(equation.terms[other], self._axes.axes(tensor), strict=True))
        left = origins_of(axes[x] for x in equation.terms[other] if x in equation.result)
        normalised = self._tracked[tensor].normalised
        return bool(normalised) and left >= normalised

    def _match(self, tracked: TrackedWeights, product: WeightProduct) -> MatchedAttention | None:
        """Return the attention that a product completes; None if it is not over positions."""
        roots = [self._roots[number] for number in tracked.roots]
        origins = roots[0].origins if len(roots) == 1 else frozenset()
        match = self._matcher.match(product, tracked, origins, appended_keys.get())
        self._settle(tracked.roots, "not attention" if match is None else "attention")
        return match

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
        own = self._without_broadcast(value, weights, weights_term, out.ndim)
        kept = self._without_broadcast(values.detach(), values, values_term, out.ndim)
        self._pending[out] = PendingProduct(tracked, own, kept, weights_term, values_term)
        return True

    def _pend_equation(self, equation: Equation, own: int, out: Any) -> None:
        """Track an einsum of weights with values that sums over nothing."""
        result = equation.result
        if len(equation.operands) != 2 or not isinstance(out, Tensor):
            return
        if {x for term in equation.terms for x in term} != set(result):
            return
        weights, values = equation.operands[own], equation.operands[1 - own]
        tracked: TrackedWeights = self._tracked[weights]
        kept, terms = [], []
        for n, value in ((own, _value(weights, tracked)), (1 - own, values.detach())):
            term, axes = equation.terms[n], self._axes.axes(equation.operands[n])
            order = sorted(range(len(term)), key=lambda axis, term=term: result.index(term[axis]))  # type: ignore[misc]
            kept.append(value.permute(order))
            terms.append(tuple(result.index(term[axis]) for axis in order))
            is_constant = self._axes.is_constant(equation.operands[n])
            self._axes.relabel(kept[-1], tuple(axes[n] for n in order), is_constant=is_constant)
        if set(terms[1]) - set(terms[0]):
            self._pending[out] = PendingProduct(tracked, kept[0], kept[1], terms[0], terms[1])

    def _without_broadcast(
        self, tensor: Tensor, labelled: Tensor, term: Letters, ndim: int
    ) -> Tensor:
        """Return an operand with those axes of the product that it has, and with their labels."""
        missing = ndim - tensor.ndim
        axes = ((),) * missing + self._axes.axes(labelled)
        tensor = tensor[(None,) * missing]
        for n in reversed(range(ndim)):
            tensor = tensor if n in term else tensor.select(n, 0)
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
            if size == out.shape[first + n] and not any(f.origin.is_broadcast for f in axis)
        )

    def _match_sum(self, pending: PendingProduct, call: FunctionCall) -> MatchedAttention | None:
        """Read (weights * values).sum(keys)."""
        product, dim = call.inputs[0], call.argument("dim", 1)
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

        found = WeightProduct(
            operand=product,
            weights=pending.weights,
            term=pending.weights_term,
            values=pending.values,
            values_term=pending.values_term,
            result=frozenset(result),
            position=0,
            to_operand=to_weights,
        )
        return self._match(pending.tracked, found)

    def _propagate(self, call: FunctionCall, position: int) -> None:
        """Track what a function made of weights, as long as their normalised axis is there."""
        name, inputs, results = call.name, call.inputs, call.results
        weights = inputs[position]
        tracked: TrackedWeights = self._tracked[weights]
        if position and name in (*(_UNCHANGED - _MASKING), *_LAYOUT) and name not in _JOINS:
            return  # the weights only lent their dtype or shape to another tensor
        if name in _NOT_WEIGHTS:
            return
        if (
            tracked.normaliser in _NORMALISERS
            and is_convolution(name)
            and not keeps_channels(inputs)
        ):
            return  # an activation of a convolutional network
        roots = frozenset().union(*(self._tracked[x].roots for x in inputs if x in self._tracked))
        if name in _SUMS:
            for result in results:
                self._sums[result] = WeightSum(roots, self._scattered(call))
        if name == "scatter" and position:  # the chosen ones, at their places among all keys
            base = self._axes.axes(results[0])
            dim = call.argument("dim", 1)
            tracked = replace(tracked, normalised=origins_of([base[dim]]), before_dropout=None)
            self._tracked[results[0]] = replace(tracked.with_applied(name), roots=roots)
            return
        if not self._keeps(tracked, weights, results):
            return
        shadows = self._run_before_dropout(call)
        tracked = self._named(replace(tracked, roots=roots), name, inputs, position)
        for n, result in enumerate(results):
            if result.is_floating_point():
                shadow = None if shadows is None else shadows[n]
                self._tracked[result] = replace(tracked, before_dropout=shadow)

    def _keeps(self, tracked: TrackedWeights, weights: Tensor, results: list[Tensor]) -> bool:
        if not tracked.normalised:
            return all(x.shape == weights.shape or x.numel() == weights.numel() for x in results)
        return all(origins_of(self._axes.axes(x)) >= tracked.normalised for x in results)

    def _run_before_dropout(self, call: FunctionCall) -> list[Tensor] | None:
        """Return what the function makes of the weights before dropout, if there was any."""
        if call.name in _DROPOUT:
            weights = next(x for x in call.inputs if x in self._tracked)
            return [_value(weights, self._tracked[weights])] * len(call.results)
        tracked = [self._tracked.get(x) for x in call.inputs]
        if all(x is None or x.before_dropout is None for x in tracked):
            return None

        def replaced(value: Any) -> Any:
            if isinstance(value, Tensor):
                known = self._tracked.get(value)
                return value.detach() if known is None else _value(value, known).clone()
            return type(value)(map(replaced, value)) if type(value) in (list, tuple) else value

        return tensors_in((call.function(*map(replaced, call.args), **call.kwargs),))

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
        normalised = origins_of(summed) or tracked.normalised
        if scattered := self._sums[sums].scattered & origins_of(axes):
            normalised = scattered
        tracked = replace(tracked, normalised=normalised)
        if tracked.normaliser == "exp" and not tracked.applied:
            for number in tracked.roots:  # a softmax by hand
                self._roots[number].is_softmax = True
        if tracked.normaliser == "exp" and scattered and not tracked.applied:
            return replace(tracked, normaliser=SCATTERED)
        if tracked.normaliser in _NORMALISERS and not tracked.applied:
            return replace(tracked, normaliser=f"{tracked.normaliser} / sum")
        return tracked.with_applied("renormalise")


@cache
def _plain_name(name: str) -> str:
    """Return a function's name without the marks of operators and in-place variants."""
    if name in _PLAIN_NAMES:
        return _PLAIN_NAMES[name]
    if name.startswith("__") and name.endswith("__"):
        plain = name.strip("_")
        for operator in ("mul", "add", "sub", "matmul", "pow"):
            if plain in (f"r{operator}", f"i{operator}"):
                return operator
        return plain
    return name.rstrip("_") if not name.startswith("_") else name


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
