"""Which products of normalised weights are mixtures of something else than positions.

Experts, features, layers, branches and capsules are weighted by softmaxes, too.
"""

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

from regard.capture.axes import Axes, Axis, Factor, origins_of
from regard.capture.weights.normalisers import NORMALISERS
from regard.capture.weights.tracked import TrackedWeights, WeightProduct


@dataclass
class ProductAxes:
    """The axes of weights and values in a product, by the letters of its equation.

    Attributes:
        in_order: those of the weights, in their order.
        own: those of the weights as they were labelled, before heads were taken from the values.
        weights: those of `in_order`.
        values: of the values.
        keys: letters of the axes that are summed over.
    """

    in_order: Axes
    own: dict[Any, Axis]
    weights: dict[Any, Axis]
    values: dict[Any, Axis]
    keys: set[Any]

    @cached_property
    def weight_keys(self) -> list[Factor]:
        """Factors of the key axes of the weights."""
        return [f for letter, axis in self.weights.items() if letter in self.keys for f in axis]

    @cached_property
    def value_keys(self) -> list[Factor]:
        """Factors of the key axes of the values."""
        return [f for letter, axis in self.values.items() if letter in self.keys for f in axis]

    @property
    def own_keys(self) -> list[Axis]:
        """Key axes of the weights as they were labelled."""
        return [self.own[letter] for letter in self.keys]

    @property
    def num_keys(self) -> int:
        """Number of keys that the product sums over."""
        return prod(f.size for f in self.weight_keys)


def is_mixture(product: WeightProduct, tracked: TrackedWeights, axes: ProductAxes) -> bool:
    """Return whether weights are those of experts, features and the like, or scores only."""
    is_compared = tracked.is_product and any(f.origin.is_compared for f in axes.weight_keys)
    is_element_wise = tracked.normaliser in NORMALISERS
    return (
        _sums_no_positions(tracked, axes)
        or (not is_compared and _weighs_versions(axes))
        or _is_over_heads(tracked, axes)
        or (not tracked.is_product and _weighs_features(product, axes))
        # a kernel times a vector, as iterations of Sinkhorn's
        or (tracked.normaliser == "exp" and not _has_width(product))
        # numbers of pairs of rows that are summed over both, as over the positions of an image
        or (is_element_wise and not tracked.is_product and len(origins_of(axes.own_keys)) > 1)
        # heads summed with a weight each, as scores of an indexer
        or (is_element_wise and not _has_width(product) and _are_features(axes.value_keys))
    )


def is_over_queries(tracked: TrackedWeights, axes: ProductAxes) -> bool:
    """Return whether weights were normalised over another axis than that of the keys."""
    own_keys = origins_of(axes.own_keys)
    return bool(tracked.normalised) and not tracked.normalised & own_keys


def _sums_no_positions(tracked: TrackedWeights, axes: ProductAxes) -> bool:
    """Return whether the sum is over experts, features or layers rather than positions."""
    weight_keys, value_keys = axes.weight_keys, axes.value_keys
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


def _is_over_heads(tracked: TrackedWeights, axes: ProductAxes) -> bool:
    """Return whether scores were normalised over features that the values have, as capsules."""
    letters = [x for x, axis in axes.own.items() if origins_of([axis]) & tracked.normalised]
    normalised = [f for x in letters for f in axes.weights[x]]
    return not axes.keys & set(letters) and _are_features(normalised)


def _weighs_versions(axes: ProductAxes) -> bool:
    """Return whether the sum is over versions of the same rows, such as branches of a network.

    They are stacked, and either were made by different parameters or have positions themselves.
    """
    stacks = [f.origin for f in axes.value_keys if f.origin.is_stack]
    others = [axis for x, axis in axes.weights.items() if x not in axes.keys and axis]
    rows = [axis for axis in others if not any(f.origin.is_feature for f in axis)]
    return any(origin.has_branches or len(rows) > 1 for origin in stacks)


def _weighs_features(product: WeightProduct, axes: ProductAxes) -> bool:
    """Return whether each feature has weights of its own, as in linear attention.

    Not if keys are features, too: then a projection predicts the weights of all pairs.
    """
    shared = set(product.values_term)
    heads = {
        f.origin.root for x in axes.weights if x in shared - axes.keys for f in axes.weights[x]
    }
    heads -= {f.origin.root for x in axes.keys for f in axes.weights[x]}
    others = [f for x, axis in axes.weights.items() if x not in shared for f in axis]
    return any(f.origin.is_feature and f.origin.root in heads for f in others)


def _has_width(product: WeightProduct) -> bool:
    """Return whether values are vectors rather than numbers."""
    sizes = zip(product.values_term, product.values.shape, strict=True)
    return any(size > 1 for letter, size in sizes if letter not in product.term)


def _are_features(factors: list[Factor]) -> bool:
    return bool(factors) and all(f.origin.is_feature for f in factors)
