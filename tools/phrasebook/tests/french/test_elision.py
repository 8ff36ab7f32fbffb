import re

import pytest

from grammar.french.elision import elide_and_contract, opens_with_vowel
from grammar.words import Word, join_words

VOWEL = "[aeiouéèêâîôûœàh]"
WRONG = re.compile(
    rf"\b(le|la|de|ne|je|me|te|que|se) {VOWEL}|\bsi ils?\b|\b(de|à) les? "
    rf"|\b(ce|ma|ta|sa|beau|nouveau|du|au|(un|le|ce|mon|son) vieux) {VOWEL}|'(?!{VOWEL}|y )",
    re.I,
)


def text(words):
    return join_words(
        [word.text for word in elide_and_contract([Word(word) for word in words.split()])], "fr"
    )


@pytest.mark.parametrize(
    ("apart", "together"),
    [
        ("le homme", "l'homme"),
        ("la école", "l'école"),
        ("de le pain", "du pain"),
        ("de le arbre", "de l'arbre"),
        ("à le hôpital", "à l'hôpital"),
        ("à les enfants", "aux enfants"),
        ("de les œufs", "des œufs"),
        ("je ne ai pas de eau", "je n'ai pas d'eau"),
        ("si il dort", "s'il dort"),
        ("si elle dort", "si elle dort"),
        ("parce que Anna vient", "parce qu'Anna vient"),
        ("il te aime", "il t'aime"),
        ("de la soupe", "de la soupe"),
    ],
)
def test_words_elide_and_contract_where_they_meet(apart, together):
    assert text(apart) == together


def test_a_contraction_keeps_the_marks_of_both():
    words = elide_and_contract([Word("de", ("of", "x")), Word("le", ("x", "the")), Word("pain")])
    assert words[0] == Word("du", ("of", "x", "the"))


def test_an_h_is_silent():
    assert opens_with_vowel("homme") and opens_with_vowel("Anna") and not opens_with_vowel("chat")


def test_every_generated_sentence_is_elided_and_contracted(generated):
    for phrase in generated("fr"):
        found = WRONG.search(phrase.target)
        assert not found, (found, phrase.target)
