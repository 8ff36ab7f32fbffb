"""Normalisers: where weights start, at a softmax or another function of scores."""

from collections.abc import Callable
from itertools import count
from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard.capture.axes import Axis, AxisTracker, Origin, axis_size, origins_of
from regard.capture.call_site import CallSite
from regard.capture.functions import (
    CASTS,
    COPIES,
    RESHAPES,
    SCATTER_SUMS,
    TRANSPOSES,
    FunctionCall,
    TensorMap,
    scatter_sum,
)
from regard.capture.lineage import Lineage
from regard.capture.weights.pairs import PairedRows
from regard.capture.weights.score_products import ScoreTracker
from regard.capture.weights.tracked import (
    SCATTERED,
    SoftmaxCall,
    TrackedWeights,
    WeightStore,
    WeightSum,
)

MASKED_BELOW = -9e3  # scores below are masked: some models add no more than -10000

SOFTMAX = {"softmax", "special_softmax", "softmin", "gumbel_softmax", "_masked_softmax"}
SOFTMAX |= {"_sparse_softmax"}
NORMALISERS = {"exp", "sigmoid", "relu", "clamp", "clamp_min", "square", "softplus", "elu"}
NORMALISERS |= {"hardsigmoid", "relu6", "threshold", "special_expit", "expm1", "erf"}
NORMALISERS |= {"tanh"}
SUMS = {"sum", "cumsum", "logsumexp", *SCATTER_SUMS}
_OVER_SUM = {"pow", "abs"}  # normalisers only if their results are divided by a sum
# functions that leave exponentials what they are
_SAME_ELEMENTS = RESHAPES | TRANSPOSES | CASTS | COPIES
_MASKS = {"mul", "masked_fill", "where"}
MAY_START = {
    "log_softmax",
    "logsumexp",
    "sub",
    "exp",
    "div",
    "normalize",
    *SUMS,
    *NORMALISERS,
    *_OVER_SUM,
}

Handler = Callable[["NormaliserTracker", FunctionCall], bool]  # whether it applied to a call


class Exponential(NamedTuple):
    """Exponentials of scores that are no product, or the like: weights once a sum divides them."""

    name: str  # of the function
    number: int  # as that of a softmax


class NormaliserTracker:
    """Starts a track at each softmax, and at what is a softmax or its like by hand."""

    def __init__(
        self,
        store: WeightStore,
        lineage: Lineage,
        axes: AxisTracker,
        pairs: PairedRows,
        find_site: Callable[[], CallSite | None],
        scores: ScoreTracker | None,
    ) -> None:
        self._store, self._lineage, self._axes, self._pairs = store, lineage, axes, pairs
        self._find_site, self._scores = find_site, scores
        self._exponentials = TensorMap[Exponential]()
        self._log_weights = TensorMap[tuple[str, Any]]()  # logarithms: normaliser and its axis
        self._log_sums = TensorMap[Any]()
        self._ids = count()

    def __bool__(self) -> bool:
        """Return whether exponentials are followed that may be normalised later."""
        return bool(self._exponentials)

    def start(self, normaliser: str, scores: Tensor, dim: Any, out: Tensor) -> None:
        """Start a track at scores that are normalised over an axis.

        Sparse weights are not followed, but noted.
        """
        if out.layout != torch.strided:
            self._store.softmaxes[next(self._ids)] = SoftmaxCall(
                self._find_site(), False, True, frozenset()
            )
            return
        axis = self._axes.axes(out)[dim if isinstance(dim, int) else -1] if out.ndim else ()
        self._add(normaliser, scores, out, axis, is_softmax=True)

    def update(self, call: FunctionCall) -> None:
        """Start a track at another normaliser than softmax, and follow sums of weights."""
        if not call.inputs or not isinstance(call.out, Tensor):
            return
        handlers = _HANDLERS.get(call.name, ())
        if not any(handler(self, call) for handler in handlers):
            self._follow_sums(call)

    def exponential(self, tensor: Tensor) -> Exponential | None:
        """Return what is known of exponentials that no sum has divided yet."""
        return self._exponentials.get(tensor)

    def note_unfollowed(self, softmaxes: frozenset[int]) -> None:
        """Note exponentials whose sum divides something in which they were not followed."""
        for number in softmaxes - self._store.softmaxes.keys():
            self._store.softmaxes[number] = SoftmaxCall(self._find_site(), False, True, frozenset())

    @staticmethod
    def is_over_features(tracked: TrackedWeights) -> bool:
        """Return whether the features of each vector were normalised, rather than its keys."""
        origins = tracked.normalised
        is_feature = bool(origins) and all(x.is_feature and not x.is_compared for x in origins)
        return is_feature and not tracked.is_product

    def may_concern(self, name: str) -> bool:
        """Return whether a function may start weights, or continue what they are made of."""
        is_followed = bool(self._exponentials) and (name in _SAME_ELEMENTS or name in _MASKS)
        return name in MAY_START or is_followed or bool(self._store.sums)

    def _keep_exponentials(self, call: FunctionCall) -> bool:
        known = self._exponentials.get(call.inputs[0])
        if known is not None:
            self._exponentials[call.out] = known
        return False  # they may be sums as well

    def _keep_masked(self, call: FunctionCall) -> bool:
        """Follow exponentials through masks and other factors that are not negative."""
        found = [(x, self._exponentials[x]) for x in call.inputs if x in self._exponentials]
        if len(found) != 1 or found[0][0].shape != call.out.shape:
            return False
        factors = [x for x in call.inputs if x is not found[0][0]] if call.name == "mul" else []
        is_mask = all(not x.is_meta and bool((x >= 0).all()) for x in factors)
        if is_mask:
            self._exponentials[call.out] = found[0][1]
        return is_mask

    def _note_log_softmax(self, call: FunctionCall) -> bool:
        self._log_weights[call.out] = "softmax", call.argument("dim", 1, -1)
        return True

    def _note_log_sum(self, call: FunctionCall) -> bool:
        self._log_sums[call.out] = call.argument("dim", 1, -1)
        return True

    def _subtract_log_sum(self, call: FunctionCall) -> bool:
        if len(call.inputs) < 2 or call.inputs[1] not in self._log_sums:
            return False
        self._log_weights[call.out] = "exp / sum", self._log_sums[call.inputs[1]]
        return True

    def _start_at_log_weights(self, call: FunctionCall) -> bool:
        known = self._log_weights.get(call.inputs[0])
        if known is not None:
            self.start(known[0], call.inputs[0], known[1], call.out)
        return known is not None

    def _note_exponentials(self, call: FunctionCall) -> bool:
        if self._may_be_scores(call.inputs[0]):
            return False
        self._exponentials[call.out] = Exponential(call.name, next(self._ids))
        return True

    def _note_powers(self, call: FunctionCall) -> bool:
        """Note scores that are normalised only if a sum divides them."""
        if not self._may_be_scores(call.inputs[0]):
            return False
        self._exponentials[call.out] = Exponential(call.name, next(self._ids))
        return True

    def _divide_by_sum(self, call: FunctionCall) -> bool:
        exponential = self._exponentials.get(call.inputs[0])
        if exponential is None or not self._is_sum_of(call.inputs):
            return False
        is_scattered = bool(self._store.sums[call.inputs[1]].scattered)
        normaliser = SCATTERED if is_scattered else f"{exponential.name} / sum"
        self.start(normaliser, call.inputs[0], self._divided_axis(call.inputs), call.out)
        return True

    def _normalise(self, call: FunctionCall) -> bool:
        """Start a track at torch.nn.functional.normalize with p=1."""
        exponential = self._exponentials.get(call.inputs[0])
        if exponential is None or call.argument("p", 1, 2.0) != 1:
            return False
        dim = call.argument("dim", 2, 1)
        self.start(f"{exponential.name} / sum", call.inputs[0], dim, call.out)
        return True

    def _sum_exponentials(self, call: FunctionCall) -> bool:
        known = [self._exponentials[x] for x in call.inputs if x in self._exponentials]
        if known:
            softmaxes = frozenset(x.number for x in known)
            self._store.sums[call.out] = WeightSum(softmaxes, summed_origins(call, self._axes))
        if len(known) == 1 and call.name == "sum":  # of a mixture, each of which is not normalised
            self._exponentials[call.out] = known[0]
        return bool(known)

    def _start_at_product(self, call: FunctionCall) -> bool:
        """Start a track at a function of a product of queries and keys, or of pairs of rows."""
        scores, out = call.inputs[0], call.out
        last = self._axes.axes(out)[-1]
        axis = last if self._may_be_scores(scores) else self._pairs.last_axis(scores)
        if axis is None:
            return False
        if not (last and all(f.origin.is_feature for f in last)):
            self._add(call.name, scores, out, axis, is_softmax=False)
        elif call.name == "exp":  # heads or features are last: which axis is divided by?
            self._exponentials[out] = Exponential(call.name, next(self._ids))
        return True

    def _follow_sums(self, call: FunctionCall) -> None:
        """Follow what is computed of sums of weights."""
        sums = [self._store.sums[x] for x in call.inputs if x in self._store.sums]
        if sums and call.out not in self._store.sums:
            softmaxes, scattered = zip(*sums, strict=True)
            self._store.sums[call.out] = WeightSum(
                frozenset().union(*softmaxes), frozenset().union(*scattered)
            )

    def _add(
        self, normaliser: str, scores: Tensor, out: Tensor, axis: Axis, *, is_softmax: bool
    ) -> None:
        number, lineage = next(self._ids), self._lineage
        has_scores = self._scores is not None and normaliser != "softmin"  # of the other sign
        is_feature = bool(axis) and all(f.origin.is_feature or f.origin.is_stack for f in axis)
        is_product = lineage.is_product(scores)
        is_single = not axis and not is_product  # of one choice, as of the best expert
        is_feature = is_feature or is_single or self._axes.is_constant(out)
        site = self._find_site() if is_softmax or normaliser == "exp" else None
        origins = origins_of(self._axes.axes(out))
        self._store.softmaxes[number] = SoftmaxCall(site, is_feature, is_softmax, origins)
        self._store.tracked[out] = TrackedWeights(
            normaliser,
            frozenset([number]),
            frozenset(f.origin for f in axis),
            lineage.same_rows_in_scores(scores),
            lineage.from_cache(scores),
            has_mask=bool((scores.detach() < MASKED_BELOW).any()),
            is_product=is_product,
            num_keys=axis_size(axis),
            scores=self._scores.product(scores) if self._scores and has_scores else None,
        )

    def _may_be_scores(self, tensor: Tensor) -> bool:
        """Return whether a tensor is computed from a product, and still has both of its sides."""
        sides = {f.origin.side for axis in self._axes.axes(tensor) for f in axis} - {0}
        return self._lineage.is_product(tensor) and tensor.ndim > 1 and len(sides) != 1

    def _is_sum_of(self, inputs: list[Tensor]) -> bool:
        return len(inputs) == 2 and inputs[1] in self._store.sums

    def _divided_axis(self, inputs: list[Tensor]) -> int:
        """Return the axis over which a divisor is constant, or that was summed by index."""
        exponential, total = inputs
        scattered = self._store.sums[total].scattered
        for n, axis in enumerate(self._axes.axes(exponential)):
            if axis and origins_of([axis]) <= scattered:
                return n
        sizes = (1,) * (exponential.ndim - total.ndim) + tuple(total.shape)
        pairs = zip(sizes, exponential.shape, strict=True)
        return next((n for n, (a, b) in enumerate(pairs) if a == 1 and b > 1), 0)


def summed_origins(call: FunctionCall, axes: AxisTracker) -> frozenset[Origin]:
    """Return the origins of the axis that a call sums by index, if it does."""
    summed = scatter_sum(call)
    if summed is None:
        return frozenset()
    return origins_of([axes.axes(summed.source)[summed.dim]])


_HANDLERS: dict[str, tuple[Handler, ...]] = {
    **dict.fromkeys(_SAME_ELEMENTS, (NormaliserTracker._keep_exponentials,)),
    **dict.fromkeys(_MASKS, (NormaliserTracker._keep_masked,)),
    **dict.fromkeys(SUMS, (NormaliserTracker._sum_exponentials,)),
    **dict.fromkeys(NORMALISERS, (NormaliserTracker._start_at_product,)),
    **dict.fromkeys(_OVER_SUM, (NormaliserTracker._note_powers,)),
    "log_softmax": (NormaliserTracker._note_log_softmax,),
    "logsumexp": (NormaliserTracker._note_log_sum,),
    "sub": (NormaliserTracker._subtract_log_sum,),
    "exp": (
        NormaliserTracker._start_at_log_weights,
        NormaliserTracker._note_exponentials,
        NormaliserTracker._start_at_product,
    ),
    "div": (NormaliserTracker._divide_by_sum,),
    "normalize": (NormaliserTracker._normalise,),
}
"""What to try for each function, until one applies.

Functions rather than bound methods, with which a tracker would refer to itself, and be kept with
all that it knows of until the next garbage collection.
"""
