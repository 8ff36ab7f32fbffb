from random import Random

import pytest

from grammar.lexicon.phrases import OFTEN
from grammar.meaning import Nominal, Pronoun
from grammar.sampling.questions import KINDS, question


@pytest.fixture(scope="module")
def questions():
    rng = Random(6)
    return [question(rng) for _ in range(400)]


def test_every_kind_of_question_is_sampled(questions):
    assert {meaning.question for meaning in questions} == set(KINDS)


def test_question_omits_what_it_asks_for(questions):
    for meaning in questions:
        assert not (meaning.question == "where" and meaning.place)
        assert not (meaning.question == "when" and meaning.time)
        assert not (meaning.question == "what" and isinstance(meaning.object, Nominal))


def test_one_asks_which_and_how_many(questions):
    asked = [meaning.object for meaning in questions if meaning.question == "which"]
    assert {one.determiner for one in asked} == {"which", "how many"}
    assert all(one.plural for one in asked if one.determiner == "how many")


def test_question_has_no_fronted_time_and_no_never(questions):
    for meaning in questions:
        assert meaning.subject != Pronoun("I")
        assert not meaning.fronted and meaning.often != OFTEN["never"]
        assert not meaning.negated or meaning.question == "why"
