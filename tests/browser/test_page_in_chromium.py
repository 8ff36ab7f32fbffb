"""The translator in Chromium without network: typing, words, keyboard, languages, themes."""

import jaxtyping
import pytest

import regard
from regard.browser import describe_translator, render_translator
from regard.runs import export_html

expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect

pytestmark = pytest.mark.browser

TEXT = "The old cat sees the dog."


@pytest.fixture(scope="module")
def run():
    return regard.load("demo-model", engine="torch")


@pytest.fixture(scope="module")
def page_file(run, tmp_path_factory):
    file = tmp_path_factory.mktemp("page") / "translator.html"
    jaxtyping.config.update("jaxtyping_disable", True)
    try:
        export_html(run, file)
    finally:
        jaxtyping.config.update("jaxtyping_disable", False)
    return file


@pytest.fixture
def open_translator(chromium, page_file):
    """Open the page in a window without network; it records `requests` and `errors`."""
    contexts = []

    def open_file(file=page_file, init_script="", **options):
        options = {"locale": "en-US", "viewport": {"width": 1366, "height": 768}} | options
        contexts.append(chromium.new_context(offline=True, **options))
        window = contexts[-1].new_page()
        window.requests, window.errors = [], []
        window.on("request", lambda request: window.requests.append(request.url))
        window.on("pageerror", lambda error: window.errors.append(str(error)))
        if init_script:
            window.add_init_script(init_script)
        window.goto(file.as_uri())
        return window

    yield open_file
    for context in contexts:
        context.close()


def translation(window):
    return window.locator(".translation-text")


def target_word(window, index):
    return translation(window).locator(".reading-word").nth(index)


def type_text(window, text=TEXT):
    window.get_by_label("Text", exact=True).fill(text)


def test_typed_sentence_has_the_translation_of_torch(open_translator, run):
    window = open_translator()
    for text in (TEXT, "We often give oranges to Anna.", "Is she reading a long letter?"):
        type_text(window, text)
        expect(translation(window)).to_have_text(str(run.translate(text)))
    assert window.errors == []
    assert {url.split(":")[0] for url in window.requests} == {"file", "blob"}


def test_words_that_the_model_was_not_trained_with_are_named(open_translator):
    window = open_translator()
    note = window.get_by_text("Not among the words")
    type_text(window, "The old keyboard sees the <b>dog</b>.")
    expect(note).to_have_text("Not among the words that the model was trained with: keyboard, b")
    type_text(window)
    expect(note).to_have_count(0)


def test_page_cannot_connect(open_translator):
    window = open_translator()
    blocked = window.evaluate(
        """() => new Promise((resolve) => {
            document.addEventListener("securitypolicyviolation", (event) =>
                resolve(event.effectiveDirective));
            fetch("https://example.org/").catch(() => {});
        })"""
    )
    assert blocked == "connect-src"


def test_page_translates_where_workers_are_forbidden(open_translator, run):
    window = open_translator(init_script="delete window.Worker;")
    type_text(window)
    expect(translation(window)).to_have_text(str(run.translate(TEXT)))


def test_pointing_at_a_word_shows_what_it_attends_to(open_translator, run):
    window = open_translator()
    type_text(window)
    expect(translation(window)).to_have_text(str(run.translate(TEXT)))
    description = window.locator(".alignment-description")
    target_word(window, 2).hover()
    expect(description).to_contain_text("the model attends to")
    weights = window.locator(".source-text .reading-word").evaluate_all(
        "(words) => words.map((word) => parseInt(word.style.getPropertyValue('--weight')))"
    )
    assert len(weights) == 7 and max(weights) == weights[2] > 50  # "chat" attends to "cat"
    window.mouse.move(0, 0)
    expect(description).to_contain_text("Point at a word")


def test_words_are_reached_and_pinned_with_the_keyboard(open_translator, run):
    window = open_translator()
    type_text(window)
    expect(translation(window)).to_have_text(str(run.translate(TEXT)))
    target_word(window, 0).focus()
    window.keyboard.press("ArrowRight")
    expect(target_word(window, 1)).to_be_focused()
    window.keyboard.press("Enter")
    expect(target_word(window, 1)).to_have_attribute("aria-pressed", "true")
    description = window.locator(".alignment-description")
    pinned = description.inner_text()
    window.get_by_label("Text", exact=True).focus()
    expect(description).to_have_text(pinned)
    target_word(window, 1).focus()
    window.keyboard.press("Escape")
    expect(target_word(window, 1)).to_have_attribute("aria-pressed", "false")
    assert translation(window).locator("[tabindex='0']").count() == 1


def test_tapped_word_stays_selected_on_a_phone(open_translator, run):
    window = open_translator(viewport={"width": 390, "height": 844}, has_touch=True)
    type_text(window)
    expect(translation(window)).to_have_text(str(run.translate(TEXT)))
    target_word(window, 1).tap()
    expect(target_word(window, 1)).to_have_attribute("aria-pressed", "true")
    expect(window.locator(".alignment-description")).to_contain_text("the model attends to")
    assert window.evaluate("document.documentElement.scrollWidth") == 390


def test_viewer_has_every_layer_and_head_of_the_sentence(open_translator, run):
    window = open_translator()
    type_text(window)
    expected = str(run.translate(TEXT))
    expect(window.locator(".attention-view h2")).to_have_text(f"{TEXT} → {expected}")
    expect(window.get_by_role("tab")).to_have_text(["Encoder", "Decoder", "Cross-attention"])
    expect(window.locator(".attention-view .caption")).to_contain_text("Cross-attention")
    window.get_by_role("tab", name="Encoder").click()
    type_text(window, "She gave the book to her brother.")  # shown at the same place
    expect(window.locator(".attention-view h2")).to_contain_text("She gave")
    expect(window.locator(".attention-view .caption")).to_contain_text("Encoder")


def test_language_and_theme_are_switched_and_the_text_is_kept(open_translator, run):
    window = open_translator()
    type_text(window)
    expect(translation(window)).to_have_text(str(run.translate(TEXT)))
    window.get_by_role("button", name="中文").click()
    expect(window.get_by_role("button", name="English")).to_be_focused()
    expect(window.locator("html")).to_have_attribute("lang", "zh-Hans")
    expect(window.get_by_label("原文", exact=True)).to_have_value(TEXT)
    expect(translation(window)).to_have_text(str(run.translate(TEXT)))
    expect(window.get_by_role("tab").first).to_have_text("编码器")
    window.get_by_role("button", name="主题").click()
    expect(window.locator("html")).to_have_attribute("data-theme", "dark")


def test_markup_is_shown_as_text_and_an_empty_text_shows_nothing(open_translator):
    window = open_translator()
    hostile = '<img src=x onerror="window.hacked=1"><b>'
    type_text(window, hostile)
    expect(window.locator(".source-text")).to_have_text(hostile)
    assert window.locator("img, b").count() == 0
    assert window.evaluate("window.hacked") is None
    type_text(window, "  ")
    expect(translation(window)).to_have_text("")
    expect(window.locator(".attention-view")).to_be_empty()
    assert window.errors == []


def test_translation_is_announced_to_screen_readers(open_translator, run):
    window = open_translator()
    type_text(window)
    expect(window.locator("[aria-live=polite].visually-hidden")).to_have_text(
        str(run.translate(TEXT))
    )


def test_page_without_a_known_head_shows_the_mean_of_the_last_layer(
    open_translator, run, tmp_path, unchecked
):
    data = describe_translator(run.model, run.tokenizers, run.settings.search, name="tiny")
    file = tmp_path / "page.html"
    file.write_text(render_translator(data), encoding="utf-8")
    window = open_translator(file)
    type_text(window)
    expect(window.locator(".unseen-words")).to_be_hidden()
    expect(window.locator(".head-note")).to_have_text(
        "Weights: mean over the heads of cross-attention, layer 1."
    )
