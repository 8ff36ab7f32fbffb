"""What differs between two traces: two inputs, or two checkpoints of a model."""

from typing import NamedTuple

import numpy as np

from regard.trace import Array, AttentionMap, Trace


class Change(NamedTuple):
    """How the looks of one module changed."""

    name: str
    call: int
    heads: tuple[int, ...]
    weights: Array  # (head, query, key): the second trace's minus the first's
    moved: Array  # (head,): the mean share of weight that went elsewhere, 0 to 1


def difference(one: Trace, other: Trace) -> tuple[Change, ...]:
    """Subtract the looks of one trace from those of another, module by module.

    Queries that are padding in either trace do not count in what moved.
    """
    changes = []
    for mine, theirs in zip(*_paired(one, other), strict=True):
        assert mine.weights is not None and theirs.weights is not None, "both are whole"
        weights = theirs.weights - mine.weights
        rows = np.intersect1d(
            one.tokens[mine.queries].non_padding, other.tokens[theirs.queries].non_padding
        )
        moved = np.abs(weights[:, rows]).sum(-1) / 2
        mean = moved.mean(-1) if len(rows) else np.zeros(len(weights))
        changes.append(Change(mine.name, mine.call, mine.heads, weights, mean))
    return tuple(changes)


def _paired(one: Trace, other: Trace) -> tuple[list[AttentionMap], list[AttentionMap]]:
    theirs = {(look.name, look.call, look.call_site): look for look in other.maps}
    pairs = [
        (look, theirs[key])
        for look in one.maps
        if (key := (look.name, look.call, look.call_site)) in theirs
    ]
    if not pairs:
        raise ValueError(
            "traces must have modules of the same names to be compared, but they have "
            f"{_names(one)} and {_names(other)}"
        )
    for mine, yours in pairs:
        if mine.shape != yours.shape or mine.heads != yours.heads:
            raise ValueError(
                f"{mine.name} must have looked from as many tokens at as many in both traces, but "
                f"it has heads, queries, keys {mine.shape} and {yours.shape}"
            )
        if mine.weights is None or yours.weights is None:
            raise ValueError(f"{mine.name} was reduced, and only whole weights can be compared")
    return [mine for mine, _ in pairs], [yours for _, yours in pairs]


def _names(trace: Trace) -> str:
    names = list(dict.fromkeys(look.name for look in trace.maps))
    return ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
