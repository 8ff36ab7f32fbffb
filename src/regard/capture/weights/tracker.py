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

import torch
from torch import Tensor

from regard.capture.axes import AxisTracker
from regard.capture.call_site import CallSite
from regard.capture.functions import (
    SCATTER_SUMS,
    Equation,
    FunctionCall,
    plain_name,
    scatter_sum,
)
from regard.capture.lineage import Lineage
from regard.capture.rows import RowTracker
from regard.capture.weights.ambiguity import is_ambiguous
from regard.capture.weights.edges import EdgeMatcher
from regard.capture.weights.elementwise_products import ElementwiseProducts
from regard.capture.weights.linear_attention import FeaturePools
from regard.capture.weights.matching import ProductMatcher
from regard.capture.weights.normalisers import (
    MAY_START,
    NORMALISERS,
    SOFTMAX,
    NormaliserTracker,
)
from regard.capture.weights.pairs import COMBINES, PairedRows
from regard.capture.weights.products import ProductReader, ProductReading
from regard.capture.weights.propagation import WeightPropagation
from regard.capture.weights.rescaled_contexts import RescaledContexts
from regard.capture.weights.score_products import ScoreTracker
from regard.capture.weights.tracked import (
    MatchedAttention,
    SoftmaxCall,
    TrackedWeights,
    WeightProduct,
    WeightStore,
    WeightSum,
)
from regard.capture.weights.unnormalised_products import UnnormalisedProducts, match_of_division

appended_keys: ContextVar[int] = ContextVar("appended_keys", default=0)
"""Number of keys that nn.MultiheadAttention appends: `bias_k` and `add_zero_attn`."""

_ROUNDING = 1e-2  # of the sum of a row of weights, also in half precision
_STARTS = SOFTMAX | MAY_START  # functions that matter even if nothing is tracked


class WeightTracker:
    """Follows normalised scores to the product with values that makes them attention."""

    def __init__(
        self,
        lineage: Lineage,
        axes: AxisTracker,
        rows: RowTracker,
        find_site: Callable[[], CallSite | None],
        scores: ScoreTracker | None = None,
    ) -> None:
        self._scores = scores  # followed if queries and keys are to be kept
        self._axes, self._rows, self._store = axes, rows, WeightStore()
        self._pairs = PairedRows(axes)
        self._normalisers = NormaliserTracker(
            self._store, lineage, axes, self._pairs, find_site, scores
        )
        self._propagation = WeightPropagation(self._store, axes, rows)
        self._elementwise = ElementwiseProducts(self._store, axes, rows)
        self._matcher, self._edge_matcher = ProductMatcher(axes, rows), EdgeMatcher(axes)
        self._pools, self._products = FeaturePools(axes), ProductReader(self._store, axes)
        self._unnormalised = UnnormalisedProducts(self._store, axes)
        self._rescaled = RescaledContexts(axes)
        self._retracted: list[frozenset[int]] = []
        self._is_idle = scores is None  # nothing was followed at the latest function

    def find(self, tensors: list[Tensor]) -> Tensor | None:
        """Return the first of some tensors that are weights."""
        if self._is_idle:
            return None
        tracked, products = self._store.tracked, self._elementwise
        return next((x for x in tensors if x in tracked or x in products), None)

    def unresolved(self) -> Iterator[SoftmaxCall]:
        """Yield the softmaxes that did not become attention."""
        softmaxes = self._store.softmaxes.values()
        yield from (x for x in softmaxes if x.is_softmax and x.state != "attention")

    def take_retracted(self) -> list[frozenset[int]]:
        """Return, once, the softmaxes whose matches turned out to be no attention."""
        retracted, self._retracted = self._retracted, []
        return retracted

    def replace(self, context: Tensor, edited: Tensor) -> None:
        """Note that the model gets an edited context instead of the one that was computed."""
        self._unnormalised.replace(context, edited)

    def before_dropout(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Copy tracked weights that dropout is about to overwrite in place."""
        self._propagation.before_dropout(name, args, kwargs)

    def update(self, call: FunctionCall) -> MatchedAttention | None:
        """Track a function's result; return the attention that it completes, if it does.

        What a function may do, in the order in which it is tried: divide a context by the sum of
        its weights, rescale the context of a part of the keys, start weights as a softmax does, sum
        weights times values, or have weights among its arguments. All others may compute what
        weights are made of.
        """
        name = plain_name(call.name)
        if name in COMBINES:
            self._pairs.update(call)
        if name not in _STARTS and (self._is_idle or self._follows_nothing()):
            self._is_idle = True
            return None
        self._is_idle, call = False, call.renamed(name)
        if self._scores is not None:
            self._scores.update(call)
        if self._unnormalised:
            if (match := self._match_divided(call)) is not None:
                return match
            self._unnormalised.follow(call)
        if rescaled := self._rescaled.update(call):
            self._retract_parts(rescaled)
            return None
        if name in SOFTMAX and isinstance(call.out, Tensor):
            self._start_softmax(call)
            return None
        if name == "sum" and call.inputs and call.inputs[0] in self._elementwise:
            return self._match_sum(call)
        if (match := self._match_scattered(call)) is not None:
            return match
        position = self._position(call.inputs)
        if position is None or self._starts_anew(call) or self._adds_to_sum(call):
            self._follow_others(call)
            return None
        return self._apply(call, position)

    def _start_softmax(self, call: FunctionCall) -> None:
        name = call.name if call.name in ("gumbel_softmax", "softmin") else "softmax"
        dim = call.argument("dim", 2 if call.name == "_masked_softmax" else 1, -1)
        self._normalisers.start(name, call.inputs[0], dim, call.out)

    def _apply(self, call: FunctionCall, position: int) -> MatchedAttention | None:
        """Read a function of weights: a product may complete attention, others change them.

        Args:
            call: the call.
            position: of the weights among its tensors.
        """
        weights = call.inputs[position]
        tracked: TrackedWeights = self._store.tracked[weights]
        if (equation := call.equation()) is not None:
            if self._normalisers.is_over_features(tracked):
                self._retract_pools(call, weights)
            return self._multiplied(call, equation, position)
        is_product = call.name == "mul" and (
            tracked.is_single or self._add_elementwise(call, position)
        )
        if not is_product:
            self._propagation.propagate(call, position)
        return None

    def _follows_nothing(self) -> bool:
        """Return whether nothing is followed that a function could lead on."""
        others = self._elementwise, self._pools, self._normalisers, self._unnormalised
        is_tracking = bool(self._store.tracked or self._store.sums or any(others))
        return not is_tracking and self._scores is None

    def _position(self, inputs: list[Tensor]) -> int | None:
        tracked = self._store.tracked
        return next((n for n, x in enumerate(inputs) if x in tracked), None) if tracked else None

    def _starts_anew(self, call: FunctionCall) -> bool:
        """Return whether what was taken for weights are scores, as squares of distances."""
        tracked = self._store.tracked.get(call.inputs[0])
        return call.name == "exp" and tracked is not None and tracked.normaliser in NORMALISERS

    def _adds_to_sum(self, call: FunctionCall) -> bool:
        """Return whether exponentials are added to a sum of others, as that of one more key."""
        tracked, sums = self._store.tracked, self._store.sums
        return call.name == "add" and any(
            x in sums and x not in tracked and x.shape == call.results[0].shape for x in call.inputs
        )

    def _follow_others(self, call: FunctionCall) -> None:
        """Follow what may become weights, or show that weights were no attention."""
        self._retract_pools(call)
        self._elementwise.follow(call)
        if self._products:
            self._products.follow(call)
        if self._normalisers.may_concern(call.name):
            self._normalisers.update(call)
        self._note_exponentials(call)

    def _retract_pools(self, call: FunctionCall, queries: Tensor | None = None) -> None:
        """Retract the pools of features that a call multiplies: they are linear attention.

        Its queries may have been normalised over their features, too.
        """
        for softmaxes in self._pools.multiplied(call, queries):
            self._retracted.append(softmaxes)
            for number in softmaxes:
                self._store.softmaxes[number].state = "not attention"

    def _retract_parts(self, softmaxes: frozenset[int]) -> None:
        """Retract softmaxes over parts of the keys, whose contexts are rescaled and added up."""
        for number in softmaxes:
            self._retracted.append(frozenset([number]))
            self._store.softmaxes[number].state = "open"
            self._store.softmaxes[number].is_softmax = True

    def _match_scattered(self, call: FunctionCall) -> MatchedAttention | None:
        """Read index_add(weights * values): attention over edges."""
        if call.name not in SCATTER_SUMS or (summed := scatter_sum(call)) is None:
            return None
        product = self._elementwise.summed_by_index(summed)
        if product is None or (match := self._edge_matcher.match(product, summed)) is None:
            return None
        self._store.settle(match.softmaxes, "attention")
        return replace(match, site=self._store.softmaxes[min(match.softmaxes)].site)

    def _match_sum(self, call: FunctionCall) -> MatchedAttention | None:
        """Read a sum of weights times values."""
        known = self._elementwise[call.inputs[0]]
        product = self._elementwise.read_sum(known, call)
        match = None if product is None else self._match(known.tracked, product)
        self._note_context(match, call)
        return match

    def _multiplied(
        self, call: FunctionCall, equation: Equation, position: int
    ) -> MatchedAttention | None:
        """Read a product: with values it is attention, otherwise its result may be weights."""
        reading = self._products.read(equation, call.inputs[position])
        if reading.kind == "mixing":
            self._propagation.propagate(call.renamed("matmul"), position)
        elif reading.kind == "matrix":
            self._products.mark_matrix(call.out)
        elif reading.kind == "elementwise":
            self._elementwise.add_equation(call, equation, reading.own, position)
        elif reading.kind == "sum":
            tracked = self._store.tracked[call.inputs[position]]
            self._store.sums[call.out] = WeightSum(tracked.softmaxes)
        elif reading.kind == "values":
            return self._multiplied_with_values(call, equation, reading, position)
        return None

    def _multiplied_with_values(
        self, call: FunctionCall, equation: Equation, reading: ProductReading, position: int
    ) -> MatchedAttention | None:
        weights = call.inputs[position]
        tracked: TrackedWeights = self._store.tracked[weights]
        product = WeightProduct(
            operand=weights,
            weights=tracked.values(weights),
            term=equation.terms[reading.own],
            values=equation.operands[reading.values],
            values_term=equation.terms[reading.values],
            result=frozenset(equation.result),
            position=position,
        )
        match = self._match(tracked, product)
        if isinstance(call.out, Tensor):
            self._pools.mark(equation, reading.own, reading.values, tracked.softmaxes, call.out)
        self._note_context(match, call)
        if match is not None or tracked.normaliser == "exp":
            self._add_unnormalised(call, position, tracked, is_matched=match is not None)
        return match

    def _add_elementwise(self, call: FunctionCall, position: int) -> bool:
        """Note weights times values that are yet to be summed; False if they are not."""
        is_elementwise = self._elementwise.add(call, position)
        if is_elementwise:
            tracked = self._store.tracked[call.inputs[position]]
            self._add_unnormalised(call, position, tracked, is_matched=True)
        return is_elementwise

    def _add_unnormalised(
        self, call: FunctionCall, position: int, tracked: TrackedWeights, *, is_matched: bool
    ) -> None:
        """Note a product whose weights may be normalised later."""
        if tracked.normaliser in NORMALISERS or tracked.has_mask:
            self._unnormalised.add(call, position, tracked.softmaxes, is_matched=is_matched)

    def _note_exponentials(self, call: FunctionCall) -> None:
        """Note a product of exponentials, which are weights if their sum divides it."""
        exponential = self._normalisers.exponential
        if not self._normalisers or any(map(exponential, call.results)):
            return  # still exponentials, with a mask
        known = {n: x for n, tensor in enumerate(call.inputs) if (x := exponential(tensor))}
        is_product = call.equation() is not None
        if not known or not (is_product or call.name == "mul"):
            return
        others = [x for n, x in enumerate(call.inputs) if n not in known]
        if is_product and all(map(self._products.is_of_ones, others)):
            self._store.sums[call.out] = WeightSum(frozenset(x.number for x in known.values()))
            return
        position, first = next(iter(known.items()))
        self._unnormalised.add(call, position, frozenset([first.number]), is_matched=False)

    def _match_divided(self, call: FunctionCall) -> MatchedAttention | None:
        """Read a division of a context by the sum of its weights, as one of the weights."""
        if (divided := self._unnormalised.divided(call)) is None:
            return None
        product, calls = divided
        if not calls:
            self._retract_parts(product.softmaxes if product.is_matched else frozenset())
            self._normalisers.note_unfollowed(product.softmaxes)
        match = None
        for each in calls:
            weights = each.inputs[product.position] if each is calls[1] else each.inputs[0]
            self._axes.update(each, weights)
            self._rows.update(each)
            match = self.update(each) or match
        if match is None:
            return None
        if product.is_matched:
            self._retracted.append(product.softmaxes)
        return match_of_division(match, product, calls, call)

    def _match(self, tracked: TrackedWeights, product: WeightProduct) -> MatchedAttention | None:
        """Return the attention that a product completes; None if it is not over positions.

        Exponentials have yet to be divided by their sum: without it they are no weights.
        """
        if tracked.normaliser == "exp" and not _sum_to_one(product):
            for number in tracked.softmaxes:
                self._store.softmaxes[number].is_softmax = True
            return None
        softmaxes = [self._store.softmaxes[number] for number in tracked.softmaxes]
        if is_ambiguous(product, tracked, self._axes):
            return None
        origins = softmaxes[0].origins if len(softmaxes) == 1 else frozenset()
        match = self._matcher.match(product, tracked, origins, appended_keys.get())
        if match is not None or not tracked.is_skewed:
            self._store.settle(tracked.softmaxes, "not attention" if match is None else "attention")
        return match

    def _note_context(self, match: MatchedAttention | None, call: FunctionCall) -> None:
        if match is not None and isinstance(call.out, Tensor):
            self._rescaled.add(call.out, match.softmaxes)


def _sum_to_one(product: WeightProduct) -> bool:
    """Return whether weights are normalised over the keys already."""
    dims = [n for n, x in enumerate(product.term) if x not in product.result]
    if all(product.weights.shape[n] == 1 for n in dims):
        return False  # of a single key
    sums = product.weights.sum(dims, dtype=torch.float32)
    return bool((((sums - 1).abs() < _ROUNDING) | (sums == 0)).all())
