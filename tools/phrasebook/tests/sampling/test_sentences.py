from random import Random

from grammar.meaning import Clause, Nominal
from grammar.sampling.sentences import report, sentence, sequel, statement


def many(draw, count=400):
    rng = Random(10)
    return [draw(rng) for _ in range(count)]


def test_every_kind_of_sentence_is_sampled():
    kinds = {type(meaning).__name__ for meaning in many(sentence)}
    assert kinds == {"Clause", "State", "Existence", "Compound", "Report", "Sequel"}


def test_some_statements_hold_a_relative_clause():
    meaning = many(statement)
    for role in ("subject", "object"):
        things = [getattr(clause, role) for clause in meaning]
        relatives = [one for one in things if isinstance(one, Nominal) and one.relative]
        assert 5 < len(relatives) < 60, role


def test_a_report_is_about_a_statement_without_two_thats():
    for meaning in many(report):
        assert meaning.content.question == ""
        assert not (isinstance(meaning.content, Clause) and meaning.content.fronted)
        subject = meaning.content.subject
        assert not (isinstance(subject, Nominal) and subject.determiner == "that")


def test_a_sequel_is_past_and_done_to_one_object():
    for meaning in many(sequel):
        assert meaning.clause.tense == "past"
        assert meaning.clause.object.noun in meaning.frame.objects
        assert meaning.clause.fronted == (meaning.clause.time is not None)
