"""Whether a product of weights is attention over positions, and which axis of it is which."""

from collections.abc import Hashable
from dataclasses import replace
from typing import Any

from torch import Tensor

from regard.capture.axes import Axes, Axis, AxisTracker, Origin, origins_of
from regard.capture.calls import MaterializedWeights
from regard.capture.functions import Letters
from regard.capture.layout import (
    Layout,
    Part,
    RowOrder,
    WindowPositions,
    arrange_values,
    call_axes,
    row_order,
    values_layout,
    weights_layout,
)
from regard.capture.rows import RowTracker, learned_keys, positions_of_weights
from regard.capture.weights.ambiguity import with_uncertain_roles
from regard.capture.weights.mixtures import ProductAxes, is_mixture, is_over_queries
from regard.capture.weights.score_products import vectors_of
from regard.capture.weights.tracked import MatchedAttention, TrackedWeights, WeightProduct


class ProductMatcher:
    """Reads products of weights with values by the labels of their axes."""

    def __init__(self, axes: AxisTracker, rows: RowTracker) -> None:
        self._axes, self._rows = axes, rows

    def match(
        self,
        product: WeightProduct,
        tracked: TrackedWeights,
        softmax_origins: frozenset[Origin],
        extra_keys: int,
    ) -> MatchedAttention | None:
        """Return the attention that a product completes; None if it is not over positions.

        Args:
            product: of weights with values.
            tracked: what is known of the weights.
            softmax_origins: of the axes of the softmax result, if there was a single softmax.
            extra_keys: keys at the end that are no positions.
        """
        axes = self._product_axes(product)
        is_part = tracked.is_product and axes.num_keys < tracked.num_keys  # others are computed
        if not self._is_attention(product, tracked, axes, is_part=is_part):
            return None
        width = tuple(f for x, a in axes.values.items() if x not in product.term for f in a)
        layout, of_values = self._layouts(product, tracked, axes, width)
        arranged, to_operand = layout.arrange(product.weights), product.to_operand
        has_windows, positions, order = layout.size("window") > 1, None, None
        is_rearranged = has_windows or tracked.is_skewed or is_part
        if is_rearranged or (not extra_keys and self._is_reordered(product, tracked, layout)):
            positions = self._positions(product, arranged, layout, of_values)
        if positions is not None and not is_rearranged:
            order = row_order(positions)
            positions = positions if order is None else order.sort_positions(positions)
        if tracked.is_skewed and (positions is None or not (has_windows or positions.are_in_order)):
            return None
        same_rows, leading_keys = _same_rows(tracked, layout, positions), 0
        if same_rows and not (extra_keys or has_windows or tracked.is_skewed):
            leading_keys, extra_keys = self._learned_keys(product, layout, of_values)
        arrange = layout.arrange if order is None else lambda x: order.sort(layout.arrange(x))
        values = _values(product, layout, of_values, order)
        is_transposed = is_over_queries(tracked, axes) and not tracked.is_skewed
        name = f"{tracked.normaliser} over queries" if is_transposed else tracked.normaliser
        scores = tracked.scores if order is None else None  # vectors are in the model's order
        return MatchedAttention(
            call=MaterializedWeights(
                arranged if order is None else order.sort(arranged),
                values,
                has_mask=tracked.has_mask,
                extra_keys=extra_keys,
                vectors=None if scores is None else vectors_of(scores, layout),
            ),
            axes=replace(
                call_axes(layout, positions, name, tracked.applied, leading_keys),
                num_normalised_keys=tracked.num_keys,
            ),
            same_rows=same_rows,
            from_cache=tracked.from_cache,
            operand=product.operand,
            to_weights=arrange
            if to_operand is None
            else lambda gradient: arrange(to_operand(gradient)),
            softmaxes=tracked.softmaxes,
            part=_selected_part(tracked, softmax_origins, axes.in_order, width),
            position=product.position,
            multiplication=product.multiplication and product.multiplication.then(arrange),
        )

    def _product_axes(self, product: WeightProduct) -> ProductAxes:
        """Read the axes of weights and values by the letters of their equation."""
        own = self._axes.axes(product.labelled)
        values = dict(zip(product.values_term, self._axes.axes(product.values), strict=True))
        in_order = _with_heads_of(values, own, product.term, set(product.result))
        by_letter = dict(zip(product.term, in_order, strict=True))
        return ProductAxes(
            in_order=in_order,
            own=dict(zip(product.term, own, strict=True)),
            weights=by_letter,
            values=values,
            keys=_key_letters(product, by_letter),
        )

    def _layouts(
        self, product: WeightProduct, tracked: TrackedWeights, axes: ProductAxes, width: Axis
    ) -> tuple[Layout, Layout | None]:
        """Return the layouts of weights and values; None for values that have no such layout."""
        is_input = any(f.origin.is_feature and f.origin.is_input for f in width)
        is_known = any(f.origin.is_projected for f in width)
        is_known |= is_input and not tracked.is_product
        shared = set(product.values_term)
        layout = weights_layout(product.term, axes.in_order, axes.keys, shared, is_known)
        of_values = values_layout(
            product.values_term, tuple(axes.values.values()), product.values, layout
        )
        is_bare = tracked.is_product and tracked.same_rows is None and not is_known
        of_weights = with_uncertain_roles(
            layout, product.term, axes.in_order, axes.values, is_bare=is_bare
        )
        return of_weights, of_values

    def _is_attention(
        self, product: WeightProduct, tracked: TrackedWeights, axes: ProductAxes, *, is_part: bool
    ) -> bool:
        """Return whether a product sums values over positions, by weights of a normaliser."""
        if not axes.keys or is_mixture(product, tracked, axes):
            return False
        is_constant = self._axes.is_constant(product.values)
        if is_constant and not self._axes.is_constant(product.operand) and not is_part:
            return False
        is_transition = self._axes.is_constant(product.labelled)  # as of a Markov model
        return not (is_transition and is_over_queries(tracked, axes))

    def _positions(
        self, product: WeightProduct, arranged: Tensor, layout: Layout, of_values: Layout | None
    ) -> WindowPositions | None:
        """Return the positions of the queries and keys of windows; None if they are unknown."""
        if of_values is None:
            return None
        weights, values = self._rows.source(product.labelled), self._rows.source(product.values)
        return positions_of_weights(arranged, weights, layout, values, of_values)

    def _is_reordered(
        self, product: WeightProduct, tracked: TrackedWeights, layout: Layout
    ) -> bool:
        """Return whether queries, keys or values may have been brought to another order.

        The keys of a generation step are in order, though beams reorder the items of a cache.
        """
        if tracked.from_cache and layout.size("query") == 1:
            return False
        tensors = product.labelled, product.values
        return any(self._rows.source(x).is_reordered for x in tensors)

    def _learned_keys(
        self, product: WeightProduct, layout: Layout, of_values: Layout | None
    ) -> tuple[int, int]:
        """Return how many keys before and after those of a text are learned, or zeros."""
        if of_values is None or not 1 < layout.size("query") < layout.size("key"):
            return 0, 0
        weights, values = self._rows.source(product.labelled), self._rows.source(product.values)
        return learned_keys(weights, layout, values, of_values, layout)


def _values(
    product: WeightProduct, layout: Layout, of_values: Layout | None, order: RowOrder | None
) -> Tensor | None:
    """Return values (batch · window, key head, key, width) if they fit the weights."""
    if of_values is None:
        return None
    values = arrange_values(product.values.detach(), of_values, layout)
    if values is None or order is None:
        return values
    return order.sort_keys(values, layout.size("head"))


def _with_heads_of(
    values: dict[Any, Axis], axes: Axes, term: Letters, result: set[Hashable]
) -> Axes:
    """Return the axes of weights, with the heads of the values where theirs are unknown.

    They are if a function that no mode sees, such as a scripted one, computed the scores. Other
    axes are unknown, too, if several of the weights' were split from one.
    """
    known = {f.origin.root for axis in values.values() for f in axis}
    found: list[Axis] = []
    for letter, axis in zip(term, axes, strict=True):
        other = values.get(letter, ())
        if other and letter in result and _is_split(axis, letter, axes, term):
            found.append(other)
            continue
        is_unknown = bool(axis) and not any(f.origin.root in known for f in axis)
        has_heads = any(f.origin.is_feature for f in other)
        is_head = any(f.origin.is_feature or f.origin.is_compared for f in axis)
        found.append(other if is_unknown and has_heads and not is_head else axis)
    return tuple(found)


def _is_split(axis: Axis, letter: Any, axes: Axes, term: Letters) -> bool:
    """Return whether an axis was split from one of which the weights have another part."""
    own = {f.origin.root for f in axis if not f.origin.is_feature and not f.origin.is_compared}
    others = {f.origin for x, a in zip(term, axes, strict=True) if x != letter for f in a}
    return bool(own & others)


def _key_letters(product: WeightProduct, by_letter: dict[Any, Axis]) -> set[Any]:
    """Return the axes that are summed over; heads may be, too, by an output projection."""
    keys = {x for x in product.term if x in product.values_term and x not in product.result}
    heads = {x for x in keys if by_letter[x] and all(f.origin.is_feature for f in by_letter[x])}
    return keys - heads if keys > heads else keys


def _same_rows(
    tracked: TrackedWeights, layout: Layout, positions: WindowPositions | None
) -> bool | None:
    """Return whether queries and keys are the same rows; those of two inputs are not."""
    if positions is not None and positions.is_over_same_rows:
        return True
    if tracked.same_rows is not None or not tracked.is_product:
        return tracked.same_rows
    roots = [
        [p.factor.origin.root for p in layout.pieces if p.role == role and p.factor]
        for role in ("query", "key")
    ]
    are_inputs = all(roots) and all(root.is_input for side in roots for root in side)
    return False if are_inputs and not set(roots[0]) & set(roots[1]) else None


def _selected_part(
    tracked: TrackedWeights, softmax_origins: frozenset[Origin], axes: Axes, width: Axis
) -> Part | None:
    """Return which axis of the softmax an index was selected of, if one was.

    Heads may also be stacked; they multiply a part each of the width of the values.
    """
    missing = softmax_origins - origins_of(axes)
    if tracked.applied or not missing or not origins_of(axes) <= softmax_origins:
        return None
    is_stack = all(origin.is_stack for origin in missing)
    is_part = any(f.origin.is_feature and f.size < f.origin.size for f in width)
    is_head = all(origin.is_feature for origin in missing) or (is_stack and is_part)
    if is_head:
        return "head"
    if tracked.is_single:
        return "key"
    return "query" if all(origin.is_compared for origin in missing) else "batch"
