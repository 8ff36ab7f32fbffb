"""The explorer's Training and Compare pages in Chromium: live charts, checkpoints, differences."""

import re
import shutil

import pytest

from regard.runs import RunFolder, trace_translation
from regard.runs.log import format_line
from regard.trace import merge_subwords

expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect

pytestmark = pytest.mark.browser

TEXT, TARGET = "the old cat sees the dog", "le chat vieux voit le chien"


@pytest.fixture(autouse=True)
def long_timeout():
    expect.set_options(timeout=60_000)  # the machine may be busy


def test_charts_follow_a_log_that_is_being_written(
    open_page, serve_explorer, run_without_phrasebook, tmp_path
):
    path = shutil.copytree(run_without_phrasebook, tmp_path / "live")
    (path / "README.md").unlink()  # the model card is written at the end of training
    log = path / "log.jsonl"
    run_id = RunFolder(path).read_id()
    losses = {"train_loss": 9.5, "valid_loss": 9.25}
    log.write_text(format_line({"step": 1, "seconds": 2.0, **losses}, run_id))
    last = format_line({"step": 2, "stop_reason": "the last step was reached"}, run_id)
    with serve_explorer([path]) as url:
        window = open_page(f"{url}#training")
        run_status, legend = window.locator(".run-status"), window.locator(".chart-legend").first
        expect(run_status).to_contain_text("Training: step 1.")
        expect(legend).to_contain_text("validation 9.25")
        line = window.locator(".chart .line").first
        before = line.get_attribute("d")
        with log.open("a") as file:
            losses = {"train_loss": 7.5, "valid_loss": 7.125}
            file.write(format_line({"step": 2, "seconds": 4.0, **losses}, run_id))
            speed = {"tokens_per_second": 1234.5}
            file.write(format_line({"step": 2, "seconds": 4.0, **speed}, run_id))
            file.write(last[:9])
        expect(legend).to_contain_text("validation 7.125")
        expect(run_status).to_contain_text("step 2")
        assert line.get_attribute("d") != before
        figure = window.locator("figure", has=window.get_by_text("Target tokens per second"))
        expect(figure.locator(".chart-legend")).to_contain_text("tokens/s 1,235")
        with log.open("a") as file:
            file.write(last[9:])
        (path / "README.md").write_text("done")
        expect(run_status).to_contain_text("Finished")
        assert window.errors == []


def test_chart_values_are_read_with_the_keyboard(open_page, explorer_url, run_without_phrasebook):
    records = RunFolder(run_without_phrasebook).read_log()
    validations = [record for record in records if "valid_loss" in record]
    window = open_page(f"{explorer_url}#training")
    legend = window.locator(".chart-legend").first
    expect(legend).to_contain_text(f"step {validations[-1]['step']}")
    window.locator(".chart").first.focus()
    for _ in range(3):
        window.keyboard.press("ArrowLeft")
    loss = f"{validations[-3]['valid_loss']:.4g}".rstrip("0")
    expect(legend).to_contain_text(f"validation {loss} step {validations[-3]['step']}")


def test_checkpoint_slider_shows_the_head_at_each_checkpoint(open_page, explorer_url):
    link = f"{explorer_url}#training?source={TEXT}&target={TARGET}".replace(" ", "+")
    window = open_page(link)
    slider = window.get_by_label("Checkpoint")
    frame = window.locator(".checkpoint-panel .canvas-frame")
    expect(slider).to_be_enabled()
    expect(window.locator(".checkpoint-panel .description")).not_to_be_empty()
    step = window.locator(".checkpoint-slider output")
    expect(step).to_contain_text("final")
    final = frame.screenshot()
    slider.focus()
    with window.expect_response("**/api/traces"):
        window.keyboard.press("Home")
    expect(step).to_have_text(re.compile(r"^step \d+$"))
    window.wait_for_timeout(500)
    assert frame.screenshot() != final
    other = open_page(window.url)
    expect(other.locator(".checkpoint-slider output")).to_have_text(step.inner_text())


def test_run_with_one_checkpoint_says_how_to_keep_more(
    open_page, serve_explorer, run_without_phrasebook, tmp_path
):
    path = shutil.copytree(run_without_phrasebook, tmp_path / "single")
    for folder in ("snapshots", "checkpoints"):
        shutil.rmtree(path / folder, ignore_errors=True)
    with serve_explorer([path]) as url:
        panel = open_page(f"{url}#training").locator(".checkpoint-panel")
        expect(panel.locator(".lead")).to_contain_text("train.snapshots=true")
        expect(panel.get_by_label("Checkpoint")).to_be_disabled()


@pytest.mark.parametrize("page", ["training", "compare"])
def test_rows_are_named_by_input_words_on_request(open_page, explorer_url, page):
    sides = {"training": "source=X&target=Y", "compare": "a.text=X&a.target=Y&b.text=X&b.target=Y"}
    query = sides[page].replace("X", TEXT).replace("Y", TARGET).replace(" ", "+")
    window = open_page(f"{explorer_url}#{page}?{query}")
    matrices = {"training": 1, "compare": 3}[page]
    expect(window.locator(".head-matrix:visible")).to_have_count(matrices)
    window.get_by_role("button", name="input words").click()
    window.wait_for_url(re.compile("rows=input"))

    def first_row(shown):
        shown.locator(".head-matrix .main-canvas").last.focus()
        for key in ("ArrowDown", "ArrowRight"):
            shown.keyboard.press(key)
        description = shown.locator(".description")
        expect(description).to_have_text(re.compile("^“"))
        return re.match("“(.*?)”", description.inner_text())[1]

    assert first_row(window) == "<start>"
    window.get_by_role("button", name="output words").click()
    expect(window.get_by_role("button", name="output words")).to_have_attribute(
        "aria-pressed", "true"
    )
    assert first_row(window) != "<start>"
    assert "rows=" not in window.url
    assert window.errors == []


def wait_for_difference(window):
    """Wait until both heads and their difference are drawn."""
    expect(window.locator(".head-matrix:visible")).to_have_count(3)


def test_two_heads_are_compared_cell_by_cell(open_page, explorer_url, run):
    sides = "&".join(f"{side}.text={TEXT}&{side}.target={TARGET}&{side}.layer=0" for side in "ab")
    window = open_page(f"{explorer_url}#compare?{sides}&a.head=0&b.head=1".replace(" ", "+"))
    wait_for_difference(window)
    window.locator(".head-matrix .main-canvas").last.focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
        window.keyboard.press(key)
    trace = merge_subwords(trace_translation(run.model, run.tokenizers, TEXT, TARGET))
    cross = next(one for one in trace.maps if one.kind == "cross")
    description = window.locator(".compare-page .description").inner_text()
    shown = re.search(r"with weight ([\d.]+) in A and ([\d.]+) in B", description).groups()
    row, column = described_cell(description, trace)
    assert [float(number) for number in shown] == pytest.approx(
        cross.weights[:2, row, column], abs=0.006
    )
    assert window.errors == []


def described_cell(description, trace):
    """Return the row and column of the words that a description names."""
    query, key = re.findall("“(.*?)”", description)
    words = {
        side: [piece.strip("▁ ") for piece in tokens.pieces]
        for side, tokens in trace.tokens.items()
    }
    return words["target"].index(query), words["source"].index(key)


def test_heads_of_different_sizes_have_no_difference(open_page, explorer_url):
    link = f"{explorer_url}#compare?a.text={TEXT}&a.target={TARGET}&b.text=the+cat&b.target=le+chat"
    window = open_page(link.replace(" ", "+"))
    summary = window.locator(".compare-page .hint")
    expect(summary).to_contain_text("No difference can be shown: A has 7 × 6 cells")
    expect(window.locator(".head-matrix:visible")).to_have_count(2)
    window.get_by_label("Sentence").nth(1).fill(TEXT)
    window.get_by_label("Translation").nth(1).fill(TARGET)
    wait_for_difference(window)
    expect(summary).to_have_text("A and B are identical.")


def test_two_runs_are_compared(open_page, explorer_url):
    sides = "&".join(f"{side}.text={TEXT}&{side}.target={TARGET}&{side}.head=0" for side in "ab")
    window = open_page(f"{explorer_url}#compare?{sides}&a.run=tiny&b.run=tiny-2".replace(" ", "+"))
    wait_for_difference(window)
    expect(window.get_by_label("Run").nth(1)).to_have_value("tiny-2")
    expect(window.locator(".compare-page .hint")).to_have_text("A and B are identical.")


def test_removed_run_shows_an_error_that_names_it(
    open_page, serve_explorer, run_without_phrasebook, tmp_path
):
    path = shutil.copytree(run_without_phrasebook, tmp_path / "gone")
    with serve_explorer([path]) as url:
        window = open_page(f"{url}#translate")
        expect(window.get_by_label("Sentence")).to_be_visible()
        shutil.rmtree(path)
        window.get_by_label("Sentence").fill(TEXT)
        expect(window.locator(".status.error")).to_contain_text("gone")
        assert window.errors == [] or all("404" in error for error in window.errors)
