import pytest

from regard.data.phrasebook import load_phrasebook
from regard.gallery.example_sentence import example_pair, trace_pair


def test_example_pair_has_both_languages_and_links():
    phrase = example_pair()
    assert phrase.source == "The cat sits on the mat."
    assert phrase.target == "Le chat est assis sur le tapis."
    pairs = {(phrase.source_words[s], phrase.target_words[t]) for s, t in phrase.links}
    assert {("cat", "chat"), ("sits", "est"), ("sits", "assis"), ("mat", "tapis")} <= pairs


def test_example_pair_is_not_in_the_phrasebook():
    book = load_phrasebook("fr")
    for phrases in book:
        assert example_pair().source not in {phrase.source for phrase in phrases}


@pytest.mark.usefixtures("unchecked")
def test_trace_pair_has_one_token_per_word(translators):
    trace = trace_pair(translators["transformer"], example_pair())
    assert [word.strip() for word in trace.tokens["source"].pieces] == list(
        example_pair().source_words
    )
    target = [word.strip() for word in trace.tokens["target"].pieces]
    assert target == [*example_pair().target_words, "<end>"]
    for attention_map in trace.maps:
        assert attention_map.weights.sum(-1) == pytest.approx(1.0, abs=1e-5)
