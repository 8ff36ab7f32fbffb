from random import Random

import pytest

from grammar.lexicon.nouns import NOUN, NOUNS
from grammar.lexicon.phrases import PLACES
from grammar.meaning import Nominal, Pronoun
from grammar.sampling.nominals import (
    NUMBERS,
    OWNED,
    PEOPLE,
    TIES,
    adjectives,
    counted,
    fresh,
    known,
    other,
    owned,
    pick,
    place,
    pointed,
    single,
    someone,
    vague,
)


@pytest.fixture
def chance():
    return Random(3)


def test_every_option_is_picked_some_day(chance):
    assert {pick(chance, "abc") for _ in range(100)} == set("abc")


def test_the_second_adjective_is_a_colour(chance):
    for noun in NOUNS * 20:
        words = adjectives(chance, noun)
        assert all(word.attribute and word.fits(noun) for word in words)
        assert len(words) < 3
        if len(words) == 2:
            assert words[0].before and words[1].colour


def test_a_brother_is_always_someones(chance):
    for noun in (*TIES,) * 20:
        for draw in (known, owned):
            drawn = draw(chance, noun)
            assert drawn.determiner != "the" and (drawn.owner or drawn.determiner)


def test_no_one_has_two_mothers(chance):
    drawn = [draw(chance, NOUN["mother"]) for draw in (known, owned) for _ in range(100)]
    assert not any(one.plural for one in drawn)


def test_what_is_not_counted_has_no_plural(chance):
    for noun in NOUNS:
        if not noun.counted:
            for draw in (single, fresh, pointed):
                drawn = draw(chance, noun)
                assert not drawn.plural or drawn.content


def test_numbers_go_with_plurals(chance):
    drawn = [counted(chance, NOUN["cat"]) for _ in range(200)]
    assert {one.determiner for one in drawn} == {*NUMBERS, "many"}
    assert all(one.plural and vague(one) for one in drawn)


def test_no_one_is_their_own_companion(chance):
    for word in ("I", "we", "you"):
        found = {other(chance, Pronoun(word)) for _ in range(300)}
        assert Pronoun(word) not in found
    assert Pronoun("we") not in {other(chance, Pronoun("I")) for _ in range(300)}


def test_pronouns_and_names_stand_where_anyone_may(chance):
    anyone = {type(someone(chance, PEOPLE, True)).__name__ for _ in range(100)}
    some = {type(someone(chance, PEOPLE, False)).__name__ for _ in range(100)}
    assert (anyone, some) == ({"Nominal", "Name", "Pronoun"}, {"Nominal"})


def test_a_place_is_one_of_its_kind(chance):
    for _ in range(100):
        drawn = place(chance, ("seat", "water"))
        choices = PLACES["seat"] + PLACES["water"]
        assert any(
            drawn.nominal.noun in nouns and drawn.preposition in prepositions
            for nouns, prepositions in choices
        )
        assert isinstance(drawn.nominal, Nominal) and not drawn.nominal.plural
        assert drawn.nominal.determiner in ("the", "a", "this") or drawn.nominal.noun in OWNED
