"""What functions do to weights on their way: layouts, masks, dropout, gates, renormalisation."""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from regard.capture.axes import AxisTracker, origins_of
from regard.capture.functions import (
    CASTS,
    COPIES,
    EXPANSIONS,
    JOINS,
    RESHAPES,
    SLICES,
    SPLITS,
    TRANSPOSES,
    FunctionCall,
    tensors_in,
)
from regard.capture.lineage import is_convolution, keeps_channels
from regard.capture.rows import RowTracker
from regard.capture.weights.normalisers import NORMALISERS, SUMS, summed_origins
from regard.capture.weights.tracked import SCATTERED, TrackedWeights, WeightStore, WeightSum

_DROPOUT = {"dropout", "alpha_dropout", "native_dropout", "feature_dropout"}
_MASKING = {"masked_fill", "where", "nan_to_num"}
# functions that leave weights what they are
_UNCHANGED = CASTS | COPIES | _DROPOUT | _MASKING | {"cpu", "cuda", "requires_grad"}
_LAYOUT = RESHAPES | TRANSPOSES | EXPANSIONS | SPLITS | SLICES | JOINS
_LAYOUT |= {"repeat_interleave", "repeat", "index_select"}
_SKEWS = {"view", "reshape", "flatten", "unflatten", "as_strided"}
_PARTS = (SPLITS | SLICES) - {"unbind", "select"}  # with as many axes as the tensor
# functions to which weights that come second only lend their dtype or shape
_LENT = (_UNCHANGED | _LAYOUT) - _MASKING - JOINS
_NOT_WEIGHTS = {"argmax", "argmin", "max", "min", "amax", "amin", "topk", "sort", "argsort", "log"}
_NOT_WEIGHTS |= {"eq", "ne", "lt", "gt", "le", "ge", "any", "all", "multinomial", "isnan", "isinf"}


class WeightPropagation:
    """Follows tracked weights from a function's arguments to its results."""

    def __init__(self, store: WeightStore, axes: AxisTracker, rows: RowTracker) -> None:
        self._store, self._axes, self._rows = store, axes, rows

    def before_dropout(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Copy tracked weights that dropout is about to overwrite in place."""
        in_place = name == "dropout_" or kwargs.get("inplace") or (len(args) > 3 and args[3])
        if in_place and args and (tracked := self._store.tracked.get(args[0])) is not None:
            kept = tracked.values(args[0]).clone()
            self._store.tracked[args[0]] = replace(tracked, before_dropout=kept)

    def propagate(self, call: FunctionCall, position: int) -> None:
        """Track what a function made of weights, as long as their normalised axis is there."""
        name, inputs, results = call.name, call.inputs, call.results
        weights, store = inputs[position], self._store
        tracked: TrackedWeights = store.tracked[weights]
        if _ends(tracked, call, position):
            return
        known = (store.tracked.get(x) for x in inputs)
        softmaxes = frozenset().union(*(x.softmaxes for x in known if x is not None))
        tracked = replace(tracked, softmaxes=softmaxes)
        if name in SUMS:
            for result in results:
                store.sums[result] = WeightSum(softmaxes, summed_origins(call, self._axes))
        if name == "scatter" and position:
            store.tracked[results[0]] = self._scattered(tracked, call)
            return
        kept = [self._keeps(tracked, weights, result) for result in results]
        if not any(kept) and name not in _PARTS and name not in _SKEWS:
            return
        shadows = self._run_before_dropout(call)
        for n, (result, keeps) in enumerate(zip(results, kept, strict=True)):
            if not result.is_floating_point():
                continue
            shadow = None if shadows is None else shadows[n]
            if keeps:
                named = self._named(tracked, call, position)
                store.tracked[result] = replace(named, before_dropout=shadow)
            elif name in _PARTS and self._is_single_key(tracked, weights, result):
                store.tracked[result] = replace(
                    tracked, normalised=frozenset(), is_single=True, before_dropout=shadow
                )
            elif self._is_skewed(tracked, name, weights, result):
                store.tracked[result] = replace(tracked, is_skewed=True, before_dropout=shadow)

    def _scattered(self, tracked: TrackedWeights, call: FunctionCall) -> TrackedWeights:
        """Return what is known of chosen weights that are put at their places among all keys."""
        axis = self._axes.axes(call.results[0])[call.argument("dim", 1)]
        tracked = replace(tracked, normalised=origins_of([axis]), before_dropout=None)
        return tracked.with_applied(call.name)

    def _is_skewed(
        self, tracked: TrackedWeights, name: str, weights: Tensor, result: Tensor
    ) -> bool:
        """Return whether a result has weights of pairs of rows, in whatever order."""
        if not tracked.is_product or not (name in _SKEWS or result.ndim == weights.ndim):
            return False
        return self._rows.source(result).is_compared

    def _keeps(self, tracked: TrackedWeights, weights: Tensor, result: Tensor) -> bool:
        if tracked.is_skewed:
            return self._rows.source(result).is_compared
        if not tracked.normalised:
            return result.shape == weights.shape or result.numel() == weights.numel()
        return origins_of(self._axes.axes(result)) >= tracked.normalised

    def _is_single_key(self, tracked: TrackedWeights, weights: Tensor, result: Tensor) -> bool:
        """Return whether a slice of weights has all of them for one of the keys."""
        if not (tracked.is_product and tracked.normalised) or result.ndim != weights.ndim:
            return False
        axes = self._axes.axes(weights)
        keys = {n for n, axis in enumerate(axes) if origins_of([axis]) & tracked.normalised}
        sizes = [1 if n in keys else size for n, size in enumerate(weights.shape)]
        return len(keys) == 1 and list(result.shape) == sizes

    def _run_before_dropout(self, call: FunctionCall) -> list[Tensor] | None:
        """Return what the function makes of the weights before dropout, if there was any."""
        if call.name in _DROPOUT:
            weights = next(x for x in call.inputs if x in self._store.tracked)
            return [self._store.tracked[weights].values(weights)] * len(call.results)
        tracked = [self._store.tracked.get(x) for x in call.inputs]
        if all(x is None or x.before_dropout is None for x in tracked):
            return None

        args = map(self._before_dropout, call.args)
        return tensors_in((call.function(*args, **call.kwargs),))

    def _before_dropout(self, value: Any) -> Any:
        """Return an argument with copies of weights as they were before dropout.

        A method, since a nested function that calls itself would keep the tensors until the next
        garbage collection.
        """
        if isinstance(value, Tensor):
            known = self._store.tracked.get(value)
            return value.detach() if known is None else known.values(value).clone()
        if type(value) in (list, tuple):
            return type(value)(map(self._before_dropout, value))
        return value

    def _named(self, tracked: TrackedWeights, call: FunctionCall, position: int) -> TrackedWeights:
        """Add what a function did to the weights: a mask, a normaliser, or its name."""
        name, inputs = call.name, call.inputs
        others = [x for n, x in enumerate(inputs) if n != position]
        if name in _MASKING or (name == "mul" and any(map(_is_mask, others))):
            return replace(tracked, has_mask=True)
        is_padded = name == "pad" and not call.argument("value", 3)  # with zeros
        if name in _UNCHANGED or name in _LAYOUT or name == "as_strided" or is_padded:
            return tracked
        if name == "mul":
            tracked = replace(tracked, has_mask=True)
        if name == "div" and position == 0 and others and others[0] in self._store.sums:
            return self._renormalised(tracked, inputs[0], others[0])
        return tracked.with_applied(name)

    def _renormalised(
        self, tracked: TrackedWeights, weights: Tensor, sums: Tensor
    ) -> TrackedWeights:
        axes = self._axes.axes(weights)
        sizes = (1,) * (weights.ndim - sums.ndim) + tuple(sums.shape)
        summed = [axis for axis, size in zip(axes, sizes, strict=True) if size == 1]
        normalised = origins_of(summed) or tracked.normalised
        if scattered := self._store.sums[sums].scattered & origins_of(axes):
            normalised = scattered
        tracked = replace(tracked, normalised=normalised)
        if tracked.normaliser == "exp" and not tracked.applied:
            for number in tracked.softmaxes:  # a softmax by hand
                self._store.softmaxes[number].is_softmax = True
        if tracked.normaliser == "exp" and scattered and not tracked.applied:
            return replace(tracked, normaliser=SCATTERED)
        if tracked.normaliser in NORMALISERS and not tracked.applied:
            return replace(tracked, normaliser=f"{tracked.normaliser} / sum")
        return tracked.with_applied("renormalise")


def _ends(tracked: TrackedWeights, call: FunctionCall, position: int) -> bool:
    """Return whether what a function makes of weights is certainly no weights."""
    if call.name in _NOT_WEIGHTS:
        return True
    if position and call.name in _LENT:
        return True
    is_activation = tracked.normaliser in NORMALISERS  # of a convolutional network
    return is_activation and is_convolution(call.name) and not keeps_channels(call.inputs)


def _is_mask(tensor: Tensor) -> bool:
    """Return whether a factor is a mask of zeros and ones."""
    values = tensor.detach()
    return values.dtype == torch.bool or bool(((values == 0) | (values == 1)).all())
