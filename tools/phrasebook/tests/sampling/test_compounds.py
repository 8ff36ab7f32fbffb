from random import Random

import pytest

from grammar.meaning import Clause, Nominal, Pronoun, State
from grammar.sampling.compounds import compound


@pytest.fixture(scope="module")
def compounds():
    rng = Random(9)
    return [compound(rng) for _ in range(300)]


def test_there_are_four_ways_to_join(compounds):
    assert {meaning.conjunction for meaning in compounds} == {"because", "but", "when", "if"}


def test_mood_is_followed_by_a_habit_or_a_plan(compounds):
    for meaning in compounds:
        if meaning.conjunction in ("when", "if"):
            assert isinstance(meaning.first, State) and isinstance(meaning.second, Clause)
            assert isinstance(meaning.second.subject, Pronoun)
            assert meaning.second.tense == ("simple" if meaning.conjunction == "when" else "future")


def test_a_pronoun_stands_for_what_was_said_before(compounds):
    for meaning in compounds:
        if meaning.conjunction == "because" and meaning.second.subject.noun:
            said = [
                one.noun
                for one in (meaning.first.subject, meaning.first.object)
                if isinstance(one, Nominal)
            ]
            assert meaning.second.subject.noun in said


def test_one_taste_is_not_another(compounds):
    for meaning in compounds:
        if meaning.conjunction == "but" and isinstance(meaning.first, Clause):
            assert meaning.first.object != meaning.second.object
