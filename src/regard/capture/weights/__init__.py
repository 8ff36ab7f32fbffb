"""Attention written out in the model: normalised scores, followed until they multiply values.

`tracker.py` decides what each function does with weights, and calls one of these:

    normalisers.py            a softmax, or exponentials divided by their sum: weights start here
    pairs.py                  scores of pairs of rows that are no products, as additive ones
    propagation.py            masks, dropout, layouts, mixing of heads: still weights
    products.py               a product: of weights with values, or something else?
    elementwise_products.py   weights times values, summed over the keys by a later function
    edges.py                  the same, summed by index: attention over the edges of a graph
    unnormalised_products.py  exponentials times values, divided by their sum by a later function
    matching.py               a product with values as attention: which axis is which
    ambiguity.py              what the labels of axes leave open
    mixtures.py               sums over experts, features or layers: no attention
    linear_attention.py       softmaxes over features whose contexts are multiplied with queries
    rescaled_contexts.py      softmaxes over blocks of keys whose contexts are added up

`tracked.py` has what is known of weights on the way, and of the softmaxes that they come from.
`score_products.py` follows queries and keys from their product to the softmax, if they are kept.
"""

from regard.capture.weights.score_products import ScoreTracker
from regard.capture.weights.tracked import SCATTERED, MatchedAttention, Multiplication
from regard.capture.weights.tracker import WeightTracker, appended_keys

__all__ = [
    "SCATTERED",
    "MatchedAttention",
    "Multiplication",
    "ScoreTracker",
    "WeightTracker",
    "appended_keys",
]
