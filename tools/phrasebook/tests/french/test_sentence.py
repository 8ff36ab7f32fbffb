import pytest

from grammar.french.sentence import sentence
from grammar.lexicon.nouns import NOUN
from grammar.meaning import Compound, Existence


def text(m, meaning):
    return m.say(meaning, "fr")


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({}, "La table est vieille."),
        ({"negated": True}, "La table n'est pas vieille."),
        ({"question": "whether"}, "Est-ce que la table est vieille\u202f?"),
        ({"degree": "too"}, "La table est trop vieille."),
    ],
)
def test_an_adjective_agrees_with_its_subject(m, form, said):
    assert text(m, m.being(m.thing("table"), "old", **form)) == said


def test_a_pronoun_agrees_with_what_it_stands_for(m):
    meaning = Compound(
        "but",
        m.being(m.thing("house", "my"), "small"),
        m.being(m.who("it", NOUN["house"]), m.adjective("beautiful", NOUN["house"])),
    )
    assert text(m, meaning) == "Ma maison est petite, mais elle est belle."


def test_a_profession_has_no_article(m):
    assert text(m, m.being(m.thing("mother", "my"), "farmer")) == "Ma mère est fermière."


def test_negated_existential_takes_de(m):
    milk = Existence(m.thing("milk", ""), m.at("on", m.thing("table")), negated=True)
    assert text(m, milk) == "Il n'y a pas de lait sur la table."


def test_where_inverts_a_pronoun_and_not_a_noun(m):
    assert text(m, m.being(m.who("they"), question="where")) == "Où sont-ils\u202f?"
    assert text(m, m.being(m.thing("dog"), question="where")) == "Où est le chien\u202f?"


def test_a_sequel_agrees_with_the_first_object(m):
    letters = m.act("write", m.who("she"), m.thing("letter", "two", True), "past")
    said = text(m, m.sequel(letters, "read"))
    assert said == "Elle a écrit deux lettres et les a lues."


def test_the_words_begin_with_a_capital_and_end_with_a_stop(m):
    words = sentence(m.being(m.who("she"), "sad"))
    assert (words[0].text, words[-1].text, words[-1].marks) == ("Elle", ".", ("stop",))
