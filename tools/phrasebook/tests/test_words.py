import pytest

from grammar.words import Word, capitalize, join_words, split_words


@pytest.mark.parametrize(
    ("sentence", "parts"),
    [
        ("Marie's cat, is it here?", ("Marie", "'s", "cat", ",", "is", "it", "here", "?")),
        ("Two days ago, I fell.", ("Two", "days", "ago", ",", "I", "fell", ".")),
    ],
)
def test_english_splits_at_marks_and_before_the_owner_s(sentence, parts):
    assert split_words(sentence, "en") == parts
    assert join_words(parts, "en") == sentence


@pytest.mark.parametrize(
    ("sentence", "parts"),
    [
        ("L'homme n'a pas d'eau.", ("L'", "homme", "n'", "a", "pas", "d'", "eau", ".")),
        ("Où habite-t-elle\u202f?", ("Où", "habite", "-t-elle", "?")),
        ("Pourquoi vas-tu au parc\u202f?", ("Pourquoi", "vas", "-tu", "au", "parc", "?")),
        ("Est-ce qu'il dort\u202f?", ("Est-ce", "qu'", "il", "dort", "?")),
        ("Ma grand-mère vient aujourd'hui.", ("Ma", "grand-mère", "vient", "aujourd'hui", ".")),
        ("Aujourd'hui, je dors.", ("Aujourd'hui", ",", "je", "dors", ".")),
    ],
)
def test_french_splits_after_an_elision_and_before_an_inverted_pronoun(sentence, parts):
    assert split_words(sentence, "fr") == parts
    assert join_words(parts, "fr") == sentence


def test_chinese_words_are_joined_without_spaces():
    assert join_words(("猫", "在", "哪里", "？"), "zh") == "猫在哪里？"


def test_only_the_first_word_is_capitalized():
    said = capitalize([Word("où", ("asked",)), Word("est")])
    assert said == [Word("Où", ("asked",)), Word("est")]
    assert capitalize([Word("I"), Word("am")])[0].text == "I"
