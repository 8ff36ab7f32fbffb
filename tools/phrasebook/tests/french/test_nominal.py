import re

import pytest

from grammar.french.clause import clause
from grammar.french.elision import elide_and_contract, opens_with_vowel
from grammar.french.nominal import after_preposition, nominal, subject_pronoun
from grammar.lexicon.adjectives import ADJECTIVES
from grammar.lexicon.nouns import NOUN, NOUNS
from grammar.words import join_words


def text(words):
    return join_words([word.text for word in elide_and_contract(words)], "fr")


@pytest.mark.parametrize(
    ("noun", "determiner", "plural", "adjectives", "said"),
    [
        ("man", "a", False, "old", "un vieil homme"),
        ("man", "the", True, "old", "les vieux hommes"),
        ("tree", "this", False, "", "cet arbre"),
        ("tree", "this", False, "big", "ce grand arbre"),
        ("tree", "that", False, "beautiful", "ce bel arbre"),
        ("computer", "my", False, "new", "mon nouvel ordinateur"),
        ("school", "my", False, "", "mon école"),
        ("school", "our", False, "beautiful", "notre belle école"),
        ("mouse", "their", True, "grey", "leurs souris grises"),
        ("car", "a", False, "beautiful white", "une belle voiture blanche"),
        ("apple", "some", True, "", "des pommes"),
        ("apple", "some", True, "big", "de grandes pommes"),
        ("orange", "many", True, "", "beaucoup d'oranges"),
        ("girl", "all the", True, "", "toutes les filles"),
        ("girl", "which", True, "", "quelles filles"),
        ("water", "some", False, "cold", "de l'eau froide"),
        ("milk", "", False, "", "du lait"),
    ],
)
def test_a_noun_agrees_with_all_around_it(m, noun, determiner, plural, adjectives, said):
    assert text(nominal(m.thing(noun, determiner, plural, adjectives), "", clause)) == said


def test_a_negation_leaves_only_de(m):
    assert text(nominal(m.thing("egg", "any", True), "", clause, denied=True)) == "d'œufs"
    assert text(nominal(m.thing("egg", "the", True), "", clause, denied=True)) == "les œufs"


def test_generic_object_takes_the_article_of_the_verb(m):
    tea = m.thing("tea", "")
    assert text(nominal(tea, "", clause, article="le")) == "le thé"
    assert text(nominal(m.thing("French", ""), "", clause, article="-")) == "français"


def test_an_owner_comes_last(m):
    assert text(nominal(m.thing("cat", owner="Anna"), "", clause)) == "le chat d'Anna"


def test_several_women_are_elles_and_a_mixed_lot_ils(m):
    assert subject_pronoun(m.who("they", NOUN["actress"])) == "elles"
    assert subject_pronoun(m.who("they")) == "ils"
    said = [
        text(after_preposition(m.who(word), "", clause))
        for word in ("I", "you", "he", "she", "we", "they")
    ]
    assert said == ["moi", "toi", "lui", "elle", "nous", "eux"]


def test_articles_agree_with_their_nouns_in_every_phrase(generated):
    feminine = {noun.french for noun in NOUNS if noun.feminine and noun.countable}
    masculine = {noun.french for noun in NOUNS if not noun.feminine and noun.countable}
    plural = {noun.french_plural for noun in NOUNS if noun.countable} - feminine - masculine
    closed = {word for word in feminine if not opens_with_vowel(word)}  # mon école
    single = (feminine | masculine) - {noun.french_plural for noun in NOUNS}
    wrong = re.compile(
        rf"\b(un|le|ce|mon|ton|son) {_any(closed)}"
        rf"|\b(une|la|cette|ma|ta|sa) {_any(masculine)}"
        rf"|\b(un|une|le|la|cette|ma|mon|notre|chaque) {_any(plural)}"
        rf"|\b(les|ces|mes|nos|deux|trois|beaucoup de) {_any(single)}",
        re.I,
    )
    for phrase in generated("fr"):
        assert not wrong.search(phrase.target), phrase.target


def _any(words):
    return rf"({'|'.join(sorted(words))})(?![\w-])"


def test_adjectives_agree_with_the_nouns_they_follow(generated):
    after = [word for word in ADJECTIVES if not word.before]
    forms = {
        form: {case for case in range(4) if word.french[case] == form}
        for word in after
        for form in word.french[:4]
    }
    cases = {}
    for noun in NOUNS:
        if noun.countable:
            cases.setdefault(noun.french, set()).add(int(noun.feminine))
            cases.setdefault(noun.french_plural, set()).add(2 + noun.feminine)
    seen = 0
    for phrase in generated("fr"):
        for noun, adjective in zip(phrase.target_words, phrase.target_words[1:], strict=False):
            if noun in cases and adjective in forms and noun != "orange":
                seen += 1
                assert cases[noun] & forms[adjective], phrase.target
    assert seen > 1000
