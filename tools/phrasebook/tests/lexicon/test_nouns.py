import pytest

from grammar.lexicon.nouns import FEMININE, NAMES, NOUN, NOUNS, PORTIONS, nouns_of


def test_a_noun_knows_its_forms():
    horse = NOUN["horse"]
    assert (horse.plural, horse.french, horse.french_plural) == ("horses", "cheval", "chevaux")
    assert (horse.chinese, horse.measure, horse.feminine) == ("马", "匹", False)
    assert horse.countable and not NOUN["water"].countable


@pytest.mark.parametrize("noun", NOUNS + PORTIONS, ids=lambda noun: noun.singular)
def test_every_counted_noun_has_a_measure_word_and_a_french_plural(noun):
    assert noun.chinese
    if noun.countable:
        assert noun.measure
        assert noun.french_plural[-1] in "sx"


def test_french_plurals_follow_the_rules():
    for noun in NOUNS:
        if not noun.countable or "-" in noun.french:
            continue
        if noun.french.endswith("al"):
            assert noun.french_plural == noun.french[:-1] + "ux"
        elif noun.french.endswith("eau"):
            assert noun.french_plural == noun.french + "x"
        elif noun.french.endswith("s"):
            assert noun.french_plural == noun.french
        else:
            assert noun.french_plural == noun.french + "s"


def test_people_are_he_or_she_and_things_it():
    assert [NOUN[word].pronoun for word in ("mother", "father", "table")] == ["she", "he", "it"]
    assert {name.pronoun for name in NAMES} == {"he", "she"}


def test_nouns_are_found_by_kind_and_by_name():
    assert nouns_of("pet") == (NOUN["cat"], NOUN["dog"], NOUN["rabbit"])
    assert nouns_of("table soup") == (NOUN["table"], NOUN["soup"])


def test_every_profession_has_a_feminine():
    assert {noun.singular for noun in nouns_of("worker")} == set(FEMININE)
