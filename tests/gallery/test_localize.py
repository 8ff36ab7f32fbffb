import re

import pytest

from regard.gallery import FIGURES, bahdanau, complexity, figure_page, words_and_image
from regard.gallery.figure_page import Animation, text_artists
from regard.gallery.localize import localize, localize_pictures
from regard.gallery.spelling import train_speller
from regard.viz import fonts, new_figure

WORDS = {
    "layer {}: {}": "第 {} 层：{}",
    "layer {}": "第 {} 层",
    "flat": "平坦",
    "{} of {}": "{1}/{0}",
}
# Latin words of Chinese pictures: names and code
LATIN = {
    "kernel_regression": {"Nadaraya", "Watson", "Epanechnikov"},
    "scores": {"softmax"},
    "masked_softmax": {
        *("softmax", "regard", "lengths", "padding", "causal", "window", "ahead", "pad", "NaN")
    },
    "five_tokens": {"softmax", "exp", "XXᵀ"},
    "bahdanau": {"BLEU"},
    "complexity": {"CPU"},
    "positions": {"sin", "cos", "ALiBi"},
    "three_attentions": {"start", "end", "padding"},
    "residual_and_norm": {"layer", "norm"},
}
SENTENCES = {"cross_attention", "self_attention", "bahdanau", "three_attentions", "while_learning"}
# translations whose use depends on the trained model
MODEL_DEPENDENT = {
    "self_attention": {"previous", "itself", "following", "sink", "sharp", "flat", "mixed"},
    "cross_attention": {"input", "output"},
}

pytestmark = [
    pytest.mark.usefixtures("unchecked"),
    # labels do not depend on the fonts installed here
    pytest.mark.filterwarnings("ignore:Glyph .* missing from:UserWarning"),
]


@pytest.fixture
def every_glyph(monkeypatch):
    """Report fonts for all characters, so that labels are translated."""
    monkeypatch.setattr("regard.gallery.localize.missing_glyphs", lambda texts: "")


@pytest.fixture
def draw(translators, small_transformer, every_glyph, monkeypatch):
    """Return the function that draws a figure, with models trained for a second."""
    both = translators["bahdanau"], translators["no_attention"]
    monkeypatch.setattr(bahdanau, "load_with_and_without_attention", lambda: both)
    monkeypatch.setattr(bahdanau, "EVALUATED", 6)
    monkeypatch.setattr(complexity, "LENGTHS", (4, 8))
    monkeypatch.setattr(words_and_image, "train_speller", lambda data: train_speller(data, steps=2))
    return figure_page.draw_figure


def figures_of(pictures):
    return [figure for one in pictures.values() for figure in getattr(one, "frames", [one])]


def texts_of(pictures):
    for figure in figures_of(pictures):
        figure.draw_without_rendering()  # ticks are written when they are drawn
    return [label.get_text() for figure in figures_of(pictures) for label in text_artists(figure)]


def words_of(texts):
    plain = re.sub(r"\$[^$]*\$", "", " ".join(texts))  # without formulas
    return set(re.findall(r"[^\W\d_]{2,}", re.sub("[\u4e00-\u9fff]", " ", plain)))


@pytest.mark.parametrize("name", FIGURES)
def test_chinese_pictures_have_no_english_labels_and_no_unused_translations(name, draw):
    page, pictures = figure_page.load_page(name), draw(name)
    words = page.texts["zh"].translations
    before = texts_of(pictures)
    localize_pictures(pictures, words)
    after = texts_of(pictures)
    assert [localize(text, words) for text in before] == after
    assert not {text for text in after if localize(text, words) != text}
    sentences = words_of(sentences_of(pictures)) if name in SENTENCES else set()
    assert words_of(after) - sentences <= LATIN.get(name, set())
    texts = [*before, *re.findall("<mtext>([^<]+)", page.formula)]
    assert unused_translations(words, texts) <= MODEL_DEPENDENT.get(name, set())


def sentences_of(pictures):
    """Yield the sentences that a figure shows, which are not translated."""
    for figure in figures_of(pictures):
        yield figure.get_suptitle()
        for axes in figure.axes:
            if axes.images:
                yield from (label.get_text() for label in axes.get_yticklabels())
                yield from (label.get_text() for label in axes.get_xticklabels())
            if not axes.axison:
                yield from (
                    text.get_text() for text in axes.texts[1::2]
                )  # alternately a model's name and its output


def unused_translations(words, texts):
    """Return the phrases whose translations change none of the texts."""

    def is_needed(phrase):
        others = {p: translation for p, translation in words.items() if p != phrase}
        return any(localize(text, words) != localize(text, others) for text in texts)

    return {phrase for phrase in words if not is_needed(phrase)}


def test_translations_are_consistent_between_figures():
    translations = {}
    for name in FIGURES:
        for phrase, words in figure_page.load_page(name).texts["zh"].translations.items():
            translations.setdefault(phrase, set()).add(words)
    differing = {phrase for phrase, variants in translations.items() if len(variants) > 1}
    assert differing <= {"gaussian"}  # a kernel here, a score there


def test_localize_translates_variable_parts_and_keeps_unknown_text():
    assert localize("layer 3: flat", WORDS) == "第 3 层：平坦"
    assert localize("layer 3", WORDS) == "第 3 层"
    assert localize("2 of 5", WORDS) == "5/2"
    assert localize("layers", WORDS) == "layers"
    assert localize("a layer 3", WORDS) == "a layer 3"


def test_localized_ticks_survive_drawing():
    figure = new_figure(2.0, 2.0)
    axes = figure.subplots()
    axes.barh(["flat", "猫"], [1, 2])
    axes.set_xticks([0, 1, 2], ["layer 0", "layer 1", "dog"])
    localize_pictures({"one": figure}, WORDS)
    figure.draw_without_rendering()
    assert [label.get_text() for label in axes.get_xticklabels()] == ["第 0 层", "第 1 层", "dog"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["平坦", "猫"]
    assert list(axes.get_yticks()) == [0, 1]


def film():
    frame = new_figure(1.0, 1.0)
    frame.text(0.5, 0.5, "flat")
    return Animation([frame], [100])


def test_animation_is_localized_with_fonts(every_glyph):
    moving = film()
    localize_pictures({"one": moving}, WORDS)
    assert moving.frames[0].texts[0].get_text() == "平坦"


def test_animation_stays_english_without_fonts(monkeypatch):
    monkeypatch.setattr(fonts, "font_families", lambda: ["DejaVu Sans"])
    moving = film()
    localize_pictures({"one": moving}, WORDS)
    assert moving.frames[0].texts[0].get_text() == "flat"
