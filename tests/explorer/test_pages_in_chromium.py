"""The explorer as a person meets it: typed into, clicked on, linked to, in Chromium."""

import json
import re

import numpy as np
import pytest

from regard.decoding import translate
from regard.runs import trace_translation
from regard.trace import build_translation_trace, load_trace
from regard.viz.detokenize import display_tokens

pytestmark = pytest.mark.browser
expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect

TEXT = "the old cat sees the dog"
EVIL = "</script><img src=x onerror=alert(1)>"
PAGES = ("translate", "playground", "training", "compare", "traces")


@pytest.fixture(autouse=True)
def patient():
    expect.set_options(timeout=60_000)  # a busy machine takes its time


def typed(window, text):
    window.get_by_label("Sentence").fill(text)


def cards(window):
    return window.locator(".answers .card")


def looked(window):
    """Wait until a trace is shown; give the part of the page that shows it."""
    view = window.locator(".looking.page:not(.waiting)")
    expect(view.locator(".sentence")).not_to_be_empty()
    return view


def words_of(window, count):
    """Walk down the rows of the trace that is shown, and give the words they are named by."""
    view = looked(window)
    view.locator(".stage").focus()
    found = []
    for _ in range(count):
        before = view.locator(".sentence").inner_text()
        window.keyboard.press("ArrowDown")
        expect(view.locator(".sentence")).not_to_have_text(before)
        found.append(re.match("“(.*?)”", view.locator(".sentence").inner_text())[1])
    return found


def test_what_is_typed_is_translated_as_the_library_does(open_page, explorer_url, run):
    window = open_page(explorer_url)
    typed(window, TEXT)
    best = translate(run.model, run.tokenizers, [TEXT], run.settings.search)[0][0]
    expect(cards(window).first.locator(".card-text")).to_have_text(best.text)
    marks = (
        cards(window).first.locator(".word").evaluate_all("all => all.map((word) => word.title)")
    )
    assert len(marks) == len(run.tokenizers.target.word_spans(best.text))
    assert all(re.search(r": [<>]?\d+\u00a0% sure$", mark) for mark in marks)
    looked(window)
    assert window.errors == []


def test_each_translation_shows_its_own_attention(open_page, explorer_url):
    window = open_page(explorer_url)
    typed(window, TEXT)
    looked(window)
    expect(cards(window)).to_have_count(4)
    second = cards(window).nth(1)
    with window.expect_request("**/api/traces") as asked:
        second.click()
    said = second.locator(".card-text").inner_text()
    assert asked.value.post_data_json["target"] == said
    expect(second).to_have_attribute("aria-pressed", "true")
    expect(window.locator(".answers .status")).to_contain_text("translation 2")


def test_a_target_can_be_forced_and_is_looked_through_word_by_word(open_page, explorer_url, run):
    window = open_page(explorer_url)
    typed(window, TEXT)
    looked(window)
    window.get_by_label("Your own translation").fill("le chat voit le homme")
    expect(window.locator(".answers .status")).to_contain_text("your own")
    expect(window.locator(".own-sure .word")).to_have_count(5)
    trace = trace_translation(run.model, run.tokenizers, TEXT, "le chat voit le homme")
    pieces = display_tokens(trace.tokens["target"].pieces, trace.tokens["target"].special)
    assert words_of(window, 5) == list(pieces[:5])


def test_an_empty_text_asks_for_one(open_page, explorer_url):
    window = open_page(explorer_url)
    typed(window, " ")
    expect(window.locator(".answers .status")).to_have_text(
        "Type a sentence, and its translations appear here."
    )
    expect(cards(window)).to_have_count(0)


def test_a_busy_server_is_told_of_and_asked_again(open_page, explorer_url):
    window = open_page(f"{explorer_url}#playground")
    answers = [503]

    def busy(route):
        if answers.pop() if answers else False:
            route.fulfill(status=503, headers={"Retry-After": "2"}, json={"error": "Busy."})
        else:
            route.continue_()

    window.route("**/api/translate", busy)
    window.get_by_role("link", name="Translate").click()
    typed(window, TEXT)
    expect(window.locator(".answers .status")).to_contain_text("busy; trying again in 2 s")
    expect(cards(window)).to_have_count(4)


def test_a_refusal_is_a_sentence(open_page, explorer_url):
    window = open_page(explorer_url)
    window.get_by_label("Sentence").evaluate("area => area.removeAttribute('maxlength')")
    typed(window, "the cat " * 500)
    problem = window.locator(".answers .status.problem")
    expect(problem).to_be_visible()
    assert problem.inner_text().endswith(".")


@pytest.mark.parametrize("page", PAGES)
def test_no_page_reaches_outside_or_scrolls_sideways_on_a_phone(open_page, explorer_url, page):
    window = open_page(f"{explorer_url}#{page}", viewport={"width": 360, "height": 740})
    expect(window.locator("main > *").first).to_be_visible()
    window.wait_for_load_state("networkidle")
    assert window.evaluate("document.documentElement.scrollWidth") <= 360
    assert window.errors == []
    assert [
        url for url in window.requests if not url.startswith((explorer_url, "blob:", "data:"))
    ] == []


def test_a_link_opens_the_same_state_again(open_page, explorer_url):
    window = open_page(explorer_url)
    typed(window, TEXT)
    looked(window)
    cards(window).nth(2).click()
    expect(window.locator(".answers .status")).to_contain_text("translation 3")
    view = looked(window)
    view.get_by_role("tab", name="Encoder").click()
    view.get_by_role("button", name="Lines").click()
    view.locator(".overview").focus()
    window.keyboard.press("ArrowRight")
    expect(view.locator(".caption")).to_contain_text("Encoder · layer 0, head 1")
    again = open_page(window.url)
    seen = looked(again)
    expect(seen.locator(".caption")).to_have_text(view.locator(".caption").inner_text())
    expect(seen.get_by_role("button", name="Lines")).to_have_attribute("aria-pressed", "true")
    expect(cards(again).nth(2)).to_have_attribute("aria-pressed", "true")
    expect(again.get_by_label("Sentence")).to_have_value(TEXT)


def test_the_language_follows_the_reader_and_the_button_and_is_remembered(open_page, explorer_url):
    window = open_page(explorer_url, locale="zh-CN")
    expect(window.locator("header nav a")).to_have_text(["翻译", "实验台", "训练", "比较", "记录"])
    window.get_by_label("句子").fill(TEXT)
    looked(window)
    window.get_by_role("button", name="English").click()
    expect(window.get_by_label("Sentence")).to_have_value(TEXT)
    expect(looked(window).get_by_role("tab").first).to_have_text("Encoder")
    window.reload()
    expect(window.locator("header nav a").first).to_have_text("Translate")
    expect(window.locator("html")).to_have_attribute("lang", "en")


def test_the_theme_follows_the_reader_and_the_button_and_is_remembered(open_page, explorer_url):
    paper = "getComputedStyle(document.body).backgroundColor"
    window = open_page(explorer_url, color_scheme="dark")
    dark = window.evaluate(paper)
    assert max(map(int, re.findall(r"\d+", dark))) < 40
    window.get_by_role("button", name="Theme").click()
    light = window.evaluate(paper)
    assert min(map(int, re.findall(r"\d+", light))) > 230
    window.reload()
    assert window.evaluate(paper) == light


def test_two_browsers_at_once_do_not_disturb_each_other(open_page, explorer_url, run):
    texts = ["the red dog hears the bird", "the big man likes the boat"]
    windows = [open_page(explorer_url) for _ in texts]
    for window, text in zip(windows, texts, strict=True):
        typed(window, text)
    for window, text in zip(windows, texts, strict=True):
        best = translate(run.model, run.tokenizers, [text], run.settings.search)[0][0]
        expect(cards(window).first.locator(".card-text")).to_have_text(best.text)


def test_the_trace_that_is_shown_is_saved(open_page, explorer_url, tmp_path):
    window = open_page(explorer_url)
    typed(window, TEXT)
    view = looked(window)
    with window.expect_download() as waiting:
        view.get_by_role("button", name="Save the trace as JSON").click()
    waiting.value.save_as(tmp_path / "saved.json")
    assert load_trace(tmp_path / "saved.json").title == TEXT


def drop(window, name, text):
    """Drop a file on the page, as a person does."""
    window.evaluate(
        """([name, text]) => {
            const dataTransfer = new DataTransfer();
            dataTransfer.items.add(new File([text], name));
            const options = { dataTransfer, bubbles: true, cancelable: true };
            document.body.dispatchEvent(new DragEvent("drop", options));
        }""",
        [name, text],
    )


def test_a_trace_dropped_on_any_page_is_shown_and_its_words_are_text(open_page, explorer_url):
    trace = build_translation_trace(
        [EVIL, "b"], [EVIL, "c"], cross=[np.eye(2)[None]], title=EVIL, model=EVIL
    )
    window = open_page(f"{explorer_url}#playground")
    expect(window.locator(".grid").first).to_be_visible()
    window.on("dialog", lambda dialog: window.errors.append(dialog.message) or dialog.dismiss())
    drop(window, f"{EVIL}.json", trace.to_json())
    assert words_of(window, 1) == [EVIL]
    assert f"looks most at “{EVIL}” (1.00)" in window.locator(".sentence").inner_text()
    expect(window.locator(".looking h2")).to_have_text(EVIL)
    assert window.locator("main img").count() == 0
    assert window.errors == []


def test_a_file_that_is_no_trace_gets_a_sentence(open_page, explorer_url):
    window = open_page(f"{explorer_url}#traces")
    expect(window.get_by_role("button", name="Open a file")).to_be_visible()
    drop(window, "odd.json", json.dumps({"format": "other"}))
    problem = window.locator(".traces .status.problem")
    expect(problem).to_be_visible()
    assert "trace" in problem.inner_text()


def test_traces_named_at_start_are_listed_and_linked_to(open_page, serve_explorer, tmp_path):
    for name in ("one", "two"):
        trace = build_translation_trace(
            ["a"], ["b"], cross=[np.ones((1, 1, 1))], title=f"title {name}"
        )
        (tmp_path / f"{name}.json").write_text(trace.to_json(), encoding="utf-8")
    with serve_explorer([], [tmp_path / "one.json", tmp_path / "two.json"]) as url:
        window = open_page(url)  # without a run, traces come first
        window.get_by_role("button", name="title two").click()
        expect(looked(window).locator("h2")).to_have_text("title two")
        again = open_page(window.url)
        expect(looked(again).locator("h2")).to_have_text("title two")
        window.get_by_role("link", name="Translate").click()
        expect(window.locator("main")).to_contain_text("No run was named at start")


def test_a_file_of_several_traces_is_a_list_to_walk_through_by_keys(open_page, explorer_url):
    found = [
        build_translation_trace(["a"], [n], cross=[np.ones((1, 1, 1))], title=f"title {n}")
        for n in "xyz"
    ]
    window = open_page(f"{explorer_url}#traces")
    expect(window.get_by_role("button", name="Open a file")).to_be_visible()
    drop(window, "several.jsonl", "\n".join(trace.to_json() for trace in found))
    expect(looked(window).locator("h2")).to_have_text("title x")
    cards = window.get_by_role("group", name="Traces of this file").get_by_role("button")
    expect(cards).to_have_count(3)
    expect(cards.first).to_have_attribute("aria-pressed", "true")
    cards.first.focus()
    for key in ("End", "ArrowRight", "ArrowUp", "Enter"):
        window.keyboard.press(key)
    expect(looked(window).locator("h2")).to_have_text("title y")
    expect(cards.nth(1)).to_have_attribute("aria-pressed", "true")
    window.get_by_role("button", name="中文").click()
    expect(window.get_by_role("group", name="此文件中的记录").get_by_role("button")).to_have_count(
        3
    )
    expect(looked(window).locator("h2")).to_have_text("title y")
    assert window.errors == []
    drop(window, "many.jsonl", "\n".join([found[0].to_json()] * 201))
    expect(window.locator(".traces .status.problem")).to_contain_text("at most 200 traces")
