import pytest

from grammar.lexicon.adjectives import (
    ADJECTIVES,
    ATTRIBUTES,
    MOODS,
    PREDICATES,
    adjective_names,
)
from grammar.lexicon.nouns import NOUN, NOUNS

WORD = {word.english: word for word in ADJECTIVES + MOODS}


@pytest.mark.parametrize(
    ("word", "forms"),
    [
        ("beautiful", "beau belle beaux belles"),
        ("white", "blanc blanche blancs blanches"),
        ("brown", "marron marron marron marron"),
        ("grey", "gris grise gris grises"),
        ("expensive", "cher chère chers chères"),
    ],
)
def test_adjectives_agree_in_gender_and_number(word, forms):
    cases = [(False, False), (True, False), (False, True), (True, True)]
    assert " ".join(WORD[word].inflect(*case) for case in cases) == forms


def test_three_adjectives_have_a_form_before_a_vowel():
    forms = {word.french[4] for word in ADJECTIVES if len(word.french) == 5}
    assert forms == {"bel", "vieil", "nouvel"}
    assert all(len(word.french) in (4, 5) for word in ADJECTIVES + MOODS)


def test_colours_and_long_adjectives_take_de():
    assert WORD["red"].colour and WORD["red"].linked
    assert (WORD["big"].chinese, WORD["big"].linked) == ("大", False)
    assert (WORD["cold"].chinese, WORD["cold"].chinese_predicate) == ("冷", "凉")


def test_old_is_another_word_for_the_living():
    said = {
        noun: next(word.chinese for word in ATTRIBUTES[NOUN[noun]] if word.english == "old")
        for noun in ("dog", "car")
    }
    assert said == {"dog": "老", "car": "旧"}


def test_comparatives_are_made_by_more_or_by_an_ending():
    assert WORD["big"].comparative == "bigger"
    assert WORD["interesting"].comparative == "more interesting"
    assert WORD["red"].comparative == ""


def test_no_noun_has_an_adjective_twice():
    for table in (ATTRIBUTES, PREDICATES):
        for noun in NOUNS:
            names = [word.english for word in table[noun]]
            assert len(names) == len(set(names)), (noun.singular, names)


def test_unknown_adjective_is_refused():
    assert adjective_names("big old") == {"big", "old"}
    with pytest.raises(AssertionError, match="purple"):
        adjective_names("big purple")
