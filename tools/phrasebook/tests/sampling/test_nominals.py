from random import Random

import pytest

from grammar.lexicon.nouns import NOUN, NOUNS
from grammar.lexicon.phrases import PLACES
from grammar.meaning import Nominal, Pronoun
from grammar.sampling.nominals import (
    NUMBERS,
    PEOPLE,
    POSSESSABLE,
    RELATIONS,
    adjectives,
    choose,
    definite_nominal,
    demonstrative_nominal,
    indefinite_nominal,
    is_indefinite,
    numeral_nominal,
    other_person,
    place,
    possessive_nominal,
    sample_subject,
    singular_indefinite,
)


@pytest.fixture
def rng():
    return Random(3)


def test_every_option_is_chosen(rng):
    assert {choose(rng, "abc") for _ in range(100)} == set("abc")


def test_the_second_adjective_is_a_colour(rng):
    for noun in NOUNS * 20:
        words = adjectives(rng, noun)
        assert all(word.attribute and word.fits(noun) for word in words)
        assert len(words) < 3
        if len(words) == 2:
            assert words[0].before and words[1].colour


def test_a_brother_is_always_someones(rng):
    for noun in (*RELATIONS,) * 20:
        for draw in (definite_nominal, possessive_nominal):
            drawn = draw(rng, noun)
            assert drawn.determiner != "the" and (drawn.owner or drawn.determiner)


def test_no_one_has_two_mothers(rng):
    drawn = [
        draw(rng, NOUN["mother"])
        for draw in (definite_nominal, possessive_nominal)
        for _ in range(100)
    ]
    assert not any(one.plural for one in drawn)


def test_uncountable_noun_has_no_plural(rng):
    for noun in NOUNS:
        if not noun.countable:
            for draw in (singular_indefinite, indefinite_nominal, demonstrative_nominal):
                drawn = draw(rng, noun)
                assert not drawn.plural or drawn.content


def test_numbers_go_with_plurals(rng):
    drawn = [numeral_nominal(rng, NOUN["cat"]) for _ in range(200)]
    assert {one.determiner for one in drawn} == {*NUMBERS, "many"}
    assert all(one.plural and is_indefinite(one) for one in drawn)


def test_no_one_is_their_own_companion(rng):
    for word in ("I", "we", "you"):
        found = {other_person(rng, Pronoun(word)) for _ in range(300)}
        assert Pronoun(word) not in found
    assert Pronoun("we") not in {other_person(rng, Pronoun("I")) for _ in range(300)}


def test_pronouns_and_names_stand_where_anyone_may(rng):
    anyone = {type(sample_subject(rng, PEOPLE, True)).__name__ for _ in range(100)}
    some = {type(sample_subject(rng, PEOPLE, False)).__name__ for _ in range(100)}
    assert (anyone, some) == ({"Nominal", "Name", "Pronoun"}, {"Nominal"})


def test_a_place_is_one_of_its_kind(rng):
    for _ in range(100):
        drawn = place(rng, ("seat", "water"))
        choices = PLACES["seat"] + PLACES["water"]
        assert any(
            drawn.nominal.noun in nouns and drawn.preposition in prepositions
            for nouns, prepositions in choices
        )
        assert isinstance(drawn.nominal, Nominal) and not drawn.nominal.plural
        assert drawn.nominal.determiner in ("the", "a", "this") or drawn.nominal.noun in POSSESSABLE
