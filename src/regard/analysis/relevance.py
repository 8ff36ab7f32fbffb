"""Relevance propagation through self- and cross-attention (Chefer, Gur and Wolf 2021).

"Generic Attention-model Explainability for Interpreting Bi-Modal and Encoder-Decoder Transformers".
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from regard.trace import Array

_EPSILON = 1e-12  # keeps rows of zeros from dividing by zero


class Layer(NamedTuple):
    """One attention map between two token lists, and the gradient of the output by its weights."""

    queries: str
    keys: str
    weights: Array  # (head, query, key)
    gradient: Array  # (head, query, key)

    @property
    def mean_relevance(self) -> Array:
        """The mean over heads of the positive part of gradient × weight (equation 5)."""
        return np.asarray(np.maximum(self.gradient * self.weights, 0).mean(0))


def propagate_relevance(layers: Sequence[Layer]) -> dict[tuple[str, str], Array]:
    """Propagate relevance through attention layers, in the order of their calls.

    With Ā the mean over heads of (∇A ⊙ A)⁺, relevance begins as R^ss = I and R^sq = 0. Then

        self-attention of s:        R^ss += Ā R^ss      R^sq += Ā R^sq                  (6, 7)
        cross-attention of s to q:  R^sq += (R̄^ss)ᵀ Ā R̄^qq      R^ss += Ā R^qs      (10, 11)

    where R̄ = (R - I) with rows normalised to 1, plus I (8, 9).

    Returns:
        R by (list of the rows, list of the columns): the relevance of each column's token for the
        row's. Pairs of lists that no attention connects are left out.
    """
    sizes = {layer.queries: layer.weights.shape[1] for layer in layers}
    sizes |= {layer.keys: layer.weights.shape[2] for layer in layers}
    relevance: dict[tuple[str, str], Array] = {(s, s): np.eye(n) for s, n in sizes.items()}
    for layer in layers:
        s, q, mean = layer.queries, layer.keys, layer.mean_relevance
        if s == q:
            added = {
                (s, other): mean @ known for (row, other), known in relevance.items() if row == s
            }
        else:
            own, context = (_normalise(relevance[x, x]) for x in (s, q))
            added = {(s, q): own.T @ mean @ context}
            if (q, s) in relevance:
                added[s, s] = mean @ relevance[q, s]
        for pair, value in added.items():
            relevance[pair] = relevance.get(pair, 0) + value
    return relevance


def _normalise(relevance: Array) -> Array:
    """Normalise the rows of self-relevance without its identity (equations 8 and 9)."""
    identity = np.eye(len(relevance))
    beyond = relevance - identity
    return np.asarray(beyond / np.maximum(beyond.sum(-1, keepdims=True), _EPSILON) + identity)
