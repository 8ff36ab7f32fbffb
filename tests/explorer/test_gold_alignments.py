from regard.explorer import gold_alignments


def test_a_phrase_of_any_part_has_the_links_of_the_book(book):
    for language, parts in book.items():
        for phrase in (parts.train[0], parts.valid[1], parts.test[2]):
            assert (
                gold_alignments.words(language, phrase.source, phrase.target) == phrase.word_spans()
            )


def test_another_pair_another_language_or_no_phrasebook_has_none(book):
    one, two = book["fr"].test[:2]
    assert gold_alignments.words("fr", one.source, two.target) is None
    assert gold_alignments.words("zh", one.source, one.target) is None
    assert gold_alignments.words(None, one.source, one.target) is None


def test_a_trace_of_a_phrase_carries_its_links(book, client):
    phrase = book["fr"].test[0]
    form = {"run": "small", "source": phrase.source, "target": phrase.target}
    told = client.post("/api/traces", json=form).json()
    assert told["gold"] == sorted(map(list, phrase.links))
    assert max(word for word in told["tokens"]["source"]["words"] if word is not None) == (
        len(phrase.source_words) - 1
    )
    other = client.post("/api/traces", json=form | {"target": "Bonjour."}).json()
    assert "gold" not in other


def test_who_asks_later_finds_the_phrasebook_written_out(book, monkeypatch):
    gold_alignments._phrases.cache_clear()
    gold_alignments.prepare(["fr", None, "fr"]).join()
    monkeypatch.setattr(gold_alignments, "load_phrasebook", None)  # nobody may ask for it again
    phrase = book["fr"].test[0]
    assert gold_alignments.words("fr", phrase.source, phrase.target) == phrase.word_spans()
