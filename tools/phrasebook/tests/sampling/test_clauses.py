from random import Random

import pytest

from grammar.lexicon.phrases import OFTEN
from grammar.meaning import Nominal
from grammar.sampling.clauses import FRAMES, clause, dated, deniable, tense


@pytest.fixture(scope="module")
def clauses():
    chance = Random(1)
    return [clause(chance) for _ in range(600)]


def test_a_clause_fills_the_roles_of_its_frame(clauses):
    for told in clauses:
        assert bool(told.object) == bool(told.frame.objects)
        assert bool(told.recipient) == bool(told.frame.recipient)
        assert told.place is None or told.frame.places


def test_a_verb_has_only_its_own_tenses(clauses):
    for told in clauses:
        assert ("future" if told.tense == "going" else told.tense) in told.frame.tenses
        assert (told.tense == "modal") == bool(told.modal)
    chance = Random(4)
    assert {tense(chance, FRAMES[0]) for _ in range(200)} >= {"past", "going", "modal"}


def test_times_suit_the_tense(clauses):
    for told in clauses:
        if told.time:
            assert ("future" if told.tense == "going" else told.tense) in told.time.tenses
        assert not (told.fronted and told.time is None)


def test_a_past_without_an_end_is_dated(clauses):
    past = [told for told in clauses if told.tense == "past" and not told.frame.finished]
    assert past and all(told.time for told in past)


def test_a_negation_is_clear(clauses):
    denied = [told for told in clauses if told.negated]
    assert len(denied) > 30
    assert all(deniable(told.frame, told.subject, told.tense) for told in denied)
    assert not any(told.often for told in denied)


def test_never_denies_what_is_new(m):
    told = m.act("eat", m.who("I"), m.thing("apple", "three", True))
    found = [dated(Random(seed), told) for seed in range(100)]
    never = [one for one in found if one.often == OFTEN["never"]]
    assert never
    assert {one.object for one in never} == {m.thing("apple", "", True)}


def test_animals_only_want(clauses):
    for told in clauses:
        subject = told.subject
        if told.modal and isinstance(subject, Nominal) and "animal" in subject.noun.kinds:
            assert told.modal == "want"
