from random import Random

import pytest

from grammar.lexicon.adjectives import MOODS, Adjective
from grammar.lexicon.nouns import Noun
from grammar.meaning import Nominal, Place, Pronoun
from grammar.sampling import states


def many(draw, count=150):
    chance = Random(8)
    return [draw(chance) for _ in range(count)]


def test_people_feel_and_have_professions():
    assert all(told.predicate in MOODS for told in many(states.feeling))
    assert all(isinstance(told.predicate, Noun) for told in many(states.profession))


def test_an_adjective_fits_what_it_is_said_of():
    for told in many(states.quality):
        assert isinstance(told.predicate, Adjective) and told.predicate.fits(told.subject.noun)
        assert told.degree == "" or told.predicate.graded


@pytest.mark.parametrize("draw", [states.state, states.location, states.feeling])
def test_one_does_not_ask_about_oneself_nor_deny_of_no_one(draw):
    for told in many(draw):
        assert not (told.question == "whether" and told.subject == Pronoun("I"))
        vague = isinstance(told.subject, Nominal) and told.subject.determiner == "every"
        assert not (vague and told.negated)


def test_everything_is_somewhere():
    assert all(isinstance(told.predicate, Place) for told in many(states.location))
    assert all(told.predicate is None for told in many(states.where))


def test_two_are_compared_that_are_not_one():
    for told in many(states.comparison):
        assert told.than != told.subject and told.predicate.comparative
        if isinstance(told.subject, Nominal):
            assert {told.subject.determiner, told.than.determiner} != {"his", "her"}


def test_what_there_is_is_new_to_the_listener():
    new = {"a", "some", "any", "", "many", "two", "three", "four", "five", "six", "ten"}
    for told in many(states.existence):
        assert told.nominal.determiner in new
        assert not told.negated or told.nominal.determiner == ""
