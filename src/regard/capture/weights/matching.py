"""Whether a product of weights is attention over positions, and which axis of it is which."""

from collections.abc import Hashable
from dataclasses import replace
from math import prod
from typing import Any

from torch import Tensor

from regard.capture.axes import Axes, Axis, AxisTracker, Factor, Origin, origins_of
from regard.capture.calls import MaterializedWeights
from regard.capture.functions import Letters
from regard.capture.layout import (
    Layout,
    Part,
    WindowPositions,
    arrange_values,
    call_axes,
    values_layout,
    weights_layout,
)
from regard.capture.rows import RowTracker, learned_keys, positions_of_weights
from regard.capture.weights.doubts import with_doubts
from regard.capture.weights.normalisers import NORMALISERS
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
        term, values, values_term = product.term, product.values, product.values_term
        own = self._axes.axes(product.labelled)
        axes = self._with_heads_of(values, values_term, own, term, set(product.result))
        by_letter = dict(zip(term, axes, strict=True))
        keys = _key_letters(product, by_letter)
        values_axes = dict(zip(values_term, self._axes.axes(values), strict=True))
        weight_keys = [f for x in term if x in keys for f in by_letter[x]]
        value_keys = [f for x in values_term if x in keys for f in values_axes[x]]
        num_keys = prod(f.size for f in weight_keys)
        is_part = tracked.is_product and num_keys < tracked.num_keys  # others are computed
        is_constant = self._axes.is_constant(values) and not self._axes.is_constant(product.operand)
        is_constant &= not is_part
        if not keys or is_constant or _is_mixture(tracked, weight_keys, value_keys):
            return None
        is_compared = tracked.is_product and any(f.origin.is_compared for f in weight_keys)
        if not is_compared and _weighs_versions(term, by_letter, keys, value_keys):
            return None
        own_by_letter = dict(zip(term, own, strict=True))
        if _is_over_heads(tracked, own_by_letter, by_letter, keys):
            return None
        if not tracked.is_product and _weighs_features(term, by_letter, set(values_term), keys):
            return None
        own_keys = origins_of(own_by_letter[x] for x in keys)
        is_over_queries = bool(tracked.normalised) and not tracked.normalised & own_keys
        if is_over_queries and self._axes.is_constant(product.labelled):
            return None  # parameters, as the transitions of a Markov model
        if tracked.normaliser == "exp" and not _has_width(product):
            return None  # a kernel times a vector, as iterations of Sinkhorn's
        is_element_wise = tracked.normaliser in NORMALISERS
        if is_element_wise and not _has_width(product) and _are_features(value_keys):
            return None  # heads summed with a weight each, as scores of an indexer
        width = tuple(f for x in values_term if x not in term for f in values_axes[x])
        is_known = any(f.origin.is_feature and f.origin.is_input for f in width)
        known = any(f.origin.is_projected for f in width) or (is_known and not tracked.is_product)
        layout = weights_layout(term, axes, keys, set(values_term), known)
        of_values = values_layout(values_term, self._axes.axes(values), values, layout)
        found = None if of_values is None else arrange_values(values.detach(), of_values, layout)
        name = tracked.normaliser
        is_bare = tracked.is_product and tracked.same_rows is None and not known
        layout = with_doubts(layout, term, axes, values_axes, is_bare=is_bare)
        own_keys = origins_of(own_by_letter[x] for x in keys)
        if tracked.normalised and not tracked.normalised & own_keys and not tracked.is_skewed:
            name += " over queries"
        to_operand = product.to_operand
        arranged = layout.arrange(product.weights)
        has_windows, positions = layout.size("window") > 1, None
        if has_windows or tracked.is_skewed or is_part:
            positions = self._positions(product, arranged, layout, of_values)
        if tracked.is_skewed and (positions is None or not (has_windows or positions.are_in_order)):
            return None
        same_rows, leading_keys = _same_rows(tracked, layout, positions), 0
        if same_rows and not (extra_keys or has_windows or tracked.is_skewed):
            leading_keys, extra_keys = self._learned_keys(product, layout, of_values)
        axes_of_call = call_axes(layout, positions, name, tracked.applied)
        return MatchedAttention(
            call=MaterializedWeights(
                arranged,
                found,
                has_mask=tracked.has_mask,
                extra_keys=extra_keys,
                vectors=None if tracked.scores is None else vectors_of(tracked.scores, layout),
            ),
            axes=replace(axes_of_call, leading_keys=leading_keys),
            same_rows=same_rows,
            from_cache=tracked.from_cache,
            operand=product.operand,
            to_weights=layout.arrange
            if to_operand is None
            else lambda gradient: layout.arrange(to_operand(gradient)),
            roots=tracked.roots,
            part=_selected_part(tracked, softmax_origins, axes, width),
            position=product.position,
            multiplication=product.multiplication and product.multiplication.then(layout.arrange),
        )

    def _positions(
        self, product: WeightProduct, arranged: Tensor, layout: Layout, of_values: Layout | None
    ) -> WindowPositions | None:
        """Return the positions of the queries and keys of windows; None if they are unknown."""
        if of_values is None:
            return None
        weights, values = self._rows.source(product.labelled), self._rows.source(product.values)
        return positions_of_weights(arranged, weights, layout, values, of_values)

    def _learned_keys(
        self, product: WeightProduct, layout: Layout, of_values: Layout | None
    ) -> tuple[int, int]:
        """Return how many keys before and after those of a text are learned, or zeros."""
        if of_values is None or not 1 < layout.size("query") < layout.size("key"):
            return 0, 0
        weights, values = self._rows.source(product.labelled), self._rows.source(product.values)
        return learned_keys(weights, layout, values, of_values, layout)

    def _with_heads_of(
        self,
        values: Tensor,
        values_term: Letters,
        axes: Axes,
        term: Letters,
        result: set[Hashable],
    ) -> Axes:
        """Return the axes of weights, with the heads of the values where theirs are unknown.

        They are if a function that no mode sees, such as a scripted one, computed the scores. Other
        axes are unknown, too, if several of the weights' were split from one.
        """
        theirs = dict(zip(values_term, self._axes.axes(values), strict=True))
        known = {f.origin.root for axis in theirs.values() for f in axis}
        found: list[Axis] = []
        for letter, axis in zip(term, axes, strict=True):
            other = theirs.get(letter, ())
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


def _is_mixture(
    tracked: TrackedWeights, weight_keys: list[Factor], value_keys: list[Factor]
) -> bool:
    """Return whether the sum is over experts, features or layers rather than positions."""
    if not (tracked.is_product or tracked.normalised or weight_keys):
        return True  # a single one
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


def _is_over_heads(
    tracked: TrackedWeights, own: dict[Any, Axis], by_letter: dict[Any, Axis], keys: set[Any]
) -> bool:
    """Return whether scores were normalised over features that the values have, as capsules."""
    letters = [x for x, axis in own.items() if origins_of([axis]) & tracked.normalised]
    normalised = [f for x in letters for f in by_letter[x]]
    return (
        not keys & set(letters)
        and bool(normalised)
        and all(f.origin.is_feature for f in normalised)
    )


def _has_width(product: WeightProduct) -> bool:
    """Return whether values are vectors rather than numbers."""
    sizes = zip(product.values_term, product.values.shape, strict=True)
    return any(size > 1 for letter, size in sizes if letter not in product.term)


def _are_features(factors: list[Factor]) -> bool:
    return bool(factors) and all(f.origin.is_feature for f in factors)


def _weighs_versions(
    term: Letters, by_letter: dict[Any, Axis], keys: set[Any], value_keys: list[Factor]
) -> bool:
    """Return whether the sum is over versions of the same rows, such as branches of a network.

    They are stacked, and either were made by different parameters or have positions themselves.
    """
    stacks = [f.origin for f in value_keys if f.origin.is_stack]
    others = [by_letter[x] for x in term if x not in keys and by_letter[x]]
    rows = [axis for axis in others if not any(f.origin.is_feature for f in axis)]
    return any(origin.has_branches or len(rows) > 1 for origin in stacks)


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


def _weighs_features(
    term: Letters, by_letter: dict[Any, Axis], shared: set[Any], keys: set[Any]
) -> bool:
    """Return whether each feature has weights of its own, as in linear attention.

    Not if keys are features, too: then a projection predicts the weights of all pairs.
    """
    heads = {f.origin.root for x in term if x in shared - keys for f in by_letter[x]}
    heads -= {f.origin.root for x in keys for f in by_letter[x]}
    own = [f for x in term if x not in shared for f in by_letter[x] if f.origin.is_feature]
    return any(f.origin.root in heads for f in own)


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
