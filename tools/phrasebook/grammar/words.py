"""Words of a sentence: splitting and joining."""

import re
from collections.abc import Iterable
from typing import Literal, NamedTuple, TypeAlias

Language: TypeAlias = Literal["en", "fr", "zh"]
NARROW_SPACE = "\u202f"  # French sets it before ? and !, and no line breaks there

_INVERTED = r"(?:-t)?-(?:je|tu|ils?|elles?|nous)\b"
_ENGLISH = re.compile(r"'s\b|\w+|[^\w\s]")
_FRENCH = re.compile(rf"{_INVERTED}|aujourd'hui|\w+(?:(?!{_INVERTED})-\w+)*'?|[^\w\s]", re.I)


class Style(NamedTuple):
    """How a sentence is written: "The cat sleeps." or, as in a message, "the cat sleeps"."""

    capital: bool = True
    final_mark: bool = True


WRITTEN = Style()


class Word(NamedTuple):
    """A word and its alignment marks; words of two languages that share a mark are aligned."""

    text: str
    marks: tuple[str, ...] = ()


def split_words(sentence: str, language: Literal["en", "fr"]) -> tuple[str, ...]:
    """Split an English or French sentence into words and punctuation marks."""
    return tuple((_ENGLISH if language == "en" else _FRENCH).findall(sentence))


def join_words(parts: Iterable[str], language: Language) -> str:
    """Join words to a sentence; the inverse of `split_words`."""
    if language == "zh":
        return "".join(parts)
    sentence = ""
    for part in parts:
        sentence += _gap(sentence, part, language) + part
    return sentence


def _gap(before: str, part: str, language: Language) -> str:
    """Return the space between the text so far and the next word, if any."""
    if not before or before.endswith("'") or part[0] in ".,'-":
        return ""
    if part in "?!":
        return NARROW_SPACE if language == "fr" else ""
    return " "


def punctuate(words: list[Word], mark: str, style: Style) -> list[Word]:
    """Capitalize the first word and add the final mark, as far as the style has them."""
    sentence = [*words, Word(mark, ("stop",))] if style.final_mark else words
    return capitalize(sentence) if style.capital else sentence


def capitalize(sentence: list[Word]) -> list[Word]:
    """Capitalize the first word."""
    first = sentence[0]
    return [Word(first.text[:1].upper() + first.text[1:], first.marks), *sentence[1:]]
