"""Statistics of each head: entropy, distance, sinks; and induction heads."""

from typing import Any, NamedTuple

import numpy as np

from regard._support.text import format_table
from regard.errors import RegardError
from regard.trace import Array, AttentionMap, Trace, summarize_weights

MIN_ROLE_SHARE = 0.5  # share of a head's weight from which a role is named after it
MAX_SHARP_ENTROPY, MIN_FLAT_ENTROPY = 0.25, 0.9  # of the normalized entropy


class HeadStatistics(NamedTuple):
    """Statistics of the heads of one attention map, (head,) each: means over queries.

    Queries that are padding and fully masked queries are left out.
    """

    entropy: Array  # nats
    normalized_entropy: Array  # entropy / that of uniform attention to all visible keys: 0 to 1
    distance: Array  # mean of `|key - query|`
    sink: Array  # share of the key that receives most, the attention sink
    sink_key: Array  # position of that key
    itself: Array  # share of the key at the query's own position
    previous: Array  # share of the key before
    following: Array  # share of the key after
    roles: tuple[str, ...]


def head_statistics(trace: Trace, attention_map: AttentionMap) -> HeadStatistics:
    """Measure the heads of an attention map, and name a role for each.

    The role is the first of these that fits. "previous", "following", "itself": at least half the
    weight goes there (as in Clark et al. 2019, "What Does BERT Look At?"). "sink": at least half
    goes to one key, whatever the query. "sharp": normalized entropy below 0.25; "flat": above
    0.9; otherwise "mixed". In cross-attention positions are not comparable, and a head is only
    sink, sharp, flat or mixed. For summaries, shares count the heaviest keys of each row only, and
    the sink is that of all queries, including padding.

    Args:
        trace: the trace that has the map, for its token lists.
        attention_map: one of the trace's maps.

    Returns:
        Statistics and roles of its heads.

    Example:
        >>> from regard.trace import build_translation_trace
        >>> previous, uniform = [[1.0, 0.0], [1.0, 0.0]], [[0.5, 0.5], [0.5, 0.5]]
        >>> trace = build_translation_trace(["a", "b"], ["x"], encoder=[[previous, uniform]])
        >>> statistics = head_statistics(trace, trace.maps[0])
        >>> statistics.sink.tolist(), statistics.normalized_entropy.round(2).tolist()
        ([1.0, 0.5], [0.0, 1.0])
    """
    rows = trace.tokens[attention_map.queries].non_padding
    if attention_map.weights is not None:
        summary = summarize_weights(attention_map.weights)
    else:
        assert attention_map.summary is not None, "a map has weights or a summary"
        summary = attention_map.summary
    attends = (summary.top_weights[:, rows] > 0).any(-1)
    keys, weights = _heaviest(attention_map, rows)

    def mean(values: Array) -> Array:
        return np.asarray((values * attends).sum(-1) / np.maximum(1, attends.sum(-1)))

    def share(offset: int) -> Array:
        return mean((weights * (keys == rows[:, None] + offset)).sum(-1))

    max_entropy = np.log(np.maximum(2, _visible_keys(trace, attention_map)[rows]))
    normalized_entropy = mean(np.minimum(1, summary.entropy[:, rows] / max_entropy))
    received = summary.received
    if attention_map.weights is not None:
        counts = np.maximum(1, attends.sum(-1, keepdims=True))
        received = attention_map.weights[:, rows].sum(1) / counts
    sink = received.max(-1)
    neighbours = {"previous": share(-1), "following": share(1), "itself": share(0)}
    shares = {} if attention_map.kind == "cross" else neighbours
    return HeadStatistics(
        entropy=mean(summary.entropy[:, rows]),
        normalized_entropy=normalized_entropy,
        distance=mean(summary.distance[:, rows]),
        sink=sink,
        sink_key=received.argmax(-1),
        **neighbours,
        roles=tuple(
            _role(n, shares | {"sink": sink}, normalized_entropy) for n in range(len(sink))
        ),
    )


def head_table(trace: Trace) -> str:
    """Return a text table of `head_statistics`, one line per head of the trace.

    Example:
        >>> from regard.trace import build_translation_trace
        >>> print(head_table(build_translation_trace(["a", "b"], ["x"], cross=[[[[0.5, 0.5]]]])))
        module   call  kind   head  role  norm_entropy  distance  sink
        cross.0  0     cross  0     sink  1.00          0.50      0.50
    """
    header = ("module", "call", "kind", "head", "role", "norm_entropy", "distance", "sink")
    lines: list[tuple[str, ...]] = [header]
    for m in trace.maps:
        statistics = head_statistics(trace, m)
        columns = (statistics.normalized_entropy, statistics.distance, statistics.sink)
        for n, head in enumerate(m.heads):
            labels = (m.name, str(m.call), m.kind, str(head), statistics.roles[n])
            lines.append((*labels, *(f"{column[n]:.2f}" for column in columns)))
    return format_table(lines)


def _heaviest(attention_map: AttentionMap, rows: Array) -> tuple[Array, Array]:
    """Return keys and their weights for some rows: all of them, or the heaviest of each row."""
    if attention_map.weights is not None:
        return np.arange(attention_map.shape[2]), attention_map.weights[:, rows]
    assert attention_map.summary is not None, "a map has weights or a summary"
    return attention_map.summary.top_keys[:, rows], attention_map.summary.top_weights[:, rows]


def _visible_keys(trace: Trace, attention_map: AttentionMap) -> Array:
    """Count the keys that each query may attend to."""
    _, queries, keys = attention_map.shape
    is_text = np.zeros(keys)
    is_text[trace.tokens[attention_map.keys].non_padding] = 1
    if attention_map.kind != "causal":
        return np.full(queries, is_text.sum())
    last = np.minimum(np.arange(queries), keys - 1)  # queries after the last key see all keys
    return np.asarray(is_text.cumsum()[last])


def _role(head: int, shares: dict[str, Array], normalized_entropy: Array) -> str:
    for role, share in shares.items():
        if share[head] >= MIN_ROLE_SHARE:
            return role
    if normalized_entropy[head] < MAX_SHARP_ENTROPY:
        return "sharp"
    return "flat" if normalized_entropy[head] > MIN_FLAT_ENTROPY else "mixed"


def induction_scores(weights: Any, tokens: Any) -> Array:
    """Return the induction score of each head of causal self-attention.

    It is the weight that a query gives to the keys right after earlier occurrences of its own token
    (prefix matching, Olsson et al. 2022, "In-context Learning and Induction Heads"), as a mean over
    the queries whose token has occurred before. A head with a score near 1 retrieves the token that
    followed the last time, by which models of two or more layers copy repeated text.

    Args:
        weights: (batch, head, query, key), as `Capture.weights` returns them.
        tokens: ids (batch, position), or any values that can be compared.

    Returns:
        The scores, (head,).

    Raises:
        RegardError: if the shapes do not fit, or no token occurs twice.

    Example:
        >>> tokens = [["a", "b", "c", "a", "b"]]
        >>> weights = np.zeros((1, 2, 5, 5))
        >>> weights[0, 0, 3, 1] = weights[0, 0, 4, 2] = 1.0  # a -> b, b -> c
        >>> weights[0, 1, 3, 0] = weights[0, 1, 4, 1] = 1.0  # a -> a, b -> b
        >>> induction_scores(weights, tokens).tolist()
        [1.0, 0.0]
    """
    array, ids = (
        np.asarray(x.detach().cpu()) if hasattr(x, "detach") else np.asarray(x)
        for x in (weights, tokens)
    )
    if array.ndim != 4 or ids.ndim != 2 or array.shape[2:] != (ids.shape[1],) * 2:
        raise RegardError(
            "weights must be (batch, head, position, position) for tokens (batch, position), but "
            f"the shapes are {array.shape} and {ids.shape}"
        )
    is_same = ids[:, :, None] == ids[:, None, :]
    follows = np.zeros(is_same.shape, dtype=bool)
    follows[:, :, 1:] = np.tril(is_same, k=-1)[:, :, :-1]  # the key after an earlier occurrence
    repeated = follows.any(-1)
    if not repeated.any():
        raise RegardError("tokens must occur twice or more to measure induction, but none does")
    scores = np.einsum("bhqk,bqk->hbq", array.astype(np.float64), follows)
    return np.asarray(scores[:, repeated].mean(-1))
