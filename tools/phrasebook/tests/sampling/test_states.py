from random import Random

import pytest

from grammar.lexicon.adjectives import MOODS, Adjective
from grammar.lexicon.nouns import Noun
from grammar.meaning import Nominal, Place, Pronoun
from grammar.sampling import states


def many(draw, count=150):
    rng = Random(8)
    return [draw(rng) for _ in range(count)]


def test_people_feel_and_have_professions():
    assert all(meaning.predicate in MOODS for meaning in many(states.feeling))
    assert all(isinstance(meaning.predicate, Noun) for meaning in many(states.profession))


def test_adjective_fits_its_subject():
    for meaning in many(states.quality):
        assert isinstance(meaning.predicate, Adjective) and meaning.predicate.fits(
            meaning.subject.noun
        )
        assert meaning.degree == "" or meaning.predicate.graded


@pytest.mark.parametrize("draw", [states.state, states.location, states.feeling])
def test_questions_avoid_i_and_negations_avoid_indefinite_subjects(draw):
    for meaning in many(draw):
        assert not (meaning.question == "whether" and meaning.subject == Pronoun("I"))
        vague = isinstance(meaning.subject, Nominal) and meaning.subject.determiner == "every"
        assert not (vague and meaning.negated)


def test_everything_is_somewhere():
    assert all(isinstance(meaning.predicate, Place) for meaning in many(states.location))
    assert all(meaning.predicate is None for meaning in many(states.where))


def test_two_are_compared_that_are_not_one():
    for meaning in many(states.comparison):
        assert meaning.than != meaning.subject and meaning.predicate.comparative
        if isinstance(meaning.subject, Nominal):
            assert {meaning.subject.determiner, meaning.than.determiner} != {"his", "her"}


def test_subject_of_an_existential_is_indefinite():
    new = {"a", "some", "any", "", "many", "two", "three", "four", "five", "six", "ten"}
    for meaning in many(states.existence):
        assert meaning.nominal.determiner in new
        assert not meaning.negated or meaning.nominal.determiner == ""
