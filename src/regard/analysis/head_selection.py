"""The head of a trace to look at first: the clearest alignment, or the most focused head."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from regard.analysis.heads import MIN_ROLE_SHARE, head_statistics
from regard.errors import RegardError
from regard.trace import Array, AttentionMap, Trace, merge_subwords

ALIGNMENT_CRITERION = "highest alignment score"
ENTROPY_CRITERION = "lowest entropy"


class SelectedHead(NamedTuple):
    """A head, and why it was selected."""

    layer: int
    """Position of its map among those that were compared."""
    head: int
    """The model's index of the head."""
    criterion: str
    """"highest alignment score" or "lowest entropy"."""
    value: float
    """The criterion's value for this head."""
    candidates: int
    """How many heads were compared."""


def select_head(
    trace: Trace,
    maps: Sequence[AttentionMap] | None = None,
    *,
    layer: int | None = None,
    head: int | None = None,
) -> SelectedHead:
    """Select the most informative head of a trace, without a reference.

    In cross-attention it is the head with the highest alignment score: the mean, over the words of
    the queries, of the weight of the link to the word's best source word, where a link counts only
    if it is the best in the other direction too. Links on which both directions agree are the
    precise part of a word alignment (Och and Ney 2003), and their weight measures the head's
    confidence: a head that attends to one word throughout scores low, and so does one that spreads
    its weight.

    In self-attention it is the head with the lowest mean entropy. Heads that give half of their
    weight to one key whatever the query, attention sinks, are passed over, unless all do.

    Special tokens and padding are left out of alignments, padding out of entropies. Maps that are
    summaries are compared by entropy.

    Args:
        trace: the trace.
        maps: maps to compare, of one kind; by default those of cross-attention, else all that are
            of the kind and between the token lists of the first.
        layer: position of a map, to choose among its heads only.
        head: a model's index of a head, to choose among layers only.

    Raises:
        RegardError: if there is no map or no such head.

    Example:
        >>> from regard.trace import build_translation_trace
        >>> clear, spread = [[0.9, 0.1], [0.2, 0.8]], [[0.5, 0.5], [0.5, 0.5]]
        >>> trace = build_translation_trace(["a", "b"], ["x", "y"], cross=[[spread, clear]])
        >>> select_head(trace)[:3]
        (0, 1, 'highest alignment score')
    """
    compared = _default_maps(trace) if maps is None else tuple(maps)
    candidates = [
        (n, position)
        for n, m in enumerate(compared)
        for position, number in enumerate(m.heads)
        if layer in (None, n) and head in (None, number)
    ]
    if not candidates:
        raise RegardError("there is no head to select: no attention map has one of these")
    if all(m.kind == "cross" and m.weights is not None for m in compared):
        scores = _alignment_scores(trace, compared)
        best = max(candidates, key=lambda at: scores[at[0]][at[1]])
        criterion, values = ALIGNMENT_CRITERION, scores
    else:
        statistics = [head_statistics(trace, m) for m in compared]
        criterion, values = ENTROPY_CRITERION, [s.entropy for s in statistics]
        best = min(
            candidates,
            key=lambda at: (statistics[at[0]].sink[at[1]] >= MIN_ROLE_SHARE, values[at[0]][at[1]]),
        )
    n, position = best
    value = float(values[n][position])
    return SelectedHead(n, compared[n].heads[position], criterion, value, len(candidates))


def _default_maps(trace: Trace) -> tuple[AttentionMap, ...]:
    first = next((m for m in trace.maps if m.kind == "cross"), next(iter(trace.maps), None))
    if first is None:
        return ()
    axes = (first.kind, first.queries, first.keys)
    return tuple(m for m in trace.maps if (m.kind, m.queries, m.keys) == axes)


def _alignment_scores(trace: Trace, maps: Sequence[AttentionMap]) -> list[Array]:
    """Return the alignment score of each head of each map, (head,) each."""
    merged = merge_subwords(Trace(tokens=trace.tokens, maps=tuple(maps)))
    return [_alignment_score(merged, m) for m in merged.maps]


def _alignment_score(trace: Trace, attention_map: AttentionMap) -> Array:
    queries, keys = (_text(trace, name) for name in (attention_map.queries, attention_map.keys))
    assert attention_map.weights is not None, "checked before"
    weights = attention_map.weights[:, queries][:, :, keys]
    if not weights.size:
        return np.zeros(len(weights))
    best_key, best_query = weights.argmax(-1), weights.argmax(-2)
    agrees = np.take_along_axis(best_query, best_key, axis=-1) == np.arange(len(queries))
    return np.asarray((weights.max(-1) * agrees).mean(-1))


def _text(trace: Trace, name: str) -> list[int]:
    """Return the positions that are neither special tokens nor padding."""
    tokens = trace.tokens[name]
    skipped = {*tokens.special, *tokens.padding}
    return [n for n in range(len(tokens)) if n not in skipped]
