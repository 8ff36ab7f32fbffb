"""Special pieces folded: start, end and padding told as one, so that they do not drown the text."""

from dataclasses import replace

import numpy as np

from regard.trace.quantize import Array
from regard.trace.record import Look, Tokens, Trace

FOLDED = "⋯"


def fold_special(trace: Trace) -> Trace:
    """Tell all special pieces and padding of a side as one last piece.

    Weights are summed over its keys, and their mean taken over its queries, so rows still sum
    to 1. Gold links to what is folded are left out. Only whole weights can be folded.
    """
    folds = {name: _fold(tokens) for name, tokens in trace.tokens.items()}
    tokens = {name: _told(tokens) for name, tokens in trace.tokens.items()}
    looks = tuple(_folded(look, folds[look.queries], folds[look.keys]) for look in trace.looks)
    return replace(trace, tokens=tokens, looks=looks, gold=_links(trace))


def _links(trace: Trace) -> tuple[tuple[int, int], ...] | None:
    """Number the words of gold links anew; without a mapping, each piece is a word."""
    if trace.gold is None:
        return None
    source, target = (_numbers(trace.tokens[name]) for name in ("source", "target"))
    return tuple((source[s], target[t]) for s, t in trace.gold if s in source and t in target)


def _numbers(tokens: Tokens) -> dict[int, int]:
    """Give the number that each word still has, by the one it had."""
    if tokens.words is None:
        return {piece: n for n, piece in enumerate(_shown(tokens))}
    words = (tokens.words[piece] for piece in _shown(tokens))
    return {word: word for word in words if word is not None}


def _hidden(tokens: Tokens) -> list[int]:
    return sorted({*tokens.special, *tokens.padding})


def _shown(tokens: Tokens) -> list[int]:
    hidden = set(_hidden(tokens))
    return [n for n in range(len(tokens)) if n not in hidden]


def _fold(tokens: Tokens) -> Array:
    """Give ones (place, piece) where a place holds a piece."""
    shown, hidden = _shown(tokens), _hidden(tokens)
    fold = np.zeros((len(shown) + bool(hidden), len(tokens)), dtype=np.float32)
    fold[range(len(shown)), shown] = 1
    if hidden:
        fold[-1, hidden] = 1
    return fold


def _told(tokens: Tokens) -> Tokens:
    shown, more = _shown(tokens), bool(_hidden(tokens))
    words, likely = tokens.words, tokens.log_probabilities
    return Tokens(
        (*(tokens.pieces[n] for n in shown), *[FOLDED] * more),
        None if words is None else (*(words[n] for n in shown), *[None] * more),
        (len(shown),) if more else (),
        (),
        None if likely is None else (*(likely[n] for n in shown), *[None] * more),
    )


def _folded(look: Look, queries: Array, keys: Array) -> Look:
    if look.weights is None:
        raise ValueError(
            f"{look.name} was reduced, and only whole weights can be folded; "
            "watch(model, keep='all') keeps them"
        )
    rows = queries / queries.sum(1, keepdims=True)
    norms = look.value_norms
    return replace(
        look,
        weights=rows @ look.weights @ keys.T,
        value_norms=None if norms is None else norms @ (keys / keys.sum(1, keepdims=True)).T,
    )
