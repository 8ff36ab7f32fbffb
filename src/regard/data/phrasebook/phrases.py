"""Phrases: pairs of sentences with their gold alignment, and a corpus of them."""

from collections.abc import Callable, Sequence
from random import Random
from typing import Literal, NamedTuple, TypeAlias

from regard.data.phrasebook import chinese, draw, english, french
from regard.data.phrasebook.meaning import Meaning
from regard.data.phrasebook.words import Language, Word, join
from regard.errors import RegardError, unknown_name

Target: TypeAlias = Literal["fr", "zh"]
SIZE = 100_000  # phrases that a seed gives; there are many more seeds

SPEAK: dict[str, Callable[[Meaning], list[Word]]] = {
    "fr": french.sentence,
    "zh": chinese.sentence,
}


class Phrase(NamedTuple):
    """An English sentence, its translation, their words, and which words are counterparts.

    A link (i, j) joins source word i and target word j.
    """

    source: str
    target: str
    source_words: tuple[str, ...]
    target_words: tuple[str, ...]
    links: tuple[tuple[int, int], ...]


class Corpus(NamedTuple):
    """Phrases to train, validate and test on; no sentence is in two of them."""

    train: tuple[Phrase, ...]
    valid: tuple[Phrase, ...]
    test: tuple[Phrase, ...]


def phrases(to: Target = "fr", *, count: int | None = None, seed: int = 0) -> list[Phrase]:
    """Draw so many phrases; no sentence comes twice, in either language."""
    speak = SPEAK.get(to)
    if speak is None:
        raise unknown_name("language of the phrasebook", to, SPEAK)
    wanted = _checked(SIZE if count is None else count)
    chance, found = Random(seed), list[Phrase]()
    sources, targets = set[str](), set[str]()
    while len(found) < wanted:
        drawn = phrase(draw.sentence(chance), to, speak)
        if drawn.source not in sources and drawn.target not in targets:
            sources.add(drawn.source)
            targets.add(drawn.target)
            found.append(drawn)
    return found


def corpus(
    to: Target = "fr", *, train: int = 20_000, valid: int = 500, test: int = 500, seed: int = 0
) -> Corpus:
    """Draw three sets of phrases that share no sentence, in either language."""
    drawn = phrases(to, count=train + valid + test, seed=seed)
    # what is held out comes first, so that it stays the same when there is more to train on
    held = valid + test
    return Corpus(tuple(drawn[held:]), tuple(drawn[:valid]), tuple(drawn[valid:held]))


def phrase(meaning: Meaning, to: Language, speak: Callable[[Meaning], list[Word]]) -> Phrase:
    """Say a meaning in two languages."""
    source, target = english.sentence(meaning), speak(meaning)
    source_words = tuple(word.text for word in source)
    target_words = tuple(word.text for word in target)
    return Phrase(
        join(source_words, "en"),
        join(target_words, to),
        source_words,
        target_words,
        links(source, target),
    )


def links(source: Sequence[Word], target: Sequence[Word]) -> tuple[tuple[int, int], ...]:
    """Join the words that share a mark."""
    places: dict[str, list[int]] = {}
    for j, word in enumerate(target):
        for mark in word.marks:
            places.setdefault(mark, []).append(j)
    found = {
        (i, j) for i, word in enumerate(source) for mark in word.marks for j in places.get(mark, ())
    }
    return tuple(sorted(found))


def _checked(count: int) -> int:
    if count > SIZE:
        raise RegardError(
            f"the phrasebook has {SIZE} phrases for a seed, but {count} were asked for; "
            "another seed gives others"
        )
    if count < 0:
        raise ValueError(f"count must be 0 or more, but it is {count}")
    return count
