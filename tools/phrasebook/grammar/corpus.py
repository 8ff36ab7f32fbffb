"""Sentence pairs with gold word alignments, and a corpus of distinct ones."""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from random import Random

from grammar import chinese, english, french, sampling
from grammar.meaning import Meaning
from grammar.words import WRITTEN, Language, Style, Word, join_words
from regard.data.phrasebook import AlignedPair

HELD_OUT = 1_000
"""The first pairs, which translators are validated and tested with, are all full sentences."""

MESSAGES = 0.12
"""Share of messages among the others."""

REALISERS: dict[Language, Callable[[Meaning, Style], list[Word]]] = {
    "en": english.sentence,
    "fr": french.sentence,
    "zh": chinese.sentence,
}


def generate_pairs(language: Language, count: int, seed: int = 0) -> list[AlignedPair]:
    """Generate distinct pairs; no sentence occurs twice, in either language.

    A smaller count gives the first pairs of a larger one.
    """
    return list(islice(_distinct_pairs(language, seed), count))


def _distinct_pairs(language: Language, seed: int) -> Iterator[AlignedPair]:
    sentences, messages = Random(seed), Random(f"{seed}, messages")
    sources, targets = set[str](), set[str]()
    while True:
        if len(sources) >= HELD_OUT and messages.random() < MESSAGES:
            meaning, style = sampling.message(messages)
            pair = realise_pair(meaning, language, style)
        else:
            pair = realise_pair(sampling.sentence(sentences), language)
        if pair.source not in sources and pair.target not in targets:
            sources.add(pair.source)
            targets.add(pair.target)
            yield pair


def realise_pair(meaning: Meaning, language: Language, style: Style = WRITTEN) -> AlignedPair:
    """Express a meaning in English and in another language, and align the words."""
    source, target = english.sentence(meaning, style), REALISERS[language](meaning, style)
    source_words = tuple(word.text for word in source)
    target_words = tuple(word.text for word in target)
    return AlignedPair(
        join_words(source_words, "en"),
        join_words(target_words, language),
        source_words,
        target_words,
        align(source, target),
    )


def align(source: Sequence[Word], target: Sequence[Word]) -> tuple[tuple[int, int], ...]:
    """Link the words that share a mark; return (source index, target index), sorted."""
    positions: dict[str, list[int]] = {}
    for j, word in enumerate(target):
        for mark in word.marks:
            positions.setdefault(mark, []).append(j)
    links = {
        (i, j)
        for i, word in enumerate(source)
        for mark in word.marks
        for j in positions.get(mark, ())
    }
    return tuple(sorted(links))
