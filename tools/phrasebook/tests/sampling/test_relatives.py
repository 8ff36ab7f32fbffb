from random import Random

from grammar.sampling.relatives import add_relative


def relatives(m, noun, main, count=60):
    found = [add_relative(Random(seed), m.thing(noun), main).relative for seed in range(count)]
    return [meaning for meaning in found if meaning]


def test_relative_clause_has_a_subject_or_an_object_gap(m):
    found = relatives(m, "cat", m.act("sleep", m.thing("cat")))
    assert {meaning.gap for meaning in found} == {"subject", "object"}
    for meaning in found:
        assert (meaning.subject if meaning.gap == "subject" else meaning.object) == m.thing("cat")
        assert meaning.tense in ("simple", "progressive", "past") and not meaning.negated


def test_relative_clause_of_a_thing_has_no_subject_gap(m):
    found = relatives(m, "book", m.act("read", m.who("I"), m.thing("book")))
    assert {meaning.gap for meaning in found} == {"object"}


def test_relative_clause_does_not_repeat_the_main_verb(m):
    main = m.act("read", m.who("I"), m.thing("book"))
    assert "read" not in {meaning.frame.verb.base for meaning in relatives(m, "book", main)}
    assert "buy" in {meaning.frame.verb.base for meaning in relatives(m, "book", main)}


def test_relative_clause_has_no_time_beside_another_time(m):
    main = m.act("fall", m.thing("girl"), None, "past", time="yesterday")
    assert not any(meaning.time for meaning in relatives(m, "girl", main))
