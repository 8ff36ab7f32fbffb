"""Differences between two traces: of two inputs, or of two checkpoints of a model."""

from typing import NamedTuple

import numpy as np

from regard.errors import RegardError
from regard.trace import Array, AttentionMap, Trace


class MapDifference(NamedTuple):
    """How the attention of one module differs between two traces."""

    name: str
    call: int
    heads: tuple[int, ...]
    weights: Array  # (head, query, key): the second trace's minus the first's
    total_variation: Array  # (head,): mean over queries of `½ Σ |difference|`, from 0 to 1


def difference(first: Trace, second: Trace) -> tuple[MapDifference, ...]:
    """Subtract the attention maps of one trace from those of another, module by module.

    Modules that only one trace has are left out, and so are queries that are padding in either
    trace from the total variation.

    Args:
        first: a trace.
        second: the trace that it is subtracted from.

    Raises:
        RegardError: if the traces have no module in common, or one has another shape in both.

    Example:
        >>> from regard.trace import build_translation_trace
        >>> one = build_translation_trace(["a", "b"], ["x"], cross=[[[[1.0, 0.0]]]])
        >>> two = build_translation_trace(["a", "b"], ["x"], cross=[[[[0.5, 0.5]]]])
        >>> difference(one, two)[0].total_variation.tolist()
        [0.5]
    """
    differences = []
    for one, other in _matching_maps(first, second):
        assert one.weights is not None and other.weights is not None, "checked before"
        weights = other.weights - one.weights
        rows = np.intersect1d(
            first.tokens[one.queries].non_padding, second.tokens[other.queries].non_padding
        )
        distances = np.abs(weights[:, rows]).sum(-1) / 2
        mean = distances.mean(-1) if len(rows) else np.zeros(len(weights))
        differences.append(MapDifference(one.name, one.call, one.heads, weights, mean))
    return tuple(differences)


def _matching_maps(first: Trace, second: Trace) -> list[tuple[AttentionMap, AttentionMap]]:
    """Pair the maps of the same module, call and call site; raise if they cannot be compared."""
    others = {(m.name, m.call, m.call_site): m for m in second.maps}
    pairs = [
        (m, others[key]) for m in first.maps if (key := (m.name, m.call, m.call_site)) in others
    ]
    if not pairs:
        raise RegardError(
            "traces must have modules of the same names to be compared, but they have "
            f"{_module_names(first)} and {_module_names(second)}"
        )
    for one, other in pairs:
        if one.shape != other.shape or one.heads != other.heads:
            raise RegardError(
                f"{one.name} must have the same heads and numbers of queries and keys in both "
                f"traces, but its shapes are {one.shape} and {other.shape}"
            )
        if one.weights is None or other.weights is None:
            raise RegardError(f"{one.name} is a summary, but only full weights can be compared")
    return pairs


def _module_names(trace: Trace) -> str:
    names = list(dict.fromkeys(m.name for m in trace.maps))
    return ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
