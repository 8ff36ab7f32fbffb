import pytest

from grammar.french.clause import clause, is_inverted
from grammar.french.elision import elide_and_contract
from grammar.words import join_words


def text(meaning):
    return join_words([word.text for word in elide_and_contract(clause(meaning))], "fr")


@pytest.mark.parametrize(
    ("subject", "question", "said"),
    [
        ("he", "where", "où dort-il"),
        ("I", "where", "où est-ce que je dors"),
        ("she", "whether", "est-ce qu'elle dort"),
        ("you", "why", "pourquoi dors-tu"),
        ("he", "who", "qui dort"),
    ],
)
def test_pronouns_are_inverted_after_a_question_word(m, subject, question, said):
    meaning = m.act("sleep", m.who(subject), question=question)
    assert text(meaning) == said
    assert is_inverted(meaning) == ("-" in said and "est-ce" not in said)


def test_what_is_que_before_a_verb_and_opens_est_ce_que_otherwise(m):
    assert text(m.act("buy", m.who("you"), m.who("it"), question="what")) == "qu'achètes-tu"
    meaning = m.act("buy", m.name("Anna"), m.who("it"), question="what")
    assert text(meaning) == "qu'est-ce qu'Anna achète"


def test_english_calls_someone_and_french_calls_to_someone(m):
    words = clause(m.act("call", m.name("Paul"), recipient=m.thing("friend", "his")))
    to = next(word for word in words if word.text == "à")
    assert to.marks == ("verb",)


def test_the_time_may_open_the_sentence(m):
    meaning = m.act("fall", m.who("I"), None, "past", time="two days ago", fronted=True)
    assert text(meaning) == "il y a deux jours, je suis tombé"
