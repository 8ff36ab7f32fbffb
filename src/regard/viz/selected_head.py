"""One head of a trace, selected by kind, layer and index, as a labelled matrix."""

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from regard import analysis
from regard.errors import RegardError, unknown_name, wrong_type
from regard.trace import Array, AttentionMap, AttentionSummary, Rows, TokenList, Trace
from regard.viz.detokenize import display_tokens
from regard.viz.matrix import (
    QUERY_KEY,
    WRITING_READING,
    AxisTitles,
    LabelledMatrix,
    label_matrix,
)

# Names of the three attentions of an encoder-decoder model, by kind and queries.
_GROUP_NAMES = {
    ("self", "source"): "encoder",
    ("causal", "decoder_input"): "decoder",
    ("self", "decoder_input"): "decoder",
    ("causal", "target"): "decoder",
    ("self", "target"): "decoder",
    ("cross", "target"): "cross",
}


# how captions name them, as the pages do
_DISPLAY_NAMES = {
    "encoder": "Encoder",
    "decoder": "Decoder",
    "cross": "Cross-attention",
    "self": "Self-attention",
    "causal": "Causal self-attention",
}


@dataclass(frozen=True, slots=True)
class MapGroup:
    """The layers of one attention: maps of one kind between the same two token lists."""

    name: str
    maps: tuple[AttentionMap, ...]


def group_maps(trace: Trace) -> tuple[MapGroup, ...]:
    """Group the maps of a trace: encoder, decoder and cross, or by kind and token lists."""
    layers: dict[tuple[str, str, str], list[AttentionMap]] = {}
    for attention_map in trace.maps:
        key = (attention_map.kind, attention_map.queries, attention_map.keys)
        layers.setdefault(key, []).append(attention_map)
    kinds = [kind for kind, _, _ in layers]
    groups: list[MapGroup] = []
    for (kind, queries, keys), maps in layers.items():
        own_name = kind if kinds.count(kind) == 1 else f"{kind} {queries}-{keys}"
        name = own_name
        if "source" in trace.tokens:
            name = _GROUP_NAMES.get((kind, queries), own_name)
        is_taken = name in [group.name for group in groups]
        groups.append(MapGroup(own_name if is_taken else name, tuple(maps)))
    return tuple(groups)


def find_group(trace: Trace, name: str | None = None) -> MapGroup:
    """Find a group by its name or kind; by default cross-attention, else the first."""
    groups = {group.name: group for group in group_maps(trace)}
    if not groups:
        raise RegardError("the trace has no attention maps, so there is nothing to draw")
    if name is None:
        return groups.get("cross") or next(iter(groups.values()))
    if name in groups:
        return groups[name]
    of_kind = [group for group in groups.values() if group.maps[0].kind == name]
    if len(of_kind) == 1:
        return of_kind[0]
    raise unknown_name("attention of this trace", name, groups)


def label_head(
    trace: Trace,
    kind: str | None = None,
    layer: int | None = None,
    head: int | None = None,
    vmax: float | None = None,
    rows: Rows = "output",
) -> LabelledMatrix:
    """Return one head as a matrix with labels.

    Args:
        trace: the trace.
        kind: name or kind of a group, see `find_group`.
        layer: position within the group; negative positions count from the end.
        head: index of a kept head. What is not given is chosen by `analysis.select_head`.
        vmax: upper end of the colour scale; by default 1, or the largest weight if that is below
            0.5.
        rows: "output" names rows of a decoder's cross-attention by the word written there, "input"
            by the word read there.

    Raises:
        RegardError: if there is no such head, the message has the choices; or if `rows` is neither.
    """
    group, layer, head = resolve_head(trace, kind, layer, head)
    attention_map = group.maps[layer]
    return label_matrix(
        head_weights(attention_map, attention_map.heads.index(head)),
        _labels(trace.row_tokens(attention_map, rows)),
        _labels(trace.tokens[attention_map.keys]),
        vmax,
        title=trace.title,
        caption=caption(trace, group.name, layer, head),
        outlined=_gold_cells(trace, attention_map, rows),
        axis_titles=axis_titles(attention_map, rows),
    )


def axis_titles(attention_map: AttentionMap, rows: Rows = "output") -> AxisTitles:
    """Return what a row and what a column of a map is, in words."""
    if rows == "input" and attention_map.query_inputs is not None:
        return "decoder input ↓", WRITING_READING[1]
    is_writing = attention_map.kind == "cross" and attention_map.queries == "target"
    return WRITING_READING if is_writing else QUERY_KEY


def resolve_head(
    trace: Trace, kind: str | None = None, layer: int | None = None, head: int | None = None
) -> tuple[MapGroup, int, int]:
    """Return the group, the layer counted from 0 and the head.

    A layer or head that is not given is chosen by `analysis.select_head`.

    Raises:
        RegardError: if there is no such head; the message has the choices.
    """
    group = find_group(trace, kind)
    if layer is not None:
        layer = resolve_layer(group, layer)
    maps = group.maps if layer is None else (group.maps[layer],)
    if head is not None:
        heads = sorted({number for m in maps for number in m.heads})
        _check_choice(head, heads, "head", ", ".join(m.name for m in maps))
    if layer is None or head is None:
        layer, head = analysis.select_head(trace, group.maps, layer=layer, head=head)[:2]
    return group, layer, head


def select_heads(trace: Trace) -> list[dict[str, Any]]:
    """Return the head that `analysis.select_head` selects in each group, and why, as JSON data."""
    return [
        {"kind": group.name} | analysis.select_head(trace, group.maps)._asdict()
        for group in group_maps(trace)
        if all(all(m.shape) for m in group.maps)
    ]


def resolve_layer(group: MapGroup, layer: int) -> int:
    """Return a layer counted from 0; raise RegardError if there is no such layer."""
    count = len(group.maps)
    if isinstance(layer, Integral) and -count <= layer < 0:
        layer += count
    _check_choice(layer, range(count), "layer", group.name)
    return layer


def caption(trace: Trace, group: str, layer: int | None = None, head: int | None = None) -> str:
    """Name the model, attention, layer and head of a picture."""
    return " · ".join(filter(None, (trace.model, describe_head(group, layer, head))))


def describe_head(group: str, layer: int | None = None, head: int | None = None) -> str:
    """Name an attention, layer and head as pages do.

    Example:
        >>> describe_head("cross", 0, 3)
        'Cross-attention · layer 0, head 3'
    """
    numbered = (("layer", layer), ("head", head))
    position = ", ".join(f"{word} {number}" for word, number in numbered if number is not None)
    return " · ".join(filter(None, (_DISPLAY_NAMES.get(group, group), position)))


def head_weights(attention_map: AttentionMap, position: int) -> Array:
    """Return the weights (query, key) of one head; reconstruct them if there is a summary only."""
    if attention_map.weights is not None:
        return np.asarray(attention_map.weights[position])
    assert attention_map.summary is not None, "a map has weights or a summary"
    return _reconstruct(attention_map.summary, position, *attention_map.shape[1:])


def _check_choice(number: int, choices: Sequence[int], what: str, owner: str) -> None:
    if not isinstance(number, Integral):
        raise wrong_type(what, "an integer", number)
    if number not in choices:
        listed = ", ".join(map(str, choices))
        raise RegardError(f"there is no {what} {number} in {owner}. Choose from: {listed}.")


def _gold_cells(
    trace: Trace, attention_map: AttentionMap, rows: Rows
) -> tuple[tuple[int, int], ...]:
    """Return the cells (query, key) between all pieces of gold-aligned words."""
    is_cross = (attention_map.queries, attention_map.keys) == ("target", "source")
    row_tokens = trace.row_tokens(attention_map, rows)
    if trace.gold is None or not is_cross:
        return ()
    if row_tokens.words is None and row_tokens is not trace.tokens["target"]:
        return ()  # which target words these are is not known
    token_lists = (trace.tokens["source"], row_tokens)
    sources, targets = (range(len(t)) if t.words is None else t.words for t in token_lists)
    links = set(trace.gold)
    return tuple(
        (query, key)
        for query, target in enumerate(targets)
        for key, source in enumerate(sources)
        if (source, target) in links
    )


def _labels(tokens: TokenList) -> tuple[str, ...]:
    return display_tokens(tokens.pieces, {*tokens.special, *tokens.padding})


def _reconstruct(summary: AttentionSummary, position: int, queries: int, keys: int) -> Array:
    """Spread the tiles over the queries and keys they cover, and set the heaviest keys."""
    tiles = summary.tiles[position]
    row_ends, column_ends = (
        np.arange(1, tiles.shape[axis] + 1) * count // tiles.shape[axis]
        for axis, count in enumerate((queries, keys))
    )
    row = np.searchsorted(row_ends, np.arange(queries), side="right")
    column = np.searchsorted(column_ends, np.arange(keys), side="right")
    weights = np.array(tiles[np.ix_(row, column)], dtype=np.float32)
    # No other key of a row is heavier than the lightest of its heaviest keys.
    top_weights = summary.top_weights[position]
    weights = np.minimum(weights, top_weights.min(-1, keepdims=True, initial=1))
    # Unused ranks of a short row hold weight 0 for key 0, which may also have a rank of its own.
    cells = (np.arange(queries)[:, None], summary.top_keys[position])
    np.maximum.at(weights, cells, top_weights)
    return np.asarray(weights)
