from random import Random

import pytest

from grammar.lexicon.phrases import OFTEN
from grammar.meaning import Nominal, Pronoun
from grammar.sampling.questions import KINDS, question


@pytest.fixture(scope="module")
def questions():
    chance = Random(6)
    return [question(chance) for _ in range(400)]


def test_everything_is_asked_for(questions):
    assert {told.question for told in questions} == set(KINDS)


def test_what_is_asked_for_is_not_said(questions):
    for told in questions:
        assert not (told.question == "where" and told.place)
        assert not (told.question == "when" and told.time)
        assert not (told.question == "what" and isinstance(told.object, Nominal))


def test_one_asks_which_and_how_many(questions):
    asked = [told.object for told in questions if told.question == "which"]
    assert {one.determiner for one in asked} == {"which", "how many"}
    assert all(one.plural for one in asked if one.determiner == "how many")


def test_a_question_is_simple(questions):
    for told in questions:
        assert told.subject != Pronoun("I")
        assert not told.fronted and told.often != OFTEN["never"]
        assert not told.negated or told.question == "why"
