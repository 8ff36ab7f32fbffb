import pytest

from regard.data.phrasebook import load_phrasebook
from regard.gallery.example_sentence import looks, the_cat


def test_the_cat_sits_on_the_mat_in_both_languages():
    phrase = the_cat()
    assert phrase.source == "The cat sits on the mat."
    assert phrase.target == "Le chat est assis sur le tapis."
    pairs = {(phrase.source_words[s], phrase.target_words[t]) for s, t in phrase.links}
    assert {("cat", "chat"), ("sits", "est"), ("sits", "assis"), ("mat", "tapis")} <= pairs


def test_no_translator_of_the_lesson_ever_saw_it():
    book = load_phrasebook("fr")
    for phrases in book:
        assert the_cat().source not in {phrase.source for phrase in phrases}


@pytest.mark.usefixtures("unchecked")
def test_looks_are_told_by_the_words_of_the_phrase(translators):
    trace = looks(translators["transformer"], the_cat())
    assert [word.strip() for word in trace.tokens["source"].pieces] == list(the_cat().source_words)
    target = [word.strip() for word in trace.tokens["target"].pieces]
    assert target == ["<start>", *the_cat().target_words]
    for look in trace.maps:
        assert look.weights.sum(-1) == pytest.approx(1.0, abs=1e-5)
