"""The explorer's Translate and Traces pages, and what all pages share, in Chromium."""

import json
import re

import numpy as np
import pytest

from regard.analysis import select_head
from regard.decoding import translate
from regard.runs import trace_translation
from regard.trace import build_translation_trace, load_trace
from regard.viz import display_tokens

expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect

pytestmark = pytest.mark.browser

TEXT = "the old cat sees the dog"
MARKUP = "</script><img src=x onerror=alert(1)>"
PAGES = ("translate", "playground", "training", "compare", "traces")


@pytest.fixture(autouse=True)
def long_timeout():
    expect.set_options(timeout=60_000)  # the machine may be busy


def enter_sentence(window, text):
    window.get_by_label("Sentence").fill(text)


def translation_cards(window):
    return window.locator(".results .card")


def status_line(window):
    return window.locator(".translate-page .status")


def trace_view(window):
    """Wait for a trace, and return the element that shows it."""
    view = window.locator(".trace-view.viewer:not(.is-loading)")
    expect(view.locator(".description")).not_to_be_empty()
    return view


def row_labels(window, count):
    """Move down the rows of the current trace and return their words."""
    view = trace_view(window)
    view.locator(".main-canvas").focus()
    labels = []
    for _ in range(count):
        before = view.locator(".description").inner_text()
        window.keyboard.press("ArrowDown")
        expect(view.locator(".description")).not_to_have_text(before)
        labels.append(re.match("“(.*?)”", view.locator(".description").inner_text())[1])
    return labels


def test_sentence_is_translated_as_by_the_library(open_page, explorer_url, run):
    window = open_page(explorer_url)
    enter_sentence(window, TEXT)
    best = translate(run.model, run.tokenizers, [TEXT], run.settings.search)[0][0]
    first = translation_cards(window).first
    expect(first.locator(".card-text")).to_have_text(best.text)
    titles = first.locator(".word").evaluate_all("all => all.map((word) => word.title)")
    assert len(titles) == len(run.tokenizers.target.word_spans(best.text))
    assert all(re.search(r": probability [<>]?\d+\u00a0%$", title) for title in titles)
    trace_view(window)
    assert window.errors == []


def test_selected_translation_shows_its_own_attention(open_page, explorer_url):
    window = open_page(explorer_url)
    enter_sentence(window, TEXT)
    trace_view(window)
    expect(translation_cards(window)).to_have_count(4)
    second = translation_cards(window).nth(1)
    with window.expect_request("**/api/traces") as request:
        second.click()
    assert request.value.post_data_json["target"] == second.locator(".card-text").inner_text()
    expect(second).to_have_attribute("aria-pressed", "true")
    expect(status_line(window)).to_contain_text("translation 2")


def test_custom_target_is_traced_word_by_word(open_page, explorer_url, run):
    window = open_page(explorer_url)
    enter_sentence(window, TEXT)
    trace_view(window)
    window.get_by_label("Your own translation").fill("le chat voit le homme")
    expect(status_line(window)).to_contain_text("your own")
    expect(window.locator(".forced-target .word")).to_have_count(5)
    trace = trace_translation(run.model, run.tokenizers, TEXT, "le chat voit le homme")
    pieces = display_tokens(trace.tokens["target"].pieces, trace.tokens["target"].special)
    assert row_labels(window, 5) == list(pieces[:5])


def test_trace_asked_for_meanwhile_does_not_end_a_translation(open_page, explorer_url):
    window = open_page(explorer_url)
    enter_sentence(window, "the dog")
    trace_view(window)
    held = []
    window.route("**/api/translate", lambda route: held.append(route))
    with window.expect_request("**/api/translate"):
        enter_sentence(window, TEXT)
    with window.expect_request("**/api/traces"):
        window.get_by_label("Your own translation").fill("le chat")
    words = [{"text": word, "probability": 0.5} for word in ("un", "chien")]
    answer = {"text": "un chien", "score": -1.0, "log_prob": -2.0, "words": words}
    translations = [answer | {"tokens": [], "token_log_probs": []}]
    held[0].fulfill(json={"translations": translations, "unseen_words": []})
    expect(translation_cards(window).locator(".card-text")).to_have_text(["un chien"])
    trace_view(window)
    assert window.errors == []


def test_empty_sentence_shows_a_hint_and_no_translations(open_page, explorer_url):
    window = open_page(explorer_url)
    enter_sentence(window, " ")
    expect(status_line(window)).to_have_text("Type a sentence to see its translations.")
    expect(translation_cards(window)).to_have_count(0)


def test_busy_server_is_reported_and_the_request_retried(open_page, explorer_url):
    window = open_page(f"{explorer_url}#playground")
    responses = [503]

    def answer(route):
        if responses.pop() if responses else False:
            route.fulfill(status=503, headers={"Retry-After": "2"}, json={"error": "Busy."})
        else:
            route.continue_()

    window.route("**/api/translate", answer)
    window.get_by_role("link", name="Translate").click()
    enter_sentence(window, TEXT)
    expect(status_line(window)).to_contain_text("busy. Retrying in 2 s")
    expect(translation_cards(window)).to_have_count(4)


def test_rejected_request_shows_the_servers_message(open_page, explorer_url):
    window = open_page(explorer_url)
    window.get_by_label("Sentence").evaluate("area => area.removeAttribute('maxlength')")
    enter_sentence(window, "the cat " * 500)
    error = window.locator(".translate-page .status.error")
    expect(error).to_be_visible()
    assert error.inner_text().endswith(".")


def test_attention_is_on_the_first_screen_of_a_laptop(open_page, explorer_url):
    window = open_page(explorer_url, viewport={"width": 1280, "height": 800})
    enter_sentence(window, TEXT)
    frame = trace_view(window).locator(".canvas-frame").bounding_box()
    side = window.locator(".translate-input").bounding_box()
    assert frame["y"] + frame["height"] <= 800
    assert side["x"] + side["width"] <= frame["x"]


def test_run_is_chosen_by_its_name_and_its_size_is_below(open_page, explorer_url, run):
    window = open_page(explorer_url, viewport={"width": 390, "height": 844})
    menu = window.get_by_label("Run")
    expect(menu.locator("option")).to_have_text(["tiny", "tiny-2"])
    details = window.locator(".select-details small")
    count = sum(parameter.numel() for parameter in run.model.parameters())
    expect(details).to_have_text(f"Transformer · {count:,} parameters")
    box = details.evaluate("element => [element.scrollWidth, element.clientWidth]")
    assert box[0] <= box[1]


def test_commands_in_texts_are_marked_and_not_broken(open_page, explorer_url):
    window = open_page(f"{explorer_url}#traces", viewport={"width": 390, "height": 844})
    command = window.locator(".drop-zone code")
    expect(command).to_have_text("regard translate --traces")
    assert command.evaluate("element => element.getClientRects().length") == 1
    assert "`" not in window.locator(".drop-zone").inner_text()


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
@pytest.mark.parametrize("page", PAGES)
def test_page_fits_a_phone_and_requests_nothing_from_outside(open_page, explorer_url, page, locale):
    window = open_page(
        f"{explorer_url}#{page}", viewport={"width": 360, "height": 740}, locale=locale
    )
    expect(window.locator("main > *").first).to_be_visible()
    window.wait_for_load_state("networkidle")
    assert window.evaluate("document.documentElement.scrollWidth") <= 360
    assert window.errors == []
    assert [
        url for url in window.requests if not url.startswith((explorer_url, "blob:", "data:"))
    ] == []


def test_link_restores_the_state(open_page, explorer_url):
    window = open_page(explorer_url)
    enter_sentence(window, TEXT)
    trace_view(window)
    translation_cards(window).nth(2).click()
    expect(status_line(window)).to_contain_text("translation 3")
    view = trace_view(window)
    view.get_by_role("tab", name="Encoder").click()
    view.get_by_role("button", name="Lines").click()
    view.locator(".overview-canvas").focus()
    window.keyboard.press("ArrowRight")
    expect(view.locator(".caption")).to_contain_text("Encoder · layer 0, head 1")
    other = open_page(window.url)
    restored = trace_view(other)
    expect(restored.locator(".caption")).to_have_text(view.locator(".caption").inner_text())
    expect(restored.get_by_role("button", name="Lines")).to_have_attribute("aria-pressed", "true")
    expect(translation_cards(other).nth(2)).to_have_attribute("aria-pressed", "true")
    expect(other.get_by_label("Sentence")).to_have_value(TEXT)


def test_translation_opens_at_the_selected_head_unless_the_link_names_one(
    open_page, explorer_url, run
):
    texts = [TEXT, "the big man likes the boat", "the red dog hears the bird"]
    window = open_page(explorer_url)
    for text in texts:
        enter_sentence(window, text)
        target = translate(run.model, run.tokenizers, [text], run.settings.search)[0][0].text
        chosen = select_head(trace_translation(run.model, run.tokenizers, text, target))
        caption = trace_view(window).locator(".caption")
        expect(caption).to_contain_text(f"layer {chosen.layer}, head {chosen.head} ")
        expect(caption).to_contain_text(f"highest alignment score of {chosen.candidates} heads")
        trace_view(window).locator(".main-canvas").hover()  # must not fix the head
    other = open_page(f"{window.url}&kind=decoder&layer=0&head=1")
    caption = trace_view(other).locator(".caption")
    expect(caption).to_contain_text("Decoder · layer 0, head 1")
    enter_sentence(other, TEXT)
    trace_view(other)
    expect(caption).to_contain_text("Decoder · layer 0, head 1")


def test_language_follows_browser_and_button_and_is_remembered(open_page, explorer_url):
    window = open_page(explorer_url, locale="zh-CN")
    expect(window.locator("header nav a")).to_have_text(["翻译", "演练场", "训练", "对比", "记录"])
    window.get_by_label("句子").fill(TEXT)
    trace_view(window)
    window.get_by_role("button", name="English").click()
    expect(window.get_by_label("Sentence")).to_have_value(TEXT)
    expect(trace_view(window).get_by_role("tab").first).to_have_text("Encoder")
    window.reload()
    expect(window.locator("header nav a").first).to_have_text("Translate")
    expect(window.locator("html")).to_have_attribute("lang", "en")


def test_theme_follows_system_and_button_and_is_remembered(open_page, explorer_url):
    background = "getComputedStyle(document.body).backgroundColor"
    window = open_page(explorer_url, color_scheme="dark")
    dark = window.evaluate(background)
    assert max(map(int, re.findall(r"\d+", dark))) < 40
    window.get_by_role("button", name="Theme").click()
    light = window.evaluate(background)
    assert min(map(int, re.findall(r"\d+", light))) > 230
    window.reload()
    assert window.evaluate(background) == light


def test_two_browsers_at_once_get_their_own_translations(open_page, explorer_url, run):
    texts = ["the red dog hears the bird", "the big man likes the boat"]
    windows = [open_page(explorer_url) for _ in texts]
    for window, text in zip(windows, texts, strict=True):
        enter_sentence(window, text)
    for window, text in zip(windows, texts, strict=True):
        best = translate(run.model, run.tokenizers, [text], run.settings.search)[0][0]
        expect(translation_cards(window).first.locator(".card-text")).to_have_text(best.text)


def test_naming_of_rows_is_part_of_the_link(open_page, explorer_url):
    window = open_page(explorer_url)
    enter_sentence(window, TEXT)
    trace_view(window).get_by_role("button", name="input words").click()
    window.wait_for_url(re.compile("rows=input"))
    other = open_page(window.url)
    assert row_labels(other, 1) == ["<start>"]


def test_current_trace_is_saved_as_json(open_page, explorer_url, tmp_path):
    window = open_page(explorer_url)
    enter_sentence(window, TEXT)
    view = trace_view(window)
    with window.expect_download() as download:
        view.get_by_role("button", name="Save trace as JSON").click()
    download.value.save_as(tmp_path / "saved.json")
    assert load_trace(tmp_path / "saved.json").title.startswith(f"{TEXT} → ")


def drop_file(window, name, text):
    window.evaluate(
        """([name, text]) => {
            const dataTransfer = new DataTransfer();
            dataTransfer.items.add(new File([text], name));
            const options = { dataTransfer, bubbles: true, cancelable: true };
            document.body.dispatchEvent(new DragEvent("drop", options));
        }""",
        [name, text],
    )


def test_trace_dropped_on_any_page_is_shown_and_its_markup_is_text(open_page, explorer_url):
    trace = build_translation_trace(
        [MARKUP, "b"], [MARKUP, "c"], cross=[np.eye(2)[None]], title=MARKUP, model=MARKUP
    )
    window = open_page(f"{explorer_url}#playground")
    expect(window.locator(".matrix-table").first).to_be_visible()
    window.on("dialog", lambda dialog: window.errors.append(dialog.message) or dialog.dismiss())
    drop_file(window, f"{MARKUP}.json", trace.to_json())
    assert row_labels(window, 1) == [MARKUP]
    description = window.locator(".description").inner_text()
    assert f"attends most to “{MARKUP}” (1.00)" in description
    expect(window.locator(".trace-view h2")).to_have_text(MARKUP)
    assert window.locator("main img").count() == 0
    assert window.errors == []


def test_dropped_file_that_is_not_a_trace_shows_an_error(open_page, explorer_url):
    window = open_page(f"{explorer_url}#traces")
    expect(window.get_by_role("button", name="Open file")).to_be_visible()
    drop_file(window, "odd.json", json.dumps({"format": "other"}))
    error = window.locator(".traces-page .status.error")
    expect(error).to_be_visible()
    assert "trace" in error.inner_text()


def test_traces_given_at_start_are_listed_and_linkable(open_page, serve_explorer, tmp_path):
    for name in ("one", "two"):
        trace = build_translation_trace(
            ["a"], ["b"], cross=[np.ones((1, 1, 1))], title=f"title {name}"
        )
        (tmp_path / f"{name}.json").write_text(trace.to_json(), encoding="utf-8")
    with serve_explorer([], [tmp_path / "one.json", tmp_path / "two.json"]) as url:
        window = open_page(url)  # without a run, the Traces page is the first
        window.get_by_role("button", name="title two").click()
        expect(trace_view(window).locator("h2")).to_have_text("title two")
        other = open_page(window.url)
        expect(trace_view(other).locator("h2")).to_have_text("title two")
        window.get_by_role("link", name="Translate").click()
        expect(window.locator("main")).to_contain_text("started without a run")


def test_trace_without_title_is_named_once(open_page, serve_explorer, tmp_path):
    trace = build_translation_trace(["a"], ["b"], cross=[np.ones((1, 1, 1))], model="a model")
    (tmp_path / "one.json").write_text(trace.to_json(), encoding="utf-8")
    with serve_explorer([], [tmp_path / "one.json"]) as url:
        card = open_page(url).locator(".trace-list .card")
        expect(card.locator(".card-text")).to_have_text("one")
        expect(card.locator(".card-footer")).to_have_text("a model")


def test_traces_of_one_file_are_listed_and_selected_with_the_keyboard(open_page, explorer_url):
    traces = [
        build_translation_trace(["a"], [n], cross=[np.ones((1, 1, 1))], title=f"title {n}")
        for n in "xyz"
    ]
    window = open_page(f"{explorer_url}#traces")
    expect(window.get_by_role("button", name="Open file")).to_be_visible()
    drop_file(window, "several.jsonl", "\n".join(trace.to_json() for trace in traces))
    expect(trace_view(window).locator("h2")).to_have_text("title x")
    cards = window.get_by_role("group", name="Traces in this file").get_by_role("button")
    expect(cards).to_have_count(3)
    expect(cards.first).to_have_attribute("aria-pressed", "true")
    cards.first.focus()
    for key in ("End", "ArrowRight", "ArrowUp", "Enter"):
        window.keyboard.press(key)
    expect(trace_view(window).locator("h2")).to_have_text("title y")
    expect(cards.nth(1)).to_have_attribute("aria-pressed", "true")
    window.get_by_role("button", name="中文").click()
    chinese = window.get_by_role("group", name="此文件中的记录").get_by_role("button")
    expect(chinese).to_have_count(3)
    expect(trace_view(window).locator("h2")).to_have_text("title y")
    assert window.errors == []
    drop_file(window, "many.jsonl", "\n".join([traces[0].to_json()] * 201))
    expect(window.locator(".traces-page .status.error")).to_contain_text("200 traces")
