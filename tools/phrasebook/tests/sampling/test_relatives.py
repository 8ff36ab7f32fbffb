from random import Random

from grammar.sampling.relatives import described


def relatives(m, noun, main, count=60):
    found = [described(Random(seed), m.thing(noun), main).relative for seed in range(count)]
    return [told for told in found if told]


def test_a_clause_tells_what_one_does_or_what_is_done_to_it(m):
    found = relatives(m, "cat", m.act("sleep", m.thing("cat")))
    assert {told.gap for told in found} == {"subject", "object"}
    for told in found:
        assert (told.subject if told.gap == "subject" else told.object) == m.thing("cat")
        assert told.tense in ("simple", "progressive", "past") and not told.negated


def test_things_do_nothing(m):
    found = relatives(m, "book", m.act("read", m.who("I"), m.thing("book")))
    assert {told.gap for told in found} == {"object"}


def test_it_does_not_repeat_the_main_verb(m):
    main = m.act("read", m.who("I"), m.thing("book"))
    assert "read" not in {told.frame.verb.base for told in relatives(m, "book", main)}
    assert "buy" in {told.frame.verb.base for told in relatives(m, "book", main)}


def test_it_is_not_dated_beside_a_date(m):
    main = m.act("fall", m.thing("girl"), None, "past", time="yesterday")
    assert not any(told.time for told in relatives(m, "girl", main))
