"""What the labels of axes do not tell: whether keys are features, and what else an axis may be."""

from dataclasses import replace
from typing import Any

from regard.capture.axes import Axes, Axis, AxisTracker, origins_of
from regard.capture.functions import Letters
from regard.capture.layout import Layout
from regard.capture.weights.tracked import TrackedWeights, WeightProduct


def is_ambiguous(product: WeightProduct, tracked: TrackedWeights, labels: AxisTracker) -> bool:
    """Return whether it cannot be known if weights are over positions or over features.

    They were not compared with anything, and the axes of an input have no names.
    """
    values = list(zip(product.values_term, labels.axes(product.values), strict=True))
    own = list(zip(product.term, labels.axes(product.labelled), strict=True))
    copies = {x for x, axis in own if x in product.result and _is_repeated(axis)}
    features = {x for x, axis in values if any(f.origin.is_feature for f in axis)}
    has_width = not set(product.values_term) <= set(product.term)
    if features & copies or (features & product.result and not has_width):
        return True  # repeated for each feature, or each of them has its own
    if tracked.is_product:
        return False
    keys = origins_of(axis for x, axis in values if x in product.term and x not in product.result)
    if keys and all(origin.root.may_be_feature for origin in keys):
        return True
    own_keys = origins_of(axis for x, axis in own if x not in product.result)
    others = tracked.normalised - own_keys
    return others == tracked.normalised and any(x.root.is_input for x in others)


def with_uncertain_roles(
    layout: Layout, term: Letters, axes: Axes, values_axes: dict[Any, Axis], *, is_bare: bool
) -> Layout:
    """Add roles that are uncertain: queries that may be items of a batch, and heads.

    `is_bare` is whether nothing was projected. Three bare inputs may have heads in their batch.
    """
    uncertain = layout.uncertain
    roles = {piece.role for piece in layout.pieces if piece.factor}
    shared = [
        (axis, values_axes[x]) for x, axis in zip(term, axes, strict=True) if x in values_axes
    ]
    if "query" not in roles and any(map(_is_of_copies, shared)):
        uncertain += ("batch", "query")  # all of them attend to the same keys
    are_others = all(
        f.origin.root.is_input and f.origin.root not in {g.origin.root for g in other}
        for axis, other in shared
        for f in axis
    )
    if is_bare and are_others and {"batch", "query"} <= roles and "head" not in roles:
        uncertain += ("head",)
    return replace(layout, uncertain=tuple(dict.fromkeys(uncertain)))


def _is_repeated(axis: Axis) -> bool:
    return bool(axis) and all(f.origin.is_broadcast for f in axis)


def _is_of_copies(pair: tuple[Axis, Axis]) -> bool:
    """Return whether an axis of weights is one of copies in the values."""
    own, other = pair
    is_own = own and not any(f.origin.is_broadcast or f.origin.is_feature for f in own)
    are_copies = _is_repeated(other) and not any(f.origin.is_feature for f in other)
    return bool(is_own and are_copies)
