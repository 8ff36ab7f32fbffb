"""Weights times values that are summed by index: attention over the edges of a graph."""

import torch
from torch import Tensor

from regard.capture.axes import Axis, AxisTracker, Gather, origins_of
from regard.capture.calls import EdgeWeights
from regard.capture.functions import ScatterSum
from regard.capture.layout import CallAxes, Layout, weights_layout
from regard.capture.weights.tracked import SCATTERED, ElementwiseProduct, MatchedAttention


class EdgeMatcher:
    """Reads sums by index of products of weights with values."""

    def __init__(self, axes: AxisTracker) -> None:
        self._axes = axes

    def match(self, product: ElementwiseProduct, summed: ScatterSum) -> MatchedAttention | None:
        """Return the attention that a sum completes; None if it is not over edges."""
        tracked = product.tracked
        axes, values_axes = self._axes.axes(product.weights), self._axes.axes(product.values)
        own = dict(zip(product.weights_term, axes, strict=True))
        others = dict(zip(product.values_term, values_axes, strict=True))
        edges = self._axes.axes(summed.source)[summed.dim]
        letters = [n for n in own.keys() & others if edges and edges in (own[n], others[n])]
        if len(letters) != 1 or tracked.normaliser != SCATTERED:
            return None  # a sum over experts, whose outputs are also added by index
        if not tracked.normalised <= origins_of([own[letters[0]]]):
            return None
        picked = _picked_keys(others[letters[0]], summed)
        shared = set(others)
        layout = weights_layout(product.weights_term, axes, letters, shared, known=True)
        weights = layout.arrange(product.weights)[:, :, 0]
        call = EdgeWeights(weights, summed.rows, picked.rows, summed.num_rows, picked.size)
        return MatchedAttention(
            call=call,
            axes=CallAxes(
                uncertain=layout.uncertain,
                normaliser=tracked.normaliser,
                applied=tracked.applied,
            ),
            same_rows=_is_same_graph(own[letters[0]], picked, summed) or tracked.same_rows,
            from_cache=False,
            operand=summed.source,
            to_weights=lambda gradient: _to_weights(gradient, product, layout, call),
            softmaxes=tracked.softmaxes,
            part=None,
            position=0,
            multiplication=product.multiplication.then(lambda x: layout.arrange(x)[:, :, 0]),
            summed=summed,
        )


def _picked_keys(axis: Axis, summed: ScatterSum) -> Gather:
    """Return the rows that the values of edges were picked from.

    Parameters that were picked, as by the type of each edge, are no rows if there are others.
    Values that were not picked, as those of a sum over the nodes of each graph, are rows of their
    own.
    """
    gathers = [gather for factor in axis for gather in factor.origin.gathers]
    gathers.sort(key=lambda x: (x.is_learned, torch.equal(x.rows, summed.rows), not x.is_own))
    if gathers and (gathers[0].is_own or not torch.equal(gathers[0].rows, summed.rows)):
        return gathers[0]
    return Gather(len(summed.rows), None, torch.arange(len(summed.rows), device=summed.rows.device))


def _is_same_graph(edges: Axis, keys: Gather, summed: ScatterSum) -> bool:
    """Return whether the scores were computed from the same rows as the values."""
    gathers = [gather for factor in edges for gather in factor.origin.gathers]
    return keys.source is not None and any(
        x.source is keys.source and torch.equal(x.rows, summed.rows) for x in gathers
    )


def _to_weights(
    gradient: Tensor, product: ElementwiseProduct, layout: Layout, call: EdgeWeights
) -> Tensor:
    """Bring the gradient of what was summed to that of the weights (batch, head, query, key)."""
    per_weight = gradient.reshape(product.shape) * product.expanded_values()
    extra = [n for n in range(len(product.shape)) if n not in product.weights_term]
    per_weight = per_weight.sum(extra) if extra else per_weight
    return call.dense(layout.arrange(per_weight)[:, :, 0], slice(None))
