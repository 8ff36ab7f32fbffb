"""Looks taken together: through all layers, weighed by values, and head against head."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from regard.trace import Array, AttentionMap, Trace, to_array


def rollout(layers: Iterable[Any], residual: float = 0.5) -> Array:
    """Follow looks through layers of self-attention down to the input: (query, key).

    The product over layers of residual · 1 + (1 - residual) · the mean over heads, its rows made
    to sum to one (Abnar and Zuidema 2020). Layers are weights (head, query, key), first to last.
    """
    if not 0 <= residual <= 1:
        raise ValueError(f"residual must be a share from 0 to 1, but it is {residual}")
    flow: Array | None = None
    for layer in layers:
        weights = to_array(layer)
        if weights.ndim != 3 or weights.shape[-1] != weights.shape[-2]:
            raise ValueError(
                "layers must be (head, query, key) with as many queries as keys, but one has the "
                f"shape {weights.shape}"
            )
        mixed = residual * np.eye(weights.shape[-1]) + (1 - residual) * weights.mean(0)
        mixed /= np.maximum(mixed.sum(-1, keepdims=True), 1e-12)
        flow = mixed if flow is None else mixed @ flow
    if flow is None:
        raise ValueError("there must be one layer or more, but there is none")
    return flow


def value_weighted(look: AttentionMap) -> AttentionMap:
    """Weigh each look by how long the value is that it fetched; rows sum to one again.

    A head that has nothing to do rests on a key whose value is near zero. Weights alone say that
    it looks there; weighed by |v| it fetches next to nothing (Kobayashi et al. 2020).
    """
    if look.weights is None or look.value_norms is None:
        lacks = "weights" if look.weights is None else "value norms"
        raise ValueError(f"{look.name} must have whole weights and value norms, but lacks {lacks}")
    fetched = look.weights * look.value_norms[:, None]
    return replace(look, weights=fetched / np.maximum(fetched.sum(-1, keepdims=True), 1e-12))


def similarity(
    trace: Trace, looks: Sequence[AttentionMap] | None = None
) -> tuple[Array, list[str]]:
    """Compare every head with every other: 1 is the same look from each query, 0 none in common.

    1 - the mean Jensen-Shannon divergence, in bits, over queries that are not padding. Looks must
    share their tokens. Where all queries are padding, none differs. Returns (head, head) and the
    names of the heads.
    """
    chosen = trace.maps if looks is None else looks
    sides = {(look.queries, look.keys) for look in chosen}
    if len(sides) != 1 or any(look.weights is None for look in chosen):
        raise ValueError(
            "looks must be whole and share their tokens, but they are between "
            f"{', '.join(sorted(' and '.join(pair) for pair in sides))}; "
            "looks=trace.layers('self') would do"
        )
    rows = trace.tokens[chosen[0].queries].non_padding
    stack = np.concatenate([look.weights[:, rows] for look in chosen if look.weights is not None])
    names = [f"{look.name} head {head}" for look in chosen for head in look.heads]
    found = np.ones((len(stack), len(stack)))
    for n in range(len(stack) if len(rows) else 0):
        found[n] = 1 - _divergence(stack[n][None], stack).mean(-1)
    return found, names


def _divergence(one: Array, other: Array) -> Array:
    middle = (one + other) / 2
    return np.maximum(0, _bits(middle) - (_bits(one) + _bits(other)) / 2)


def _bits(weights: Array) -> Array:
    return np.asarray(-(weights * np.log2(np.where(weights > 0, weights, 1))).sum(-1))
