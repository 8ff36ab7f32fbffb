import numpy as np
import pytest

from regard.data.phrasebook import AlignedPair, load_phrasebook
from regard.decoding import translate
from regard.evaluation import bleu, exact_match
from regard.gallery import bahdanau
from regard.gallery.bahdanau import crossings, most_reordered, plot_comparison
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
    (attention_map,) = trace_pair(translators["bahdanau"], phrase).layers("cross")
    assert weights == pytest.approx(attention_map.weights[0, : len(words)])  # all but the end
    corners = [patch.get_xy() for patch in axes.patches]
    assert {(round(x + 0.42), round(y + 0.42)) for x, y in corners} == set(phrase.links)


def test_example_is_correctly_translated_and_reordered(phrases):
    book = sorted(load_phrasebook("fr", train=0).test[:50], key=lambda one: len(one.source_words))
    texts = [phrase.target if n % 2 else "" for n, phrase in enumerate(book)]
    shown = most_reordered(book, texts)
    links = book[shown].links
    assert shown % 2 == 1 and [t for _, t in links] != sorted(t for _, t in links)
    assert 0 <= most_reordered(phrases, [""] * 6) < 6  # none is right: any of all


def test_crossings_counts_crossing_one_to_one_links():
    swapped = AlignedPair("", "", (), (), ((0, 0), (1, 2), (2, 1), (3, 3)))
    assert crossings(swapped) == 1
    # word 0 of the source has two counterparts, which does not determine an order
    assert crossings(swapped._replace(links=((0, 0), (0, 3), (1, 2), (2, 1)))) == 1
    assert crossings(swapped._replace(links=((0, 2), (1, 1), (2, 0)))) == 3


def test_bars_show_metrics_overall_and_by_length(phrases, monkeypatch):
    references = [phrase.target for phrase in phrases]
    texts = {
        "with attention": [*references[:4], "Le chat."],
        "without": [*references[:1], *references[:4]],
    }
    monkeypatch.setattr(bahdanau, "LENGTH_GROUPS", 2)
    axes = {one.get_title(): one for one in plot_comparison({}, phrases[:5], texts).axes}
    for number, outputs in enumerate(texts.values()):
        parts = [
            (outputs, references[:5]),
            (outputs[:3], references[:3]),
            (outputs[3:], references[3:5]),
        ]
        metrics = {"BLEU": bleu, "exact match, %": lambda *x: 100 * exact_match(*x)}
        for title, metric in metrics.items():
            heights = [bar.get_height() for bar in axes[title].containers[number]]
            assert heights == pytest.approx([metric(*part) for part in parts])
            assert len(set(heights)) > 1


def test_shown_translations_are_the_models_own(pictures, phrases, translators):
    (panel,) = (one for one in pictures["with-and-without"].axes if not one.get_title())
    texts = [text.get_text() for text in panel.texts][1::2]
    shown = next(phrase for phrase in phrases if phrase.source == texts[0])
    assert texts[1] == shown.target
    for name, text in zip(("bahdanau", "no_attention"), texts[2:], strict=True):
        run = translators[name]
        ((best, *_),) = translate(run.model, run.tokenizers, [shown.source], run.settings.search)
        assert text == best.text
