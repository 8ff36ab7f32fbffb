import random
import re

import pytest

from regard.data.phrasebook import corpus, join, phrases, words
from regard.errors import RegardError

LANGUAGES = ("fr", "zh")


@pytest.fixture(params=LANGUAGES)
def many(request, drawn):
    return request.param, drawn(request.param)


def test_the_same_seed_gives_the_same_phrases_and_another_seed_others():
    for language in LANGUAGES:
        once = phrases(language, count=60, seed=3)
        assert once == phrases(language, count=60, seed=3)
        assert once[:20] == phrases(language, count=20, seed=3)
        assert len({*once} & {*phrases(language, count=60, seed=4)}) < 10


@pytest.mark.usefixtures("unchecked")
def test_drawing_leaves_the_global_chance_alone():
    random.seed(5)
    expected = random.random()
    random.seed(5)
    phrases(count=50)
    assert random.random() == expected


def test_no_sentence_comes_twice_in_either_language(many):
    _, drawn = many
    assert len(drawn) == 20_000
    assert len({phrase.source for phrase in drawn}) == len(drawn)
    assert len({phrase.target for phrase in drawn}) == len(drawn)


def test_words_join_to_the_sentence_and_split_again(many):
    language, drawn = many
    for phrase in drawn[::10]:
        assert join(phrase.source_words, "en") == phrase.source
        assert join(phrase.target_words, language) == phrase.target
        assert words(phrase.source, "en") == phrase.source_words
        if language == "fr":
            assert words(phrase.target, "fr") == phrase.target_words


def test_links_are_sorted_distinct_and_within_the_sentences(many):
    for phrase in many[1]:
        assert list(phrase.links) == sorted(set(phrase.links))
        assert all(
            0 <= i < len(phrase.source_words) and 0 <= j < len(phrase.target_words)
            for i, j in phrase.links
        )


# what may stand alone: articles, auxiliaries, commas, and the "that" of a report
ALONE = {
    "fr": ({"do", "does"}, set()),
    "zh": (
        {"the", "a", "an", "any", "of", "at", "that", ",", "is", "are", "am", "was", "were"}
        | {"do", "does", "did"},
        {"，"},
    ),
}


def test_every_word_but_the_smallest_has_a_counterpart(many):
    language, drawn = many
    source_alone, target_alone = ALONE[language]
    for phrase in drawn:
        source = {i for i, _ in phrase.links}
        target = {j for _, j in phrase.links}
        for i, word in enumerate(phrase.source_words):
            assert i in source or word.lower() in source_alone, phrase
        for j, word in enumerate(phrase.target_words):
            assert j in target or word in target_alone, phrase


def test_most_words_are_linked_and_few_to_many(many):
    language, drawn = many
    linked = sum(len({i for i, _ in phrase.links}) for phrase in drawn)
    total = sum(len(phrase.source_words) for phrase in drawn)
    links = sum(len(phrase.links) for phrase in drawn)
    assert linked / total > {"fr": 0.99, "zh": 0.87}[language]
    assert links / total < 1.35


def test_the_last_marks_are_counterparts(many):
    for phrase in many[1]:
        assert phrase.links[-1] == (len(phrase.source_words) - 1, len(phrase.target_words) - 1)


def test_words_change_places_in_many_phrases(many):
    language, drawn = many
    crossing = sum(_crosses(phrase.links) for phrase in drawn)
    assert crossing / len(drawn) > {"fr": 0.45, "zh": 0.6}[language]


def _crosses(links):
    return any(i < k and j > n for i, j in links for k, n in links)


def test_sentences_are_short_and_long(many):
    lengths = [len(phrase.source_words) for phrase in many[1]]
    assert min(lengths) <= 4
    assert max(lengths) <= 26
    assert 8 < sum(lengths) / len(lengths) < 11
    assert sum(length >= 12 for length in lengths) / len(lengths) > 0.15


def test_the_vocabulary_is_small_enough_to_learn(many):
    language, drawn = many
    source = {word.lower() for phrase in drawn for word in phrase.source_words}
    target = {word.lower() for phrase in drawn for word in phrase.target_words}
    assert 350 < len(source) < 520
    assert len(target) < {"fr": 950, "zh": 400}[language]


def test_a_sentence_opens_with_a_capital_and_ends_with_a_stop(many):
    language, drawn = many
    for phrase in drawn:
        assert phrase.source[0].isupper() and phrase.source[-1] in ".?"
        assert phrase.target[-1] in {"fr": ".?", "zh": "。？"}[language]
        assert (phrase.source[-1] == "?") == (phrase.target[-1] in "?？")
        if language == "fr":
            assert phrase.target[0].isupper()


WRONG_ENGLISH = re.compile(
    r"\ba [aeio]|\ban [^aeiou]|\b(he|she|it) (do|are)\b|\b(I|we|they) (is|does|has)\b"
    r"|^(two|three|four|five|six|ten) \w+ (is|does|was)\b"
    r"|\bcan not\b|\bthat that\b|  | [.,?]",
    re.I,
)


def test_english_agrees(many):
    for phrase in many[1]:
        assert not WRONG_ENGLISH.search(phrase.source), phrase.source


def test_the_splits_of_a_corpus_share_no_sentence():
    for language in LANGUAGES:
        split = corpus(language, train=150, valid=20, test=30, seed=2)
        assert [len(part) for part in split] == [150, 20, 30]
        for side in ("source", "target"):
            sets = [{getattr(phrase, side) for phrase in part} for part in split]
            assert len(set.union(*sets)) == 200


def test_what_is_held_out_stays_when_there_is_more_to_train_on():
    small, large = corpus(train=50, valid=7, test=13), corpus(train=60, valid=7, test=13)
    assert (small.valid, small.test) == (large.valid, large.test)
    assert small.train == large.train[:50]


@pytest.mark.usefixtures("unchecked")
def test_an_unknown_language_is_refused_with_the_nearest():
    with pytest.raises(RegardError, match=r"no language of the phrasebook is called 'fra'.* 'fr'"):
        phrases("fra", count=1)


def test_more_than_there_are_is_refused_with_the_number():
    with pytest.raises(RegardError, match="has 100000 phrases for a seed, but 100001 were asked"):
        phrases(count=100_001)
    with pytest.raises(RegardError, match="has 100000 phrases for a seed, but 100004 were asked"):
        corpus("zh", train=100_000, valid=3, test=1)


def test_a_number_below_zero_is_refused():
    assert phrases(count=0) == []
    with pytest.raises(ValueError, match="count must be 0 or more, but it is -1"):
        phrases(count=-1)


@pytest.mark.slow
@pytest.mark.parametrize("language", LANGUAGES)
def test_all_phrases_of_a_seed_can_be_drawn(language, drawn):
    found = drawn(language, 100_000)
    assert len({phrase.source for phrase in found}) == 100_000
    assert len({phrase.target for phrase in found}) == 100_000
