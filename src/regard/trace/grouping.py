"""Token positions put together: subwords merged into words, special tokens collapsed into one.

Both sum the weights over the keys of a group and average them over its queries, so that rows still
sum to 1. Rows of a decoder's cross-attention are grouped by the tokens that are written. Their
input tokens follow: a group is named by what the decoder reads when it writes the group's first
token.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from regard.errors import RegardError
from regard.trace.attention_map import AttentionMap, TokenList
from regard.trace.quantization import Array
from regard.trace.trace import Trace

COLLAPSED = "⋯"  # the piece that stands for all special tokens and padding
WORDPIECE_PREFIX = "##"
ROW_INPUTS = " by row"  # ends the name of input tokens that were grouped as the rows are

Groups = list[list[int]]
"""Positions of pieces, one list per group."""


def merge_subwords(trace: Trace) -> Trace:
    """Merge the pieces of each word: one row and one column per word.

    Pieces of no word, such as start and end tokens, stay as they are. Log-probabilities of the
    pieces of a word are added up.

    Raises:
        RegardError: if a map is a summary; only full weights can be merged.

    Example:
        >>> from regard.trace import build_translation_trace
        >>> source = TokenList(("look", "ing"), words=(0, 0))
        >>> trace = build_translation_trace(source, ["x"], cross=[[[[0.25, 0.75]]]])
        >>> merge_subwords(trace).tokens["source"].pieces
        ('looking',)
    """
    groups = {name: _word_groups(tokens) for name, tokens in trace.tokens.items()}
    tokens = {name: _merge_tokens(tokens, groups[name]) for name, tokens in trace.tokens.items()}
    return _group_trace(trace, groups, tokens, trace.gold)


def collapse_special(trace: Trace) -> Trace:
    """Collapse all special tokens and padding of a token list into one last piece, "⋯".

    Attention sinks then take one column instead of several. Gold links to collapsed pieces are
    dropped.

    Args:
        trace: the trace.

    Returns:
        A new trace.

    Raises:
        RegardError: if a map is a summary; only full weights can be collapsed.

    Example:
        >>> from regard.trace import build_translation_trace
        >>> source = TokenList(("<s>", "cat", "</s>"), special=(0, 2))
        >>> trace = build_translation_trace(source, ["chat"], cross=[[[[0.25, 0.5, 0.25]]]])
        >>> collapse_special(trace).tokens["source"].pieces
        ('cat', '⋯')
    """
    groups = {name: _visible_groups(tokens) for name, tokens in trace.tokens.items()}
    tokens = {name: _collapse_tokens(tokens) for name, tokens in trace.tokens.items()}
    return _group_trace(trace, groups, tokens, _renumber_gold(trace))


def _group_trace(
    trace: Trace,
    groups: dict[str, Groups],
    tokens: dict[str, TokenList],
    gold: tuple[tuple[int, int], ...] | None,
) -> Trace:
    """Group the axes of all maps; `tokens` are the grouped token lists."""
    all_tokens, maps = dict(tokens), []
    for attention_map in trace.maps:
        rows, name = groups[attention_map.queries], attention_map.query_inputs
        if name is not None:
            inputs = _row_inputs(rows, groups[name], tokens[name])
            if inputs != tokens[name]:  # rows and inputs are grouped differently
                name = f"{name.removesuffix(ROW_INPUTS)}{ROW_INPUTS}"
                all_tokens[name] = inputs
        grouped = _group_map(attention_map, rows, groups[attention_map.keys])
        maps.append(replace(grouped, query_inputs=name))
    # a list whose tokens were grouped no longer has the patches of its image one by one
    images = {n: x for n, x in trace.images.items() if len(tokens[n]) == len(trace.tokens[n])}
    return replace(trace, tokens=all_tokens, maps=tuple(maps), gold=gold, images=images)


def _row_inputs(rows: Groups, inputs: Groups, tokens: TokenList) -> TokenList:
    """Return, for each group of rows, the grouped input token that its first row reads."""
    group_of = {position: n for n, group in enumerate(inputs) for position in group}
    read = [group_of[row[0]] for row in rows]
    special, padding = set(tokens.special), set(tokens.padding)
    words, log_probs = tokens.words, tokens.log_probs
    return TokenList(
        tuple(tokens.pieces[n] for n in read),
        None if words is None else tuple(words[n] for n in read),
        tuple(row for row, n in enumerate(read) if n in special),
        tuple(row for row, n in enumerate(read) if n in padding),
        None if log_probs is None else tuple(log_probs[n] for n in read),
    )


def _group_map(attention_map: AttentionMap, queries: Groups, keys: Groups) -> AttentionMap:
    """Sum weights over groups of keys, and average them over groups of queries."""
    if attention_map.weights is None:
        raise RegardError(
            f"{attention_map.name} is a summary, but only full weights can be merged or collapsed; "
            "watch(model, keep='all') keeps them"
        )
    weights = _group_means(_group_sums(attention_map.weights, keys, axis=2), queries, axis=1)
    norms = attention_map.value_norms
    norms = None if norms is None else _group_means(norms, keys, axis=1)
    return replace(attention_map, weights=weights, value_norms=norms)


def _group_sums(values: Array, groups: Groups, axis: int) -> Array:
    """Add up the values of each group along an axis."""
    order = [position for group in groups for position in group]
    starts = np.cumsum([0, *map(len, groups)])[:-1]
    if order != list(range(values.shape[axis])):  # words of a text are in order already
        values = np.take(values, order, axis=axis)
    return np.add.reduceat(values, starts, axis=axis)


def _group_means(values: Array, groups: Groups, axis: int) -> Array:
    sizes = np.array([len(group) for group in groups], dtype=values.dtype)
    sizes = sizes.reshape([-1 if a == axis else 1 for a in range(values.ndim)])
    return np.asarray(_group_sums(values, groups, axis) / sizes)


def _word_groups(tokens: TokenList) -> Groups:
    """Group neighbouring pieces of the same word."""
    words = range(len(tokens)) if tokens.words is None else tokens.words
    groups: Groups = []
    previous: int | None = None
    for position, word in enumerate(words):
        if word is not None and word == previous:
            groups[-1].append(position)
        else:
            groups.append([position])
        previous = word
    return groups


def _merge_tokens(tokens: TokenList, groups: Groups) -> TokenList:
    words = None if tokens.words is None else tuple(tokens.words[group[0]] for group in groups)
    special, padding = set(tokens.special), set(tokens.padding)
    return TokenList(
        _join_pieces([[tokens.pieces[position] for position in group] for group in groups]),
        words,
        tuple(n for n, group in enumerate(groups) if special.issuperset(group)),
        tuple(n for n, group in enumerate(groups) if padding.issuperset(group)),
        _add_log_probs(tokens.log_probs, groups),
    )


def _join_pieces(words: list[list[str]]) -> tuple[str, ...]:
    """Join the pieces of each word, without "##" if all continuations have it (WordPiece)."""
    is_wordpiece = all(piece.startswith(WORDPIECE_PREFIX) for word in words for piece in word[1:])
    prefix = WORDPIECE_PREFIX if is_wordpiece else ""
    return tuple(
        first + "".join(piece.removeprefix(prefix) for piece in others) for first, *others in words
    )


def _add_log_probs(
    log_probs: Sequence[float | None] | None, groups: Groups
) -> tuple[float | None, ...] | None:
    """Add up the known log-probabilities of each group; None for a group that has none."""
    if log_probs is None:
        return None
    known = (
        [p for position in group if (p := log_probs[position]) is not None] for group in groups
    )
    return tuple(sum(group) if group else None for group in known)


def _collapsible(tokens: TokenList) -> list[int]:
    return sorted({*tokens.special, *tokens.padding})


def _visible(tokens: TokenList) -> list[int]:
    collapsed = {*tokens.special, *tokens.padding}
    return [n for n in range(len(tokens)) if n not in collapsed]


def _visible_groups(tokens: TokenList) -> Groups:
    """Group each text piece alone, and all special tokens and padding together at the end."""
    collapsed = _collapsible(tokens)
    return [*([n] for n in _visible(tokens)), *([collapsed] if collapsed else [])]


def _collapse_tokens(tokens: TokenList) -> TokenList:
    visible, extra = _visible(tokens), bool(_collapsible(tokens))
    words, log_probs = tokens.words, tokens.log_probs
    return TokenList(
        (*(tokens.pieces[n] for n in visible), *[COLLAPSED] * extra),
        None if words is None else (*(words[n] for n in visible), *[None] * extra),
        (len(visible),) if extra else (),
        (),
        None if log_probs is None else (*(log_probs[n] for n in visible), *[None] * extra),
    )


def _renumber_gold(trace: Trace) -> tuple[tuple[int, int], ...] | None:
    """Drop links to collapsed pieces; where each piece is a word, renumber the others."""
    if trace.gold is None:
        return None
    source, target = (_new_word_indices(trace.tokens[name]) for name in ("source", "target"))
    return tuple((source[s], target[t]) for s, t in trace.gold if s in source and t in target)


def _new_word_indices(tokens: TokenList) -> dict[int, int]:
    """Map each word that is still there to its new index."""
    if tokens.words is None:
        return {piece: n for n, piece in enumerate(_visible(tokens))}
    words = (tokens.words[piece] for piece in _visible(tokens))
    return {word: word for word in words if word is not None}
