"""Attention across layers and heads: rollout, weighting by value norms, and head similarity."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from regard.errors import RegardError
from regard.trace import Array, AttentionMap, Trace

_EPSILON = 1e-12  # keeps rows of zeros from dividing by zero


def rollout(trace: Trace, tokens: str | None = None, *, residual: float = 0.5) -> Array:
    """Compute attention rollout, from each output position to each input position of a text.

    The product over layers of self-attention of residual · I + (1 - residual) · (mean over heads),
    with rows normalised to 1 (Abnar and Zuidema 2020, "Quantifying Attention Flow in
    Transformers").

    Each map is a layer. `attribute(…, method="rollout")` also knows which maps are heads of one.

    Args:
        trace: a trace with self-attention, causal or not, in the order of its layers.
        tokens: name of the token list whose self-attention is meant; by default that of the first
            self-attention, as of the encoder.
        residual: weight of the residual connection, from 0 to 1.

    Returns:
        (query, key).

    Raises:
        RegardError: if there is no self-attention over these tokens, or a map of it is a summary.

    Example:
        >>> from regard.trace import build_translation_trace
        >>> trace = build_translation_trace("ab", "x", encoder=[[[[1.0, 0.0], [1.0, 0.0]]]])
        >>> rollout(trace).tolist()
        [[1.0, 0.0], [0.5, 0.5]]
    """
    if not 0 <= residual <= 1:
        raise RegardError(f"residual must be between 0 and 1, but it is {residual}")
    over = [m for m in trace.maps if m.kind != "cross" and m.queries == m.keys]
    name = over[0].queries if over and tokens is None else tokens
    flow: Array | None = None
    for attention_map in over:
        if attention_map.queries != name:
            continue
        if attention_map.weights is None:
            raise RegardError(f"rollout needs full weights, but {attention_map.name} is a summary")
        mean = attention_map.weights.mean(0)
        mixed = residual * np.eye(len(mean)) + (1 - residual) * mean
        mixed /= np.maximum(mixed.sum(-1, keepdims=True), _EPSILON)
        flow = mixed if flow is None else mixed @ flow
    if flow is None:
        known = ", ".join(dict.fromkeys(m.queries for m in over)) or "none"
        raise RegardError(
            f"rollout needs self-attention{'' if name is None else f' over {name!r}'}; the trace "
            f"has it over: {known}"
        )
    return flow


def weight_by_value_norm(trace: Trace) -> Trace:
    """Multiply attention weights by the norms of the values, and normalise rows to 1.

    An idle head attends to a key whose value is near zero: its weights point there, but little
    flows from it (Kobayashi et al. 2020, "Attention is Not Only a Weight").

    Args:
        trace: a trace with full weights and value norms, as `Capture.trace` returns.

    Returns:
        The trace with these weights, which can be drawn and analysed as any other.

    Raises:
        RegardError: if a map lacks full weights or value norms.

    Example:
        >>> from regard.trace import build_translation_trace
        >>> trace = build_translation_trace(["<s>", "cat"], ["chat"], cross=[[[[0.75, 0.25]]]])
        >>> with_norms = replace(trace.maps[0], value_norms=np.array([[0.1, 2.7]]))
        >>> weight_by_value_norm(replace(trace, maps=(with_norms,))).maps[0].weights.round(2)
        array([[[0.1, 0.9]]])
    """
    return replace(trace, maps=tuple(map(_weight_by_value_norm, trace.maps)))


def _weight_by_value_norm(attention_map: AttentionMap) -> AttentionMap:
    if attention_map.weights is None or attention_map.value_norms is None:
        missing = "weights" if attention_map.weights is None else "value norms"
        raise RegardError(
            f"{attention_map.name} must have full weights and value norms, but lacks {missing}"
        )
    weighted = attention_map.weights * attention_map.value_norms[:, None]
    weighted = weighted / np.maximum(weighted.sum(-1, keepdims=True), _EPSILON)
    return replace(attention_map, weights=weighted)


def head_similarity(
    trace: Trace, maps: Sequence[AttentionMap] | None = None
) -> tuple[Array, list[str]]:
    """Compare every head with every other: 1 minus the mean Jensen-Shannon divergence in bits.

    1 means equal distributions for each query, 0 no overlap. Queries that are padding are left
    out; if all of them are, heads count as equal.

    Args:
        trace: the trace.
        maps: maps to compare, all between the same token lists; all maps of the trace by default.

    Returns:
        Similarities (head, head), and the names of the heads.

    Raises:
        RegardError: if maps are between different token lists, or are summaries.

    Example:
        >>> from regard.trace import build_translation_trace
        >>> straight, crossed = [[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]
        >>> trace = build_translation_trace("ab", "xy", cross=[[straight, straight, crossed]])
        >>> similarities, names = head_similarity(trace)
        >>> similarities.tolist(), names[2]
        ([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]], 'cross.0 head 2')
    """
    chosen = trace.maps if maps is None else maps
    axes = {(m.queries, m.keys) for m in chosen}
    if len(axes) != 1 or any(m.weights is None for m in chosen):
        raise RegardError(
            "maps must have full weights and share their token lists, but they are between "
            f"{', '.join(sorted(' and '.join(pair) for pair in axes))}; "
            "maps=trace.layers('self') would do"
        )
    rows = trace.tokens[chosen[0].queries].non_padding
    heads = np.concatenate([m.weights[:, rows] for m in chosen if m.weights is not None])
    names = [f"{m.name} head {head}" for m in chosen for head in m.heads]
    similarities = np.ones((len(heads), len(heads)))
    for n in range(len(heads) if len(rows) else 0):
        similarities[n] = 1 - _jensen_shannon(heads[n][None], heads).mean(-1)
    return similarities, names


def _jensen_shannon(one: Array, other: Array) -> Array:
    mixture = (one + other) / 2
    return np.maximum(0, _entropy_bits(mixture) - (_entropy_bits(one) + _entropy_bits(other)) / 2)


def _entropy_bits(weights: Array) -> Array:
    return np.asarray(-(weights * np.log2(np.where(weights > 0, weights, 1))).sum(-1))
