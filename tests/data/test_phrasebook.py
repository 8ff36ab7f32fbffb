import subprocess
import sys

import pytest

from regard.data.phrasebook import (
    LANGUAGES,
    SIZE,
    load_phrasebook,
    load_source_words,
    phrasebook_language,
)
from regard.errors import RegardError

pytestmark = pytest.mark.usefixtures("unchecked")  # 21,000 checked pairs take a minute


@pytest.mark.parametrize("language", LANGUAGES)
def test_default_splits_are_20_000_training_and_500_held_out_pairs_each(language):
    book = load_phrasebook(language)
    assert [len(split) for split in book] == [20_000, 500, 500]
    for side in ("source", "target"):
        assert len({getattr(pair, side) for split in book for pair in split}) == SIZE


def test_held_out_pairs_do_not_depend_on_the_number_of_training_pairs():
    small, large = (load_phrasebook(train=train, valid=7, test=13) for train in (50, 60))
    assert (small.valid, small.test) == (large.valid, large.test)
    assert small.train == large.train[:50]


@pytest.mark.parametrize("language", LANGUAGES)
def test_word_spans_cover_the_words_and_all_but_spaces(language):
    for pair in load_phrasebook(language, train=500).train:
        spans = pair.word_spans()
        for text, words, word_spans in (
            (pair.source, pair.source_words, spans.source),
            (pair.target, pair.target_words, spans.target),
        ):
            assert tuple(text[start:end] for start, end in word_spans) == words
            assert "".join(words) == "".join(text.split())
        assert spans.links == pair.links


@pytest.mark.parametrize("language", LANGUAGES)
def test_training_pair_links_the_characters_of_aligned_words(language):
    for aligned in load_phrasebook(language, train=50).train:
        pair = aligned.to_pair()
        assert (pair.source, pair.target) == (aligned.source, aligned.target)
        linked = [(pair.source[slice(*s)], pair.target[slice(*t)]) for s, t in pair.links]
        words = [(aligned.source_words[i], aligned.target_words[j]) for i, j in aligned.links]
        assert linked == words != []


def test_first_pair_is_read_with_its_words_and_links():
    (pair,) = load_phrasebook("fr", train=1, valid=0, test=0).train
    assert pair.source == "When she is happy, she sings songs."
    assert pair.target == "Quand elle est heureuse, elle chante des chansons."
    assert pair.source_words == ("When", "she", "is", "happy", ",", "she", "sings", "songs", ".")
    assert pair.target_words[4:] == (",", "elle", "chante", "des", "chansons", ".")
    assert pair.links[-4:] == ((6, 6), (7, 7), (7, 8), (8, 9))  # songs: des chansons


@pytest.mark.parametrize("language", LANGUAGES)
def test_source_words_are_those_of_all_pairs_in_lower_case(language):
    words = load_source_words(language)
    assert all(word == word.lower() and word.isalnum() for word in words)
    for split in load_phrasebook(language, train=300):
        for pair in split:
            spoken = {word.lower().removeprefix("'") for word in pair.source_words}
            assert {word for word in spoken if word.isalnum()} <= words


@pytest.mark.parametrize("dataset", [None, "phrasebook", {"name": "phrasebook"}, {"name": "x"}])
def test_other_data_sets_are_not_the_phrasebook(dataset):
    assert phrasebook_language(dataset) is None


def test_unknown_language_is_refused_with_the_nearest():
    with pytest.raises(RegardError, match=r"no language of the phrasebook is called 'fra'.* 'fr'"):
        load_phrasebook("fra")


def test_more_pairs_than_there_are_is_refused():
    with pytest.raises(RegardError, match=r"at most 21,000, .* 21000 \+ 3 \+ 1 = 21,004"):
        load_phrasebook("zh", train=21_000, valid=3, test=1)


@pytest.mark.parametrize("name", ["train", "valid", "test"])
def test_negative_number_of_pairs_is_refused(name):
    with pytest.raises(RegardError, match=f"{name} must be 0 or more, but it is -1"):
        load_phrasebook(**{name: -1})


def test_loading_imports_neither_torch_nor_the_grammar():
    code = (
        "import sys; from regard.data.phrasebook import load_phrasebook; load_phrasebook(); "
        "print({'torch', 'grammar'} & {*sys.modules})"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert run.stdout == "set()\n"
