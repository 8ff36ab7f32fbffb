from random import Random

import pytest

from grammar.meaning import Clause, Nominal, Pronoun, State
from grammar.sampling.joined import joined


@pytest.fixture(scope="module")
def compounds():
    chance = Random(9)
    return [joined(chance) for _ in range(300)]


def test_there_are_four_ways_to_join(compounds):
    assert {told.conjunction for told in compounds} == {"because", "but", "when", "if"}


def test_a_mood_has_its_habit_or_its_plan(compounds):
    for told in compounds:
        if told.conjunction in ("when", "if"):
            assert isinstance(told.first, State) and isinstance(told.second, Clause)
            assert isinstance(told.second.subject, Pronoun)
            assert told.second.tense == ("simple" if told.conjunction == "when" else "future")


def test_a_pronoun_stands_for_what_was_said_before(compounds):
    for told in compounds:
        if told.conjunction == "because" and told.second.subject.noun:
            said = [
                one.noun
                for one in (told.first.subject, told.first.object)
                if isinstance(one, Nominal)
            ]
            assert told.second.subject.noun in said


def test_one_taste_is_not_another(compounds):
    for told in compounds:
        if told.conjunction == "but" and isinstance(told.first, Clause):
            assert told.first.object != told.second.object
