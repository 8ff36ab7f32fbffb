from random import Random

import pytest

from grammar.lexicon.phrases import OFTEN
from grammar.meaning import Nominal
from grammar.sampling.clauses import FRAMES, add_time, can_negate, clause, sample_tense


@pytest.fixture(scope="module")
def clauses():
    rng = Random(1)
    return [clause(rng) for _ in range(600)]


def test_a_clause_fills_the_roles_of_its_frame(clauses):
    for meaning in clauses:
        assert bool(meaning.object) == bool(meaning.frame.objects)
        assert bool(meaning.recipient) == bool(meaning.frame.recipient)
        assert meaning.place is None or meaning.frame.places


def test_a_verb_has_only_its_own_tenses(clauses):
    for meaning in clauses:
        assert ("future" if meaning.tense == "going" else meaning.tense) in meaning.frame.tenses
        assert (meaning.tense == "modal") == bool(meaning.modal)
    rng = Random(4)
    assert {sample_tense(rng, FRAMES[0]) for _ in range(200)} >= {"past", "going", "modal"}


def test_times_suit_the_tense(clauses):
    for meaning in clauses:
        if meaning.time:
            assert ("future" if meaning.tense == "going" else meaning.tense) in meaning.time.tenses
        assert not (meaning.fronted and meaning.time is None)


def test_imperfective_past_has_a_time(clauses):
    past = [
        meaning for meaning in clauses if meaning.tense == "past" and not meaning.frame.perfective
    ]
    assert past and all(meaning.time for meaning in past)


def test_negation_is_unambiguous(clauses):
    denied = [meaning for meaning in clauses if meaning.negated]
    assert len(denied) > 30
    assert all(can_negate(meaning.frame, meaning.subject, meaning.tense) for meaning in denied)
    assert not any(meaning.often for meaning in denied)


def test_object_of_never_is_as_under_negation(m):
    meaning = m.act("eat", m.who("I"), m.thing("apple", "three", True))
    found = [add_time(Random(seed), meaning) for seed in range(100)]
    never = [one for one in found if one.often == OFTEN["never"]]
    assert never
    assert {one.object for one in never} == {m.thing("apple", "", True)}


def test_animals_only_want(clauses):
    for meaning in clauses:
        subject = meaning.subject
        if meaning.modal and isinstance(subject, Nominal) and "animal" in subject.noun.kinds:
            assert meaning.modal == "want"
