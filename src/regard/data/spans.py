"""Character spans: where words and tokens are in a text."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

Span = tuple[int, int]
"""Start and end (exclusive) of some characters of a text."""


APOSTROPHES = ("'", "\u2019")
# what follows an apostrophe and is no word: don't, cat's, I'm, we'd, you're, I've, she'll, and
# French aujourd'hui
ENDINGS = {"t", "s", "m", "d", "re", "ve", "ll", "hui"}


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


def join_apostrophes(text: str, words: Sequence[Span]) -> list[Span]:
    """Join apostrophes within words to the part before them, which is how elision is written.

    The part after the apostrophe is a word of its own ("l'" and "homme"), unless it is an ending
    ("don't", "cat's").

    Args:
        text: the text.
        words: spans of words and punctuation marks, in order; an apostrophe is a span of its own.

    Example:
        >>> text = "l'homme isn't"
        >>> words = [(0, 1), (1, 2), (2, 7), (8, 11), (11, 12), (12, 13)]
        >>> [text[start:end] for start, end in join_apostrophes(text, words)]
        ["l'", 'homme', "isn't"]
    """
    joined: list[Span] = []
    is_continued = False  # the next span belongs to the last one
    for n, (start, end) in enumerate(words):
        if is_continued:
            joined[-1], is_continued = (joined[-1][0], end), False
        elif n > 0 and _is_within_word(text, start, end):
            joined[-1] = joined[-1][0], end
            following = text[slice(*words[n + 1])]
            is_continued = following.lower() in ENDINGS
        else:
            joined.append((start, end))
    return joined


def _is_within_word(text: str, start: int, end: int) -> bool:
    """Return whether a span is an apostrophe with a letter on both sides."""
    around = text[start - 1 : start] + text[end : end + 1]
    return text[start:end] in APOSTROPHES and len(around) == 2 and around.isalpha()


def overlapping(spans: Sequence[Span], span: Span) -> list[int]:
    """Return the indices of the spans that share a character with another span.

    Example:
        >>> overlapping([(0, 2), (2, 4), (4, 6)], (3, 5))
        [1, 2]
    """
    return [n for n, (start, end) in enumerate(spans) if start < span[1] and end > span[0]]
