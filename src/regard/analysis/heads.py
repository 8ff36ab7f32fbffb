"""What each head does: how sharply, how far and where it looks, and the role that this makes."""

from typing import NamedTuple

import numpy as np

from regard.trace import Array, AttentionMap, Trace, summarize_weights

MOST = 0.5  # the share of a head's weight from which a role is named after it
SHARP, FLAT = 0.25, 0.9  # flatness below and above which a head is called so


class Heads(NamedTuple):
    """Statistics of the heads of one look, (head,) each: means over the queries that count.

    Queries that are padding, and those that look nowhere, are left out of every one.
    """

    entropy: Array  # nats
    flatness: Array  # entropy / that of a look at all in sight alike: 0 to 1
    distance: Array  # mean of |key - query|
    sink: Array  # share of the key that gets most
    sink_key: Array  # the position of that key
    itself: Array  # share of the key at the query's own position
    previous: Array
    following: Array
    roles: tuple[str, ...]


def heads(trace: Trace, look: AttentionMap) -> Heads:
    """Measure the heads of a look.

    A role is the first of these that fits. "previous", "following", "itself": half the weight or
    more is there. "sink": half or more goes to one key, whoever looks. "sharp": flatness below a
    quarter; "flat": above nine tenths; else "mixed". From one text to another, own positions
    mean nothing, and a head is only sink, sharp, flat or mixed. Of reduced looks, shares count
    the strongest keys of each row only, and the sink is that of all queries, padding too.
    """
    rows = trace.tokens[look.queries].non_padding
    small = summarize_weights(look.weights) if look.weights is not None else look.summary
    assert small is not None, "what is not whole is reduced"
    looking = (small.top_weights[:, rows] > 0).any(-1)
    keys, weights = _strongest(look, rows)

    def mean(numbers: Array) -> Array:
        return np.asarray((numbers * looking).sum(-1) / np.maximum(1, looking.sum(-1)))

    def share(step: int) -> Array:
        return mean((weights * (keys == rows[:, None] + step)).sum(-1))

    most = np.log(np.maximum(2, _in_sight(trace, look)[rows]))
    flatness = mean(np.minimum(1, small.entropy[:, rows] / most))
    received = small.received
    if look.weights is not None:
        received = look.weights[:, rows].sum(1) / np.maximum(1, looking.sum(-1, keepdims=True))
    sink, near = (
        received.max(-1),
        {"previous": share(-1), "following": share(1), "itself": share(0)},
    )
    named = {} if look.kind == "cross" else near
    return Heads(
        entropy=mean(small.entropy[:, rows]),
        flatness=flatness,
        distance=mean(small.distance[:, rows]),
        sink=sink,
        sink_key=received.argmax(-1),
        **near,
        roles=tuple(_role(n, named | {"sink": sink}, flatness) for n in range(len(sink))),
    )


def table(trace: Trace) -> str:
    """Write one line for each head of a trace."""
    head_line = ("site", "call", "kind", "head", "role", "flatness", "distance", "sink")
    lines: list[tuple[str, ...]] = [head_line]
    for look in trace.maps:
        found = heads(trace, look)
        for n, head in enumerate(look.heads):
            numbers = (found.flatness[n], found.distance[n], found.sink[n])
            site = (look.name, str(look.call), look.kind, str(head), found.roles[n])
            lines.append((*site, *(f"{number:.2f}" for number in numbers)))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def _strongest(look: AttentionMap, rows: Array) -> tuple[Array, Array]:
    """Give keys and their weights: all of them, or the strongest of each row."""
    if look.weights is not None:
        return np.arange(look.shape[2]), look.weights[:, rows]
    assert look.summary is not None, "what is not whole is reduced"
    return look.summary.top_keys[:, rows], look.summary.top_weights[:, rows]


def _in_sight(trace: Trace, look: AttentionMap) -> Array:
    """Count the keys that each query could see."""
    real = np.zeros(look.shape[2])
    real[trace.tokens[look.keys].non_padding] = 1
    if look.kind != "causal":
        return np.full(look.shape[1], real.sum())
    queries, keys = look.shape[1:]
    last = np.minimum(np.arange(queries), keys - 1)  # who stands behind all keys sees all
    return np.asarray(real.cumsum()[last])


def _role(head: int, shares: dict[str, Array], flatness: Array) -> str:
    for role, share in shares.items():
        if share[head] >= MOST:
            return role
    if flatness[head] < SHARP:
        return "sharp"
    return "flat" if flatness[head] > FLAT else "mixed"
