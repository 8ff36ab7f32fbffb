"""Attention written out in the model: normalised scores, followed until they multiply values.

`tracker.py` follows weights from where they are normalised (`normalisers.py`; `pairs.py` has scores
of pairs of rows that are no products) through what is done to them (`propagation.py`) to a product
(`products.py`), at once or element by element (`pending.py`), that sums them over the keys;
`tracked.py` has what is known of them on the way. `matching.py` reads a product as attention,
unless it is a mixture of something else than positions (`mixtures.py`); `doubts.py` has what cannot
be known of it, and `edges.py` whether a sum by index is attention over the edges of a graph;
`pools.py` finds linear attention, and `score_products.py` the queries and keys. After the product,
`late.py` reads a division by the sum of the weights, and `rescaling.py` finds contexts of blocks of
keys that are added up.
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
