"""Pieces merged into words: the same look, told by whole words."""

from dataclasses import replace

import numpy as np

from regard.trace.quantize import Array
from regard.trace.record import Look, Tokens, Trace

GOES_ON = "##"  # WordPiece's mark, of all pieces that go on with a word, or of none


def merged(trace: Trace) -> Trace:
    """Tell a trace by words: weights summed over a word's keys, their mean over its queries.

    Rows still sum to 1. Pieces of no word, such as start and end, stay as they are. Only whole
    weights can be merged.
    """
    places = {name: _places(tokens) for name, tokens in trace.tokens.items()}
    tokens = {name: _told(tokens, places[name]) for name, tokens in trace.tokens.items()}
    looks = tuple(_merged(look, places[look.queries], places[look.keys]) for look in trace.looks)
    return replace(trace, tokens=tokens, looks=looks)


def _places(tokens: Tokens) -> list[list[int]]:
    """List the pieces of each word, neighbours of one word together."""
    words = range(len(tokens)) if tokens.words is None else tokens.words
    places: list[list[int]] = []
    before: int | None = None
    for place, word in enumerate(words):
        if word is not None and word == before:
            places[-1].append(place)
        else:
            places.append([place])
        before = word
    return places


def _told(tokens: Tokens, places: list[list[int]]) -> Tokens:
    firsts = [group[0] for group in places]
    words = None if tokens.words is None else tuple(tokens.words[first] for first in firsts)
    return Tokens(
        _joined([[tokens.pieces[place] for place in group] for group in places]),
        words,
        tuple(n for n, group in enumerate(places) if set(group) <= set(tokens.special)),
        tuple(n for n, group in enumerate(places) if set(group) <= set(tokens.padding)),
        _summed(tokens, places),
    )


def _joined(words: list[list[str]]) -> tuple[str, ...]:
    """Join the pieces of each word, without the marks that say where they were parted."""
    marked = all(piece.startswith(GOES_ON) for pieces in words for piece in pieces[1:])
    mark = GOES_ON if marked else ""
    return tuple(
        first + "".join(piece.removeprefix(mark) for piece in others) for first, *others in words
    )


def _summed(tokens: Tokens, places: list[list[int]]) -> tuple[float | None, ...] | None:
    """Add the log probabilities of a word's pieces."""
    if tokens.log_probabilities is None:
        return None
    likely = tokens.log_probabilities
    known = ([p for place in group if (p := likely[place]) is not None] for group in places)
    return tuple(sum(group) if group else None for group in known)


def _merged(look: Look, queries: list[list[int]], keys: list[list[int]]) -> Look:
    if look.weights is None:
        raise ValueError(
            f"{look.name} was reduced, and only whole weights can be merged into words; "
            "watch(model, keep='all') keeps them"
        )
    weights = _mean(_sum(look.weights, keys, axis=2), queries, axis=1)
    norms = None if look.value_norms is None else _mean(look.value_norms, keys, axis=1)
    return replace(look, weights=weights, value_norms=norms)


def _sum(numbers: Array, places: list[list[int]], axis: int) -> Array:
    return np.add.reduceat(numbers, [group[0] for group in places], axis=axis)


def _mean(numbers: Array, places: list[list[int]], axis: int) -> Array:
    counts = np.array([len(group) for group in places], dtype=numbers.dtype)
    counts = counts.reshape([-1 if a == axis else 1 for a in range(numbers.ndim)])
    return np.asarray(_sum(numbers, places, axis) / counts)
