"""Calls of torch's fused attention functions, whose weights no tensor of the model has."""

from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from regard.capture.axes import AxisTracker
from regard.capture.calls import (
    CapturedCall,
    FlexCall,
    MaterializedWeights,
    SDPACall,
    as_tensor,
    to_four_axes,
)
from regard.capture.functions import FunctionCall
from regard.capture.layout import (
    PLAIN_AXES,
    CallAxes,
    FusedLayout,
    RowOrder,
    WindowPositions,
    call_axes,
    row_order,
)
from regard.capture.recognised_attention import ByHead, CaptureAgain
from regard.capture.rows import RowTracker, learned_keys, positions_of_vectors

FUSED_FUNCTIONS = {"scaled_dot_product_attention", "flex_attention"}


class FusedCall(NamedTuple):
    """A call of a fused function, and what is known of its axes; see `RecognisedAttention`."""

    capture: CaptureAgain
    axes: CallAxes
    by_head: ByHead


def read_flex_call(function: FunctionCall) -> FusedCall:
    """Read a call of flex_attention, which has its axes in torch's order."""
    return FusedCall(lambda: FlexCall(*function.args, **function.kwargs), PLAIN_AXES, to_four_axes)


class SDPAReader:
    """Reads calls of `scaled_dot_product_attention` by the labels of their axes."""

    def __init__(self, axes: AxisTracker, rows: RowTracker) -> None:
        self._axes, self._rows = axes, rows

    def read(self, function: FunctionCall, same_rows: bool | None, extra_keys: int) -> FusedCall:
        """Return the call and its axes.

        Args:
            function: the call of the function.
            same_rows: whether queries and keys come from the same rows; None if unknown.
            extra_keys: number of keys at the end that are known to be no positions.
        """
        queries, keys, values = function.args[:3]
        layout = FusedLayout(self._axes, queries, keys, values)
        (positions, order), leading_keys = self._positions(layout, queries, keys, values), 0
        if same_rows and not extra_keys and order is None:
            leading_keys, extra_keys = self._learned_keys(layout, queries, keys)
        axes = call_axes(layout.weights, positions, leading_keys=leading_keys)
        capture = partial(_capture, function, layout, extra_keys, order)
        return FusedCall(capture, axes, partial(_by_head, layout, order))

    def _positions(
        self, layout: FusedLayout, queries: Tensor, keys: Tensor, values: Tensor
    ) -> tuple[WindowPositions | None, RowOrder | None]:
        """Return the positions of windows or of rows that were reordered, and their order."""
        if layout.weights.size("window") > 1:
            return self._positions_of(layout, queries, keys), None
        is_step = queries.shape[-2] == 1  # whose keys are in order, though beams may not be
        if is_step or not any(self._rows.source(x).is_reordered for x in (queries, keys)):
            return None, None
        positions = self._positions_of(layout, queries, keys)
        others = self._positions_of(layout, queries, values)
        if positions is None or others is None or not torch.equal(positions.keys, others.keys):
            return None, None
        order = row_order(positions)
        return positions if order is None else order.sort_positions(positions), order

    def _positions_of(
        self, layout: FusedLayout, queries: Tensor, keys: Tensor
    ) -> WindowPositions | None:
        """Return the positions of queries, and of keys or values."""
        return positions_of_vectors(
            self._rows.source(queries),
            layout.layout(queries, "query"),
            self._rows.source(keys),
            layout.layout(keys, "key"),
            layout.weights,
        )

    def _learned_keys(self, layout: FusedLayout, queries: Tensor, keys: Tensor) -> tuple[int, int]:
        """Return how many keys before and after those of a text are learned, or zeros."""
        if not 1 < queries.shape[-2] < keys.shape[-2] or layout.weights.size("window") > 1:
            return 0, 0
        return learned_keys(
            self._rows.source(queries),
            layout.layout(queries, "query"),
            self._rows.source(keys),
            layout.layout(keys, "key"),
            layout.weights,
        )


def _capture(
    function: FunctionCall, layout: FusedLayout, extra_keys: int, order: RowOrder | None
) -> CapturedCall:
    """Return the call of `scaled_dot_product_attention` with its axes in torch's order."""
    (queries, keys, values, *rest), kwargs = function.args, dict(function.kwargs)
    mask = kwargs.pop("attn_mask", None)
    if rest:
        mask, *rest = rest
    call = SDPACall(
        layout.rows(queries, "query"),
        layout.rows(keys, "key"),
        layout.rows(values, "key"),
        None if mask is None else layout.mask(as_tensor(mask)),
        *rest,
        **kwargs,
        extra_keys=extra_keys,
    )
    return call if order is None else _sorted(call, order)


def _sorted(call: SDPACall, order: RowOrder) -> MaterializedWeights:
    """Return the weights of a call whose rows were reordered, in their order."""
    heads, keys = call.shape[1], call.shape[3]
    weights = call.weights(slice(None), list(range(heads)), slice(None))
    assert call.values is not None, "SDPA has values"
    return MaterializedWeights(
        order.sort(pad(weights, (0, keys - weights.shape[3]))),
        order.sort_keys(call.values, heads),
        has_mask=call.fully_masked_keys() is not None,
    )


def _by_head(layout: FusedLayout, order: RowOrder | None, context: Tensor) -> Tensor:
    """Bring a tensor of the context's shape to (batch, head, query, value)."""
    rows = layout.rows(context, role="query")
    return rows if order is None else order.sort_queries(rows)
