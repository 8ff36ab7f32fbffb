"""Whether a product of weights is attention over positions, and which axis of it is which."""

from typing import Any, Literal

from torch import Tensor

from regard.capture.axes import Axes, Axis, AxisTracker, Factor, Origin, origins_of
from regard.capture.calls import MaterializedWeights
from regard.capture.functions import Letters
from regard.capture.layout import arrange_values, call_axes, values_layout, weights_layout
from regard.capture.weights.score_products import vectors_of
from regard.capture.weights.tracked import MatchedAttention, TrackedWeights, WeightProduct


class ProductMatcher:
    """Reads products of weights with values by the labels of their axes."""

    def __init__(self, axes: AxisTracker) -> None:
        self._axes = axes

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
        labelled = product.operand if product.to_operand is None else product.weights
        axes = self._with_heads_of(values, values_term, self._axes.axes(labelled), term)
        by_letter = dict(zip(term, axes, strict=True))
        keys = _key_letters(product, by_letter)
        values_axes = dict(zip(values_term, self._axes.axes(values), strict=True))
        weight_keys = [f for x in term if x in keys for f in by_letter[x]]
        value_keys = [f for x in values_term if x in keys for f in values_axes[x]]
        is_constant = self._axes.is_constant(values) and not self._axes.is_constant(product.operand)
        if not keys or is_constant or _is_mixture(tracked, weight_keys, value_keys):
            return None
        if not tracked.is_product and _weighs_features(term, by_letter, set(values_term), keys):
            return None
        width = [f for x in values_term if x not in term for f in values_axes[x]]
        known = any(f.origin.is_projected for f in width)
        layout = weights_layout(term, axes, keys, set(values_term), known)
        of_values = values_layout(values_term, self._axes.axes(values), values, layout)
        found = None if of_values is None else arrange_values(values.detach(), of_values, layout)
        name = tracked.normaliser
        if tracked.normalised and not tracked.normalised & {f.origin for f in weight_keys}:
            name += " over queries"
        to_operand = product.to_operand
        return MatchedAttention(
            call=MaterializedWeights(
                layout.arrange(product.weights),
                found,
                has_mask=tracked.has_mask,
                extra_keys=extra_keys,
                vectors=None if tracked.scores is None else vectors_of(tracked.scores, layout),
            ),
            axes=call_axes(layout, of_values, name, tracked.applied),
            same_rows=tracked.same_rows,
            from_cache=tracked.from_cache,
            operand=product.operand,
            to_weights=layout.arrange
            if to_operand is None
            else lambda gradient: layout.arrange(to_operand(gradient)),
            is_sum=to_operand is not None,
            roots=tracked.roots,
            part=_selected_part(tracked, softmax_origins, axes),
            position=product.position,
            multiplication=product.multiplication and product.multiplication.then(layout.arrange),
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


def _key_letters(product: WeightProduct, by_letter: dict[Any, Axis]) -> set[Any]:
    """Return the axes that are summed over; heads may be, too, by an output projection."""
    keys = {x for x in product.term if x in product.values_term and x not in product.result}
    heads = {x for x in keys if by_letter[x] and all(f.origin.is_feature for f in by_letter[x])}
    return keys - heads if keys > heads else keys


def _is_mixture(
    tracked: TrackedWeights, weight_keys: list[Factor], value_keys: list[Factor]
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
    tracked: TrackedWeights, softmax_origins: frozenset[Origin], axes: Axes
) -> Literal["batch", "head"] | None:
    """Return which axis of the softmax an index was selected of, if one was."""
    missing = softmax_origins - origins_of(axes)
    if tracked.applied or not missing or not origins_of(axes) <= softmax_origins:
        return None
    return "head" if all(origin.is_feature for origin in missing) else "batch"
