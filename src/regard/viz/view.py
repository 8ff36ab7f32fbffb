"""One head of a trace, chosen by name and number, with all that a picture of it shows."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from regard.errors import RegardError, unknown_name
from regard.trace import Array, AttentionMap, AttentionSummary, Trace
from regard.viz.detokenize import display_tokens

# what the attentions of a translator are called
_NAMES = {
    ("self", "source"): "encoder",
    ("causal", "target"): "decoder",
    ("self", "target"): "decoder",
    ("cross", "target"): "cross",
}


@dataclass(frozen=True, slots=True)
class Stack:
    """The layers of one attention: looks of one kind between the same two token lists."""

    name: str
    maps: tuple[AttentionMap, ...]


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """One head, ready to draw."""

    rows: Array  # (query, key)
    queries: tuple[str, ...]
    keys: tuple[str, ...]
    caption: str
    gold: tuple[tuple[int, int], ...] = ()  # (query, key)


def stacks(trace: Trace) -> tuple[Stack, ...]:
    """Sort the looks into stacks: encoder, decoder, cross, or by kind and tokens."""
    found: dict[tuple[str, str, str], list[AttentionMap]] = {}
    for look in trace.maps:
        found.setdefault((look.kind, look.queries, look.keys), []).append(look)
    kinds = [kind for kind, _, _ in found]
    named: list[Stack] = []
    for (kind, queries, keys), looks in found.items():
        alone = kind if kinds.count(kind) == 1 else f"{kind} {queries}-{keys}"
        name = _NAMES.get((kind, queries), alone) if "source" in trace.tokens else alone
        taken = name in [stack.name for stack in named]
        named.append(Stack(alone if taken else name, tuple(looks)))
    return tuple(named)


def stack(trace: Trace, name: str | None = None) -> Stack:
    """Find a stack by its name or its kind; by default cross-attention, else the first."""
    known = {one.name: one for one in stacks(trace)}
    if not known:
        raise RegardError("the trace holds no looks, so there is nothing to draw")
    if name is None:
        return known.get("cross") or next(iter(known.values()))
    of_kind = [one for one in known.values() if one.maps[0].kind == name]
    if name in known or len(of_kind) == 1:
        return known[name] if name in known else of_kind[0]
    raise unknown_name("attention of this trace", name, known)


def view(trace: Trace, kind: str | None = None, layer: int = 0, head: int | None = None) -> View:
    """Choose one head: `layer` counts within the kind, -1 is the last; `head` is a kept head."""
    chosen = stack(trace, kind)
    look = chosen.maps[_within(layer, range(len(chosen.maps)), f"layer of {chosen.name}")]
    number = look.heads[0] if head is None else head
    place = look.heads.index(_within(number, look.heads, f"head of {look.name}"))
    place_in_stack = chosen.maps.index(look)
    return View(
        dense(look, place),
        _texts(trace, look.queries),
        _texts(trace, look.keys),
        caption=caption(trace, chosen.name, layer=place_in_stack, head=look.heads[place]),
        gold=gold(trace, look),
    )


def caption(trace: Trace, kind: str, layer: int | None = None, head: int | None = None) -> str:
    """Say of which model, attention, layer and head a picture is."""
    places = [kind]
    if layer is not None:
        places.append(f"layer {layer}")
    if head is not None:
        places.append(f"head {head}")
    return " · ".join(filter(None, (trace.model, ", ".join(places))))


def dense(look: AttentionMap, place: int) -> Array:
    """Give one head's weights (query, key); of a reduced look, its tiles and its strongest."""
    if look.weights is not None:
        return np.asarray(look.weights[place])
    assert look.summary is not None, "a look is whole or reduced"
    return _rebuilt(look.summary, place, look.shape[1], look.shape[2])


def gold(trace: Trace, look: AttentionMap) -> tuple[tuple[int, int], ...]:
    """Give the cells of the gold alignment: all pieces of both words of each link."""
    if trace.gold is None or (look.queries, look.keys) != ("target", "source"):
        return ()
    sides = [trace.tokens[name] for name in ("source", "target")]
    words = [range(len(side)) if side.words is None else side.words for side in sides]
    links = set(trace.gold)
    return tuple(
        (query, key)
        for query, target in enumerate(words[1])
        for key, source in enumerate(words[0])
        if (source, target) in links
    )


def _texts(trace: Trace, name: str) -> tuple[str, ...]:
    tokens = trace.tokens[name]
    return display_tokens(tokens.pieces, {*tokens.special, *tokens.padding})


def _within(number: int, known: Sequence[int], what: str) -> int:
    if number < 0 and isinstance(known, range):
        number += len(known)
    if number not in known:
        choices = ", ".join(map(str, known))
        raise RegardError(f"no {what} has the number {number}. Choose from: {choices}.")
    return number


def _rebuilt(reduced: AttentionSummary, place: int, queries: int, keys: int) -> Array:
    tiles = reduced.tiles[place]
    rows, columns = (
        np.arange(1, tiles.shape[axis] + 1) * count // tiles.shape[axis]
        for axis, count in enumerate((queries, keys))
    )
    row = np.searchsorted(rows, np.arange(queries), side="right")
    column = np.searchsorted(columns, np.arange(keys), side="right")
    whole = np.array(tiles[np.ix_(row, column)], dtype=np.float32)
    # what is not among the strongest of a row cannot be more than the weakest of them
    whole = np.minimum(whole, reduced.top_weights[place].min(-1, keepdims=True, initial=1))
    # ranks that a short row leaves empty say that key 0 has no weight, which may have been named
    ranks = (np.arange(queries)[:, None], reduced.top_keys[place])
    np.maximum.at(whole, ranks, reduced.top_weights[place])
    return np.asarray(whole)
