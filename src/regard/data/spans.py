"""Character spans: where words and tokens are in a text."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

Span = tuple[int, int]
"""Start and end (exclusive) of some characters of a text."""


class WordSpans(NamedTuple):
    """Where the words of a sentence pair are in its texts, and which words are aligned."""

    source: Sequence[Span]
    target: Sequence[Span]
    links: Iterable[tuple[int, int]] | None = None  # (source word, target word)


def find_words(text: str, words: Sequence[str]) -> list[Span]:
    """Find words, in their order, in a text."""
    found, place = [], 0
    for word in words:
        start = text.index(word, place)
        place = start + len(word)
        found.append((start, place))
    return found


def whitespace_spans(text: str) -> list[Span]:
    """Part a text at plain spaces, as aligners do: a no-break space is within a word."""
    return [match.span() for match in re.finditer(r"\S+", text, re.ASCII)]


def overlapping(pieces: Sequence[Span], span: Span) -> list[int]:
    """Number the pieces that share a character with a span."""
    return [n for n, (start, end) in enumerate(pieces) if start < span[1] and end > span[0]]
