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
    """Return the spans of words that occur in a text in this order.

    Example:
        >>> find_words("I can't", ["I", "can", "'t"])
        [(0, 1), (2, 5), (5, 7)]
    """
    spans, position = [], 0
    for word in words:
        start = text.index(word, position)
        position = start + len(word)
        spans.append((start, position))
    return spans


def whitespace_spans(text: str) -> list[Span]:
    """Return the spans between ASCII spaces, as word aligners split; a no-break space joins.

    Example:
        >>> whitespace_spans("two words")
        [(0, 3), (4, 9)]
    """
    return [match.span() for match in re.finditer(r"\S+", text, re.ASCII)]


def overlapping(spans: Sequence[Span], span: Span) -> list[int]:
    """Return the indices of the spans that share a character with another span.

    Example:
        >>> overlapping([(0, 2), (2, 4), (4, 6)], (3, 5))
        [1, 2]
    """
    return [n for n, (start, end) in enumerate(spans) if start < span[1] and end > span[0]]
