import pytest

from grammar.lexicon.verbs import VERB, VERBS, verb_bases


@pytest.mark.parametrize(
    ("verb", "forms"),
    [
        ("eat", "mange manges mange mangeons mangent"),
        ("close", "ferme fermes ferme fermons ferment"),
        ("buy", "achète achètes achète achetons achètent"),
        ("send", "envoie envoies envoie envoyons envoient"),
        ("go", "vais vas va allons vont"),
        ("drink", "bois bois boit buvons boivent"),
        ("take", "prends prends prend prenons prennent"),
    ],
)
def test_french_is_conjugated(verb, forms):
    assert " ".join(VERB[verb].present) == forms


@pytest.mark.parametrize(
    ("verb", "future"),
    [("see", "verr"), ("go", "ir"), ("send", "enverr"), ("eat", "manger"), ("know", "connaîtr")],
)
def test_the_future_has_a_stem_of_its_own(verb, future):
    assert VERB[verb].future == future
    assert all(verb.future.endswith("r") for verb in VERBS)


def test_verbs_of_coming_and_going_have_their_past_with_be():
    assert {verb.base for verb in VERBS if verb.with_be} == {"go", "come", "leave", "stay", "fall"}


def test_verbs_are_distinguished_by_their_particle():
    assert VERB["look at"].infinitive == "regarder"
    assert VERB["look for"].infinitive == "chercher"
    assert VERB["play +"].preposition == "de" and VERB["play"].preposition == ""
    assert VERB["like"].article == "le" and VERB["speak"].article == "-"


def test_the_third_person_ends_in_s_but_for_modals():
    assert {verb.base for verb in VERBS if verb.third[-1] != "s"} == {"can", "must"}


def test_unknown_verb_is_refused():
    assert verb_bases("eat drink") == {"eat", "drink"}
    with pytest.raises(AssertionError, match="devour"):
        verb_bases("devour")
