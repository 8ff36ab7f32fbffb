"""Training and comparing as a person meets them: curves that grow, and two heads side by side."""

import json
import re
import shutil

import pytest

from regard.runs import trace_translation
from regard.trace import merge_subwords

pytestmark = pytest.mark.browser
expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect

TEXT, TARGET = "the old cat sees the dog", "le chat vieux voit le chien"


@pytest.fixture(autouse=True)
def patient():
    expect.set_options(timeout=60_000)  # a busy machine takes its time


def test_curves_go_on_as_lines_are_written(
    open_page, serve_explorer, run_without_phrasebook, tmp_path
):
    path = shutil.copytree(run_without_phrasebook, tmp_path / "live")
    (path / "README.md").unlink()  # a card is written at the end
    log = path / "log.jsonl"
    log.write_text('{"step": 1, "seconds": 2.0, "train_loss": 9.5, "valid_loss": 9.25}\n')
    with serve_explorer([path]) as url:
        window = open_page(f"{url}#training")
        expect(window.locator(".live-line")).to_contain_text("Training: step 1.")
        expect(window.locator(".chart-legend").first).to_contain_text("validation 9.25")
        before = window.locator(".chart .curve").first.get_attribute("d")
        with log.open("a") as file:
            file.write('{"step": 2, "seconds": 4.0, "train_loss": 7.5, "valid_loss": 7.125}\n')
            file.write('{"step": 2, "seconds": 4.0, "tokens_per_second": 1234.5}\n')
            file.write('{"step": 3, "torn')
        expect(window.locator(".chart-legend").first).to_contain_text("validation 7.125")
        expect(window.locator(".live-line")).to_contain_text("step 2")
        assert window.locator(".chart .curve").first.get_attribute("d") != before
        figure = window.locator("figure", has=window.get_by_text("Target tokens per second"))
        expect(figure.locator(".chart-legend")).to_contain_text("tokens/s 1235")
        (path / "README.md").write_text("done")
        expect(window.locator(".live-line")).to_contain_text("Finished")
        assert window.errors == []


def test_curves_are_read_off_by_keys(open_page, explorer_url, run_without_phrasebook):
    records = [
        json.loads(line) for line in (run_without_phrasebook / "log.jsonl").read_text().splitlines()
    ]
    told = [record for record in records if "valid_loss" in record]
    window = open_page(f"{explorer_url}#training")
    legend = window.locator(".chart-legend").first
    expect(legend).to_contain_text(f"step {told[-1]['step']}")
    window.locator(".chart").first.focus()
    for _ in range(3):
        window.keyboard.press("ArrowLeft")
    loss = f"{told[-3]['valid_loss']:.4g}".rstrip("0")
    expect(legend).to_contain_text(f"validation {loss} step {told[-3]['step']}")


def test_a_head_is_seen_at_each_checkpoint(open_page, explorer_url):
    link = f"{explorer_url}#training?source={TEXT}&target={TARGET}".replace(" ", "+")
    window = open_page(link)
    slider, frame = window.get_by_label("Checkpoint"), window.locator(".through .frame")
    expect(slider).to_be_enabled()
    expect(window.locator(".through .sentence")).not_to_be_empty()
    told = window.locator(".slider.long output")
    expect(told).to_contain_text("the end")
    last = frame.screenshot()
    slider.focus()
    with window.expect_response("**/api/traces"):
        window.keyboard.press("Home")
    expect(told).to_have_text(re.compile(r"^step \d+$"))
    window.wait_for_timeout(500)
    assert frame.screenshot() != last
    step = told.inner_text()
    again = open_page(window.url)
    expect(again.locator(".slider.long output")).to_have_text(step)


def compared(window):
    """Wait until both sides and what is between them are drawn."""
    expect(window.locator(".map:visible")).to_have_count(3)
    return window.locator(".compare .sentence")


def test_two_heads_are_compared_cell_by_cell(open_page, explorer_url, run):
    sides = "&".join(f"{side}.text={TEXT}&{side}.target={TARGET}&{side}.layer=0" for side in "ab")
    window = open_page(f"{explorer_url}#compare?{sides}&a.head=0&b.head=1".replace(" ", "+"))
    said = compared(window)
    window.locator(".map .stage").last.focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
        window.keyboard.press(key)
    trace = merge_subwords(trace_translation(run.model, run.tokenizers, TEXT, TARGET))
    cross = next(look for look in trace.maps if look.kind == "cross")
    told = re.search(r"with ([\d.]+) here and ([\d.]+) there", said.inner_text())
    row, column = (int(place) for place in place_of(window, trace))
    assert [float(number) for number in told.groups()] == pytest.approx(
        cross.weights[:2, row, column], abs=0.006
    )
    assert window.errors == []


def place_of(window, trace):
    """Find the words of the sentence below the maps among those of the trace."""
    query, key = re.findall("“(.*?)”", window.locator(".compare .sentence").inner_text())
    told = [[piece.strip("▁ ") for piece in trace.tokens[side].pieces] for side in trace.tokens]
    names = dict(zip(trace.tokens, told, strict=True))
    return names["target"].index(query), names["source"].index(key)


def test_what_cannot_be_subtracted_is_said(open_page, explorer_url):
    link = f"{explorer_url}#compare?a.text={TEXT}&a.target={TARGET}&b.text=the+cat&b.target=le+chat"
    window = open_page(link.replace(" ", "+"))
    reason = window.locator(".compare .hint")
    expect(reason).to_contain_text("There is no difference to show: one has 7 × 6 cells")
    expect(window.locator(".map:visible")).to_have_count(2)
    window.get_by_label("Sentence").nth(1).fill(TEXT)
    window.get_by_label("Translation").nth(1).fill(TARGET)
    expect(window.locator(".map:visible")).to_have_count(3)
    expect(reason).to_have_text("Both look alike, cell by cell.")


def test_two_runs_are_compared(open_page, explorer_url):
    sides = "&".join(f"{side}.text={TEXT}&{side}.target={TARGET}&{side}.head=0" for side in "ab")
    window = open_page(f"{explorer_url}#compare?{sides}&a.run=tiny&b.run=tiny-2".replace(" ", "+"))
    compared(window)
    runs = window.get_by_label("Run")
    expect(runs.nth(1)).to_have_value("tiny-2")
    expect(window.locator(".compare .hint")).to_have_text("Both look alike, cell by cell.")


def test_a_run_that_is_removed_is_told_of(
    open_page, serve_explorer, run_without_phrasebook, tmp_path
):
    path = shutil.copytree(run_without_phrasebook, tmp_path / "gone")
    with serve_explorer([path]) as url:
        window = open_page(f"{url}#translate")
        expect(window.get_by_label("Sentence")).to_be_visible()
        shutil.rmtree(path)
        window.get_by_label("Sentence").fill(TEXT)
        expect(window.locator(".status.problem")).to_contain_text("gone")
        assert window.errors == [] or all("404" in error for error in window.errors)
