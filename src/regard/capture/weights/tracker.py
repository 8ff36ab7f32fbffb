"""The tracker of written-out attention: from normalised scores to the product with values.

A softmax, or another function that normalises a product of queries and keys, starts a track. The
weights are followed through layouts, masks, dropout, mixing of heads, gates and renormalisation to
the product that sums them over the keys. Every product is read as an einsum equation, in which the
labels of the axes give each axis its role.
"""

from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from torch import Tensor

from regard.capture.axes import AxisTracker, origins_of
from regard.capture.call_site import CallSite
from regard.capture.functions import (
    SCATTER_SUMS,
    Equation,
    FunctionCall,
    plain_name,
    scatter_sum,
    tensors_in,
)
from regard.capture.lineage import Lineage
from regard.capture.weights.edges import EdgeMatcher
from regard.capture.weights.matching import ProductMatcher
from regard.capture.weights.normalisers import MAY_START, SOFTMAX, NormaliserTracker
from regard.capture.weights.pending import PendingProducts
from regard.capture.weights.pools import FeaturePools
from regard.capture.weights.propagation import WeightPropagation
from regard.capture.weights.score_products import ScoreTracker
from regard.capture.weights.tracked import (
    MatchedAttention,
    Root,
    TrackedWeights,
    WeightProduct,
    WeightStore,
)

appended_keys: ContextVar[int] = ContextVar("appended_keys", default=0)
"""Number of keys that nn.MultiheadAttention appends: `bias_k` and `add_zero_attn`."""

_STARTS = SOFTMAX | MAY_START  # functions that matter even if nothing is tracked


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
        self._axes, self._store = axes, WeightStore()
        self._normalisers = NormaliserTracker(self._store, lineage, axes, find_site, scores)
        self._propagation = WeightPropagation(self._store, axes)
        self._pending = PendingProducts(self._store, axes)
        self._matcher, self._edge_matcher = ProductMatcher(axes), EdgeMatcher(axes)
        self._pools = FeaturePools(axes)
        self._retracted: list[frozenset[int]] = []

    def find(self, args: tuple[Any, ...]) -> Tensor | None:
        """Return the first of the arguments that are weights."""
        tracked, pending = self._store.tracked, self._pending
        if not tracked and not pending:
            return None
        return next((x for x in tensors_in(args) if x in tracked or x in pending), None)

    def unresolved(self) -> Iterator[Root]:
        """Yield the softmaxes that did not become attention."""
        roots = self._store.roots.values()
        yield from (x for x in roots if x.is_softmax and x.state != "attention")

    def take_retracted(self) -> list[frozenset[int]]:
        """Return, once, the roots of matches that turned out to be no attention."""
        retracted, self._retracted = self._retracted, []
        return retracted

    def before_dropout(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Copy tracked weights that dropout is about to overwrite in place."""
        self._propagation.before_dropout(name, args, kwargs)

    def update(self, call: FunctionCall) -> MatchedAttention | None:
        """Track a function's result; return the attention that it completes, if it does."""
        name = plain_name(call.name)
        if name not in _STARTS and self._is_idle():
            return None
        call = call.renamed(name)
        if self._scores is not None:
            self._scores.update(call)
        inputs, out = call.inputs, call.out
        if name in SOFTMAX and isinstance(out, Tensor):
            normaliser = name if name in ("gumbel_softmax", "softmin") else "softmax"
            dim = call.argument("dim", 2 if name == "_masked_softmax" else 1, -1)
            self._normalisers.start(normaliser, inputs[0], dim, out)
            return None
        if name == "sum" and inputs and inputs[0] in self._pending:
            return self._match_sum(call)
        if (match := self._match_scattered(call)) is not None:
            return match
        position = self._position(inputs)
        if position is None:
            self._follow_others(call)
            return None
        if (equation := call.equation()) is not None:
            if self._normalisers.is_over_features(self._store.tracked[inputs[position]]):
                self._retract_pools(call, inputs[position])
            return self._multiplied(call, equation, position)
        is_single = self._store.tracked[inputs[position]].is_single
        if name == "mul" and (is_single or self._pending.add(call, position)):
            return None
        self._propagation.propagate(call, position)
        return None

    def _is_idle(self) -> bool:
        """Return whether nothing is tracked that a function could lead on."""
        store, others = self._store, (self._pending, self._pools, self._normalisers)
        return not (store.tracked or store.sums or any(others) or self._scores is not None)

    def _position(self, inputs: list[Tensor]) -> int | None:
        tracked = self._store.tracked
        return next((n for n, x in enumerate(inputs) if x in tracked), None) if tracked else None

    def _follow_others(self, call: FunctionCall) -> None:
        """Follow what may become weights, or show that weights were no attention."""
        self._retract_pools(call)
        self._pending.follow(call)
        if self._normalisers.may_concern(call.name):
            self._normalisers.update(call)

    def _retract_pools(self, call: FunctionCall, queries: Tensor | None = None) -> None:
        """Retract the pools of features that a call multiplies: they are linear attention.

        Its queries may have been normalised over their features, too.
        """
        for roots in self._pools.multiplied(call, queries):
            self._retracted.append(roots)
            for number in roots:
                self._store.roots[number].state = "not attention"

    def _match_scattered(self, call: FunctionCall) -> MatchedAttention | None:
        """Read index_add(weights * values): attention over edges."""
        if call.name not in SCATTER_SUMS or (summed := scatter_sum(call)) is None:
            return None
        pending = self._pending.summed_by_index(summed)
        if pending is None or (match := self._edge_matcher.match(pending, summed)) is None:
            return None
        self._store.settle(match.roots, "attention")
        return replace(match, site=self._store.roots[min(match.roots)].site)

    def _match_sum(self, call: FunctionCall) -> MatchedAttention | None:
        """Read a sum of weights times values."""
        pending = self._pending[call.inputs[0]]
        product = self._pending.read_sum(pending, call)
        return None if product is None else self._match(pending.tracked, product)

    def _multiplied(
        self, call: FunctionCall, equation: Equation, position: int
    ) -> MatchedAttention | None:
        """Read a product: with values it is attention, otherwise its result may be weights."""
        weights = call.inputs[position]
        own = next((n for n, x in enumerate(equation.operands) if x is weights), None)
        if own is None:  # the weights were added to a product
            return None
        tracked: TrackedWeights = self._store.tracked[weights]
        term, axes = equation.terms[own], self._axes.axes(weights)
        others = [n for n in range(len(equation.operands)) if n != own]
        if self._is_partial(tracked, equation, own):
            return None
        summed = {x for x in term if x not in equation.result}
        by_letter = dict(zip(term, axes, strict=True))
        if tracked.is_single and any(by_letter[x] for x in summed):
            return None  # not over the keys, of which there is one
        stays = origins_of(by_letter[x] for x in term if x not in summed) >= tracked.normalised
        over = [f for x in summed for f in by_letter[x]]
        is_own = any(f.origin in tracked.normalised for f in over)
        mixes = stays and bool(over) and not is_own and all(f.origin.is_feature for f in over)
        tracked_others = [n for n in others if equation.operands[n] in self._store.tracked]
        if tracked_others and self._is_product_of_weights(equation, tracked_others[0]):
            mixes = True
        if mixes:
            self._propagation.propagate(call.renamed("matmul"), position)
            return None
        with_keys = [n for n in others if summed & set(equation.terms[n])]
        if not with_keys:
            self._pending.add_equation(call, equation, own, position)
            return None
        values = next(
            (n for n in with_keys if not self._axes.is_constant(equation.operands[n])),
            with_keys[0],
        )
        product = WeightProduct(
            operand=weights,
            weights=tracked.values(weights),
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
                self._store.roots[number].is_softmax = True
        return is_partial

    def _is_product_of_weights(self, equation: Equation, other: int) -> bool:
        tensor = equation.operands[other]
        axes = dict(zip(equation.terms[other], self._axes.axes(tensor), strict=True))
        left = origins_of(axes[x] for x in equation.terms[other] if x in equation.result)
        normalised = self._store.tracked[tensor].normalised
        return bool(normalised) and left >= normalised

    def _match(self, tracked: TrackedWeights, product: WeightProduct) -> MatchedAttention | None:
        """Return the attention that a product completes; None if it is not over positions."""
        roots = [self._store.roots[number] for number in tracked.roots]
        origins = roots[0].origins if len(roots) == 1 else frozenset()
        match = self._matcher.match(product, tracked, origins, appended_keys.get())
        self._store.settle(tracked.roots, "not attention" if match is None else "attention")
        return match
