import numpy as np
import pytest

from regard.data.phrasebook import AlignedPair, load_phrasebook
from regard.decoding import translate
from regard.evaluation import bleu, exact_match
from regard.gallery import bahdanau
from regard.gallery.bahdanau import _comparison, _most_reordered, crossings
from regard.gallery.example_sentence import trace_pair

pytestmark = pytest.mark.usefixtures("unchecked")


@pytest.fixture
def pictures(translators, monkeypatch):
    both = translators["bahdanau"], translators["no_attention"]
    monkeypatch.setattr(bahdanau, "load_with_and_without_attention", lambda: both)
    monkeypatch.setattr(bahdanau, "EVALUATED", 6)
    monkeypatch.setattr(bahdanau, "LENGTH_GROUPS", 2)
    return bahdanau.draw()


@pytest.fixture
def phrases():
    return sorted(load_phrasebook("fr", train=0).test[:6], key=lambda one: len(one.source_words))


def test_alignment_map_holds_weights_of_the_recurrent_model(pictures, phrases, translators):
    axes = pictures["alignment"].axes[0]
    weights = np.asarray(axes.images[0].get_array())
    assert weights.sum(-1) == pytest.approx(1.0, abs=1e-5)
    words = tuple(label.get_text() for label in axes.get_yticklabels())
    phrase = next(one for one in phrases if one.target_words == words)
    (look,) = trace_pair(translators["bahdanau"], phrase).layers("cross")
    assert weights == pytest.approx(look.weights[0, : len(words)])  # all but the end
    corners = [patch.get_xy() for patch in axes.patches]
    assert {(round(x + 0.42), round(y + 0.42)) for x, y in corners} == set(phrase.links)


def test_example_is_correctly_translated_and_reordered(phrases):
    book = sorted(load_phrasebook("fr", train=0).test[:50], key=lambda one: len(one.source_words))
    texts = [phrase.target if n % 2 else "" for n, phrase in enumerate(book)]
    shown = _most_reordered(book, texts)
    links = book[shown].links
    assert shown % 2 == 1 and [t for _, t in links] != sorted(t for _, t in links)
    assert 0 <= _most_reordered(phrases, [""] * 6) < 6  # none is right: any of all


def test_crossings_counts_crossing_one_to_one_links():
    swapped = AlignedPair("", "", (), (), ((0, 0), (1, 2), (2, 1), (3, 3)))
    assert crossings(swapped) == 1
    # word 0 of the source has two counterparts, which says nothing of places
    assert crossings(swapped._replace(links=((0, 0), (0, 3), (1, 2), (2, 1)))) == 1
    assert crossings(swapped._replace(links=((0, 2), (1, 1), (2, 0)))) == 3


def test_bars_show_metrics_overall_and_by_length(phrases, monkeypatch):
    wanted = [phrase.target for phrase in phrases]
    texts = {"with attention": [*wanted[:4], "Le chat."], "without": [*wanted[:1], *wanted[:4]]}
    monkeypatch.setattr(bahdanau, "LENGTH_GROUPS", 2)
    drawn = {one.get_title(): one for one in _comparison({}, phrases[:5], texts).axes}
    for number, said in enumerate(texts.values()):
        parts = [(said, wanted[:5]), (said[:3], wanted[:3]), (said[3:], wanted[3:5])]
        judges = {"BLEU": bleu, "exact match, %": lambda *x: 100 * exact_match(*x)}
        for title, judge in judges.items():
            heights = [bar.get_height() for bar in drawn[title].containers[number]]
            assert heights == pytest.approx([judge(*part) for part in parts])
            assert len(set(heights)) > 1


def test_shown_translations_are_the_models_own(pictures, phrases, translators):
    (panel,) = (one for one in pictures["with-and-without"].axes if not one.get_title())
    said = [text.get_text() for text in panel.texts][1::2]
    shown = next(phrase for phrase in phrases if phrase.source == said[0])
    assert said[1] == shown.target
    for name, text in zip(("bahdanau", "no_attention"), said[2:], strict=True):
        run = translators[name]
        ((best, *_),) = translate(run.model, run.tokenizers, [shown.source], run.settings.search)
        assert text == best.text
