import pytest

from regard.explorer import traces
from regard.explorer.traces import find_gold_alignment


def test_every_split_of_the_phrasebook_has_gold_alignments(phrasebooks):
    for language, book in phrasebooks.items():
        for phrase in (book.train[0], book.valid[1], book.test[2]):
            gold = find_gold_alignment(language, phrase.source, phrase.target)
            assert gold == phrase.word_spans()


def test_other_pairs_and_languages_have_no_gold_alignment(phrasebooks):
    first, second = phrasebooks["fr"].test[:2]
    assert find_gold_alignment("fr", first.source, second.target) is None
    assert find_gold_alignment("zh", first.source, first.target) is None
    assert find_gold_alignment(None, first.source, first.target) is None


@pytest.mark.parametrize("pattern", ["{}", " {} ", "{}\n"])
def test_trace_of_a_phrasebook_pair_contains_its_links(phrasebooks, client, pattern):
    phrase = phrasebooks["fr"].test[0]
    source, target = pattern.format(phrase.source), pattern.format(phrase.target)
    body = {"run": "tiny", "source": source, "target": target}
    trace = client.post("/api/traces", json=body).json()
    assert trace["gold"] == sorted(map(list, phrase.links))
    words = [word for word in trace["tokens"]["source"]["words"] if word is not None]
    assert max(words) == len(phrase.source_words) - 1


def test_trace_of_another_pair_has_no_links(phrasebooks, client):
    body = {"run": "tiny", "source": phrasebooks["fr"].test[0].source, "target": "Bonjour."}
    assert "gold" not in client.post("/api/traces", json=body).json()


def test_preloaded_phrasebook_is_not_loaded_again(phrasebooks, monkeypatch):
    traces._pairs_by_text.cache_clear()
    traces.preload_phrasebooks(["fr", None, "fr"]).join()
    monkeypatch.setattr(traces, "load_phrasebook", None)  # calling it would fail
    phrase = phrasebooks["fr"].test[0]
    assert find_gold_alignment("fr", phrase.source, phrase.target) == phrase.word_spans()
