"""The one-file page in Chromium without network: mouse, keyboard, downloads, themes, languages."""

import io
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib import image

from regard.analysis import select_head
from regard.trace import TokenList, build_translation_trace, load_trace
from regard.viz.colour import cividis
from regard.viz.notebook import TraceView
from regard.viz.page import render_page

expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect

pytestmark = pytest.mark.browser

NO_SELECTION = (
    "A row is a word being written, a column a word being read; the brighter a cell, the larger "
    "its weight. Point at a token or a cell; click to lock."
)


def wait_for_frame(window):
    window.evaluate("() => new Promise((r) => requestAnimationFrame(() => setTimeout(r)))")


def description(window):
    wait_for_frame(window)
    return window.locator(".description").inner_text()


def caption(window):
    wait_for_frame(window)
    return window.locator(".caption").inner_text()


def screenshot(window, selector=".canvas-frame"):
    """Return the pixels of an element (rows × columns × RGB) and its bounding box."""
    element = window.locator(selector)
    pixels = image.imread(io.BytesIO(element.screenshot()))[..., :3]
    return np.rint(255 * pixels).astype(int), element.bounding_box()


def count_pixels(window, weight):
    """Return the number of pixels that have exactly the colour of a weight."""
    return int((screenshot(window)[0] == cividis(weight)).all(-1).sum())


def cell_centres(window, weight):
    """Return the centres of the cells of a weight, found by its colour."""
    pixels, box = screenshot(window)
    matches = (abs(pixels - cividis(weight)).max(-1) <= 3)[:-60]  # without the colour scale
    rows = np.flatnonzero(matches.sum(1) > 20)
    columns = np.array([np.flatnonzero(matches[row]).mean() for row in rows])
    centres = []
    for cell in np.split(np.arange(len(rows)), np.flatnonzero(abs(np.diff(columns)) > 20) + 1):
        centres.append((box["x"] + columns[cell].mean(), box["y"] + rows[cell].mean()))
    return centres


def test_page_fetches_nothing_and_its_policy_blocks_connections(open_page, trace):
    window = open_page(render_page(trace, "cross", 0, 0))
    assert window.errors == []
    assert [url for url in window.requests if not url.startswith("file:")] == []
    blocked = window.evaluate(
        """() => new Promise((resolve) => {
            document.addEventListener("securitypolicyviolation", (event) =>
                resolve(event.effectiveDirective));
            fetch("https://example.org/").catch(() => {});
        })"""
    )
    assert blocked == "connect-src"


def test_title_with_markup_is_shown_as_text(open_page, trace):
    window = open_page(render_page(trace, "cross", 0, 0))
    assert window.locator("h1").inner_text() == 'a <script>"cat"</script>'
    assert window.title() == 'a <script>"cat"</script>'


def test_tokens_with_markup_and_quotes_are_shown_as_text(open_page):
    tokens = ["<script>window.hacked=1</script>", "\"'><img src=x onerror=hacked=1>", "&lt;"]
    trace = build_translation_trace(
        tokens, tokens, cross=[np.eye(3)[None]], title="</script><b>", model=tokens[1]
    )
    window = open_page(render_page(trace, "cross", 0, 0))
    for token in tokens:
        window.keyboard.press("ArrowDown")
        assert f"“{token}” attends most to “{token}” (1.00)." in description(window)
    window.keyboard.press("l")
    assert window.evaluate("window.hacked") is None
    assert window.locator("img, b").count() == 0
    assert window.locator("h1").inner_text() == "</script><b>"


def test_hovering_a_cell_describes_its_weight(open_page, trace):
    window = open_page(render_page(trace, "cross", 0, 0))
    assert description(window) == NO_SELECTION
    cells = cell_centres(window, 9 / 13)
    assert len(cells) == 4
    window.mouse.move(*cells[0])
    assert description(window).startswith("“猫” attends to “The” with weight 0.69.")
    window.mouse.move(5, 5)
    assert description(window) == NO_SELECTION


def test_click_locks_the_selection_until_the_next_click_or_escape(open_page, trace):
    window = open_page(render_page(trace, "cross", 0, 0))
    cell = cell_centres(window, 9 / 13)[0]
    window.mouse.click(*cell)
    locked = description(window)
    assert locked.endswith("Locked.")
    window.mouse.move(5, 5)
    assert description(window) == locked
    window.mouse.click(*cell)
    assert not description(window).endswith("Locked.")
    window.mouse.click(*cell)
    window.keyboard.press("Escape")
    assert "Locked" not in description(window)


def test_keyboard_reaches_tokens_layers_heads_and_tabs(open_page, trace):
    window = open_page(render_page(trace, "cross", 0, 0))
    assert caption(window) == "Cross-attention · layer 0, head 0 · cross.0"
    for key in ("ArrowDown", "ArrowDown"):
        window.keyboard.press(key)
    assert description(window).startswith("“坐” attends most to “cat” (0.69)")
    window.keyboard.press("Shift+ArrowRight")
    assert caption(window) == "Cross-attention · layer 0, head 1 · cross.0"
    assert description(window).startswith("“坐” attends most to “sit” (0.69)")  # the token is kept
    window.keyboard.press("ArrowRight")
    assert description(window).startswith("“坐” attends to “The” with weight 0.08.")
    window.keyboard.press("Shift+ArrowDown")
    window.keyboard.press("Shift+ArrowDown")
    assert caption(window) == (
        "Cross-attention · layer 2, head 3 · decoder.layers.1.cross · call 1 · model.py:41"
    )
    window.keyboard.press("1")
    assert caption(window).startswith("Encoder · layer 0, head 1")
    assert window.locator("[aria-selected=true]").inner_text() == "Encoder"


def test_every_control_is_reached_with_tab_and_has_a_name(open_page, trace):
    window = open_page(render_page(trace, "cross", 0, 0))
    names = []
    for _ in range(17):
        window.keyboard.press("Tab")
        names.append(
            window.evaluate(
                """() => {
                    const focused = document.activeElement;
                    const name = focused.getAttribute("aria-label") || focused.innerText;
                    return name || focused.closest("label")?.innerText;
                }"""
            )
        )
    reached = " ".join(filter(None, names))
    for name in ("PNG", "SVG", "Theme", "Cross", "Matrix", "Merge subwords", "Hide below"):
        assert name in reached
    assert window.locator("[aria-live=polite]").inner_text() == description(window)


@pytest.mark.parametrize(
    ("locale", "reason"),
    [
        ("en-US", "highest alignment score of 2 heads ({:.2f})"),
        ("zh-CN", "2 个头中对齐得分最高（{:.2f}）"),
    ],
)
def test_caption_explains_the_head_that_the_page_opens_at(open_page, trace, locale, reason):
    trace = replace(trace, maps=trace.maps[2:3])
    chosen = select_head(trace)
    reason = reason.format(chosen.value)
    window = open_page(render_page(trace), locale=locale)
    assert reason in caption(window)
    window.keyboard.press("Shift+ArrowLeft" if chosen.head else "Shift+ArrowRight")
    wait_for_frame(window)
    assert reason not in caption(window)


def test_click_on_a_thumbnail_selects_its_head(open_page, trace):
    window = open_page(render_page(trace, "cross", 0, 0))
    box = window.locator(".overview-canvas").bounding_box()
    pitch = (box["width"] - 26) / 2  # of two heads
    window.mouse.click(box["x"] + 26 + 1.5 * pitch, box["y"] + 22 + 1.5 * pitch)
    assert caption(window) == "Cross-attention · layer 1, head 1 · cross.1"
    window.keyboard.press("Shift+Tab")
    window.locator(".overview-canvas").focus()
    window.keyboard.press("ArrowUp")
    assert caption(window) == "Cross-attention · layer 0, head 1 · cross.0"


def test_subwords_are_merged_and_special_tokens_collapsed(open_page, trace):
    window = open_page(render_page(trace, "cross", 0, 0))
    window.get_by_role("button", name="Merge subwords").click()
    for _ in range(3):
        window.keyboard.press("ArrowDown")
    assert description(window).startswith("“</s>” attends most to “sits” (0.77)")
    window.get_by_role("button", name="Collapse special tokens").click()
    window.keyboard.press("ArrowDown")
    assert description(window).startswith("“猫” attends most to “The” (0.69)")


def test_switch_names_rows_by_input_words(open_page, trace):
    window = open_page(render_page(trace, "cross", 0, 0), locale="en-US")
    switch = window.get_by_role("group", name="Name rows by the words")
    assert switch.get_by_role("button", name="output words").get_attribute("aria-pressed") == "true"
    window.keyboard.press("ArrowDown")
    assert description(window).startswith("“猫” attends most to “The” (0.69)")
    switch.get_by_role("button", name="input words").click()
    assert description(window).startswith("“<s>” attends most to “The” (0.69)")  # still selected
    window.get_by_role("tab", name="Encoder").click()
    expect(window.locator(".rows-field")).to_be_hidden()
    window = open_page(render_page(trace, "cross", 0, 0, rows="input"), locale="zh-CN")
    assert window.get_by_role("button", name="输入词").get_attribute("aria-pressed") == "true"


def test_summarised_map_disables_merging_and_describes_the_remainder(open_page, trace):
    window = open_page(render_page(trace, "cross", -1))
    merge = window.get_by_role("button", name="Merge subwords")
    assert merge.is_disabled()
    assert merge.get_attribute("title") == "needs all weights, but this map holds only a summary"
    window.keyboard.press("ArrowDown")
    assert description(window).startswith("“猫” attends most to “The” (0.69)")
    assert "The other keys share 0.23." in description(window)


def test_lines_view_highlights_the_hovered_token(open_page, trace):
    window = open_page(render_page(trace, "cross", 0, 0))
    window.get_by_role("button", name="Lines").click()
    wait_for_frame(window)
    box = window.locator(".canvas-frame").bounding_box()
    before, _ = screenshot(window)
    window.mouse.move(box["x"] + box["width"] * 0.3, box["y"] + 30 + 30 * 1.5)
    assert description(window).startswith("“坐” attends most to “cat” (0.69)")
    after, _ = screenshot(window)
    assert (before != after).any()
    window.mouse.move(box["x"] + box["width"] * 0.7, box["y"] + 30 + 30 * 2.5)
    assert description(window).startswith("“sit” is attended to most by “着” (0.69)")


def test_wheel_zooms_around_the_pointer_and_0_resets(open_page):
    weights = np.eye(60)[None]
    tokens = [f"w{n}" for n in range(60)]
    window = open_page(render_page(build_translation_trace(tokens, tokens, cross=[weights])))
    box = window.locator(".canvas-frame").bounding_box()
    window.mouse.move(box["x"] + box["width"] * 0.42, box["y"] + box["height"] * 0.3)
    hovered = description(window)
    assert hovered.startswith("“w")
    small = count_pixels(window, 1.0)
    for _ in range(6):
        window.mouse.wheel(0, -100)
        wait_for_frame(window)
    assert description(window) == hovered  # the same cell is under the pointer
    assert count_pixels(window, 1.0) > 2 * small
    window.keyboard.press("0")
    wait_for_frame(window)
    assert abs(count_pixels(window, 1.0) - small) < small / 3


def test_threshold_hides_small_weights(open_page, trace):
    window = open_page(render_page(trace, "cross", 0, 0))
    before = count_pixels(window, 0.0)
    window.locator("input[type=range]:visible").fill("0.2")
    wait_for_frame(window)
    assert count_pixels(window, 0.0) > before + 10_000


def test_theme_follows_the_system_and_the_button(open_page, trace):
    def lightness(window):
        return screenshot(window, "main")[0][:8].mean()

    assert lightness(open_page(render_page(trace, "cross", 0, 0), color_scheme="light")) > 240
    window = open_page(render_page(trace, "cross", 0, 0), color_scheme="dark")
    assert lightness(window) < 40
    window.get_by_role("button", name="Theme").click()
    wait_for_frame(window)
    assert lightness(window) > 240


def test_page_is_printed_in_the_light_theme_with_its_whole_matrix(open_page, trace):
    window = open_page(render_page(trace, "cross", 0, 0), color_scheme="dark")
    width, height = window.evaluate(
        "(({ width, height }) => [width, height])(document.querySelector('.main-canvas'))"
    )
    window.evaluate("dispatchEvent(new Event('beforeprint'))")
    window.emulate_media(media="print")
    window.set_viewport_size({"width": 700, "height": 1000})
    boxes = window.locator(".canvas-frame, .main-canvas").evaluate_all(
        "all => all.map((element) => element.getBoundingClientRect().toJSON())"
    )
    frame, canvas = ([box[side] for side in ("x", "y", "width", "height")] for box in boxes)
    assert frame == canvas and frame[0] + frame[2] <= 700
    assert frame[2] / frame[3] == pytest.approx(width / height, rel=0.02)
    pixels, _ = screenshot(window, "main")
    assert pixels[:8].mean() > 240
    assert not window.locator(".view-options, .actions").first.is_visible()
    window.evaluate("dispatchEvent(new Event('afterprint'))")
    assert window.evaluate("document.documentElement.dataset.theme") is None


def test_language_follows_the_browser_and_the_button(open_page, trace):
    window = open_page(render_page(trace, "cross", 0, 0), locale="zh-CN")
    assert window.get_by_role("tab").all_inner_texts() == ["编码器", "解码器", "交叉注意力"]
    assert description(window).endswith("格子越亮，权重越大。将指针移到词元或格子上；点击可锁定。")
    window.get_by_role("button", name="English").click()
    assert description(window) == NO_SELECTION
    assert window.locator("html").get_attribute("lang") == "en"


@pytest.mark.parametrize("viewport", [(1366, 768), (390, 844)], ids=["laptop", "phone"])
@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_page_never_scrolls_sideways(open_page, trace, viewport, locale):
    width, height = viewport
    window = open_page(
        render_page(trace, "cross", 0, 0),
        viewport={"width": width, "height": height},
        locale=locale,
    )
    assert window.evaluate("document.documentElement.scrollWidth") <= width
    assert window.locator(".canvas-frame").bounding_box()["height"] >= 300


def test_head_that_a_page_opens_at_and_its_matrix_are_on_the_first_screen_of_a_phone(open_page):
    layers = np.eye(4)[None, None].repeat(12, 0).repeat(12, 1)
    trace = build_translation_trace("abcd", "efgh", cross=list(layers))
    window = open_page(render_page(trace, "cross", 9, 5), viewport={"width": 390, "height": 844})
    wait_for_frame(window)
    top, height = window.evaluate(
        """() => {
            const { scrollTop, clientHeight } = document.querySelector(".overview-scroll");
            return [scrollTop, clientHeight];
        }"""
    )
    pitch = (390 - 40 - 26) // 12
    assert top <= 22 + 9 * pitch and 22 + 10 * pitch - 5 <= top + height
    matrix, description, options = (
        window.locator(selector).bounding_box()
        for selector in (".canvas-frame", ".description", ".view-options")
    )
    assert matrix["y"] + matrix["height"] <= 844
    assert description["y"] + description["height"] <= options["y"]


@pytest.mark.parametrize("width", [390, 560, 900])
def test_notes_below_a_matrix_are_inside_the_frame(open_page, trace, width):
    window = open_page(render_page(trace, "cross", 2, 0), viewport={"width": width, "height": 700})
    window.get_by_role("button", name="Auto-scale colours").click()
    wait_for_frame(window)
    with window.expect_download() as download:
        window.get_by_role("button", name="Save image as SVG").click()
    ends = window.evaluate(
        """(svg) => {
            const { documentElement } = new DOMParser().parseFromString(svg, "image/svg+xml");
            document.body.append(documentElement);
            const notes = [...documentElement.querySelectorAll("text")]
                .filter((text) => /scaled to|outlined|are exact/.test(text.textContent));
            return notes.map((text) => text.getBBox().x + text.getBBox().width);
        }""",
        Path(download.value.path()).read_text("utf-8"),
    )
    assert 1 <= len(ends) <= 3
    assert max(ends) <= window.locator(".canvas-frame").bounding_box()["width"]


@pytest.mark.parametrize("mode", ["m", "l"])
def test_view_is_saved_as_png_and_svg(open_page, trace, tmp_path, mode):
    window = open_page(render_page(trace, "cross", 0, 0))
    window.keyboard.press(mode)
    for kind in ("PNG", "SVG"):
        with window.expect_download() as download:
            window.get_by_role("button", name=f"Save image as {kind}").click()
        name = download.value.suggested_filename
        stem = "a-script-cat-script-Cross-attention-layer-0-head-0-cross-0"
        assert re.fullmatch(rf"{stem}\.{kind.lower()}", name)
        download.value.save_as(tmp_path / kind)
    assert image.imread(tmp_path / "PNG", format="png").shape[1] > 1000
    svg = (tmp_path / "SVG").read_text("utf-8")
    assert ">猫</text>" in svg and "&lt;script&gt;" in svg and "<script" not in svg
    gold = 5 if mode == "l" else 0  # dashed lines; in the matrix, gold cells are outlined
    assert svg.count("<path") == (20 + gold if mode == "l" else 0)
    assert svg.count("dasharray") == gold


def test_trace_is_saved_unchanged_as_json(open_page, trace, tmp_path):
    trace = replace(trace, maps=trace.maps[:-1])
    window = open_page(render_page(trace, "cross", 0, 0))
    with window.expect_download() as download:
        window.get_by_role("button", name="Save trace as JSON").click()
    assert download.value.suggested_filename == "a-script-cat-script.json"
    download.value.save_as(tmp_path / "trace.json")
    saved = load_trace(tmp_path / "trace.json")
    assert (saved.title, saved.tokens, saved.gold) == (trace.title, trace.tokens, trace.gold)
    assert saved.maps[0].weights == pytest.approx(trace.maps[0].weights, abs=1e-4)


def test_summarised_trace_cannot_be_saved_as_json(open_page, trace):
    button = open_page(render_page(trace, "cross", 0, 0)).get_by_role(
        "button", name="Save trace as JSON"
    )
    assert button.is_disabled()
    assert "summarised" in button.get_attribute("title")


def test_right_to_left_and_byte_level_tokens_are_described(open_page):
    source = TokenList(("Ġ", "ç", "Į«", "Ġcat"))
    trace = build_translation_trace(source, ["قطة", "سوداء"], cross=[np.full((1, 2, 4), 0.25)])
    window = open_page(render_page(trace, "cross", 0, 0))
    window.keyboard.press("ArrowDown")
    text = description(window)
    assert "attends most to “▁” (0.25), “猫” (0.25) and" in text
    assert text.startswith("“\u2068قطة\u2069”")  # isolated, so that the sentence is not reordered


def test_two_viewers_in_one_notebook_are_independent(chromium, trace):
    context = chromium.new_context(locale="en-US")
    context.route("**/*", lambda route: route.abort())
    window = context.new_page()
    window.set_content(
        TraceView(trace, "encoder")._repr_html_() + TraceView(trace, "cross", 1, 1)._repr_html_()
    )
    frames = [window.frame_locator("iframe").nth(n) for n in (0, 1)]
    captions = ("Encoder · layer 0, head 0", "Cross-attention · layer 1, head 1")
    for n, (frame, expected) in enumerate(zip(frames, captions, strict=True)):
        window.locator("iframe").nth(n).scroll_into_view_if_needed()  # it loads lazily
        expect(frame.locator(".caption")).to_have_text(re.compile(f"^{expected}"))
    # by keyboard: Chromium may route a click to where the frame was before the page scrolled
    frames[0].get_by_role("tab", name="Decoder").press("Enter")
    expect(frames[0].locator(".caption")).to_have_text(re.compile("^Decoder"))
    expect(frames[1].locator(".caption")).to_have_text(re.compile("^Cross-attention"))
    context.close()
