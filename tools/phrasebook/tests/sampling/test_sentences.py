from random import Random

from grammar.meaning import Clause, Nominal
from grammar.sampling.sentences import report, sentence, sequel, statement


def many(draw, count=400):
    chance = Random(10)
    return [draw(chance) for _ in range(count)]


def test_every_kind_of_sentence_is_drawn():
    kinds = {type(meaning).__name__ for meaning in many(sentence)}
    assert kinds == {"Clause", "State", "Existence", "Compound", "Report", "Sequel"}


def test_some_statements_hold_a_relative_clause():
    told = many(statement)
    for role in ("subject", "object"):
        things = [getattr(clause, role) for clause in told]
        relatives = [one for one in things if isinstance(one, Nominal) and one.relative]
        assert 5 < len(relatives) < 60, role


def test_a_report_is_about_a_statement_without_two_thats():
    for told in many(report):
        assert told.content.question == ""
        assert not (isinstance(told.content, Clause) and told.content.fronted)
        subject = told.content.subject
        assert not (isinstance(subject, Nominal) and subject.determiner == "that")


def test_a_sequel_is_past_and_done_to_one_object():
    for told in many(sequel):
        assert told.clause.tense == "past"
        assert told.clause.object.noun in told.frame.objects
        assert told.clause.fronted == (told.clause.time is not None)
