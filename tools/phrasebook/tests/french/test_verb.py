import pytest

from grammar.french.elision import elide_and_contract
from grammar.french.verb import agree, inverted_pronoun, predicate
from grammar.lexicon.nouns import NOUN
from grammar.words import join_words


def text(meaning):
    return join_words([word.text for word in elide_and_contract(predicate(meaning, ""))], "fr")


@pytest.mark.parametrize(
    ("tense", "said"),
    [
        ({"tense": "simple"}, "ne les voit pas"),
        ({"tense": "past"}, "ne les a pas vus"),
        ({"tense": "future"}, "ne les verra pas"),
        ({"tense": "modal", "modal": "can"}, "ne peut pas les voir"),
        ({"tense": "going"}, "ne va pas les voir"),
    ],
)
def test_ne_pas_and_clitics_find_their_place(m, tense, said):
    assert text(m.act("see", m.name("Paul"), m.who("they"), negated=True, **tense)) == said


def test_a_participle_agrees_with_an_object_before_it_and_no_other(m):
    apples = m.thing("apple", plural=True)
    eaten = m.who("they", NOUN["apple"])
    assert text(m.act("eat", m.who("I"), eaten, "past")) == "les ai mangées"
    assert text(m.act("eat", m.who("I"), apples, "past")) == "ai mangé"
    assert text(m.act("eat", m.who("I"), apples, "past", gap="object")) == "ai mangé" + "es"


def test_a_participle_with_be_agrees_with_the_subject(m):
    assert text(m.act("go", m.name("Anna"), None, "past")) == "est allée"
    assert text(m.act("go", m.who("we"), None, "past")) == "sommes allés"
    assert text(m.act("sit", m.thing("girl", plural=True), None, "past")) == "étaient assises"


def test_participles_in_s_stay_so_in_the_masculine_plural(m):
    assert agree("assis", m.who("they")) == "assis"
    assert agree("pris", m.thing("key", plural=True)) == "prises"


def test_recipient_precedes_the_verb(m):
    meaning = m.act("give", m.name("Paul"), m.thing("key", "a"), "past", recipient=m.who("she"))
    assert text(meaning) == "lui a donné"


def test_a_t_keeps_two_vowels_apart(m):
    assert inverted_pronoun(m.who("she"), "habite", "").text == "-t-elle"
    assert inverted_pronoun(m.who("he"), "dort", "").text == "-il"
    assert inverted_pronoun(m.who("you"), "vas", "").text == "-tu"
    assert inverted_pronoun(m.who("they"), "mangent", "").text == "-ils"
