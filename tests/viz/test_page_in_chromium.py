"""The page as a person meets it: opened in Chromium without network, by mouse and by keyboard."""

import io
import re
from dataclasses import replace

import numpy as np
import pytest
from matplotlib import image

from regard.trace import TokenList, build_translation_trace, load_trace
from regard.viz.colour import cividis
from regard.viz.notebook import show
from regard.viz.page import render_page


def settle(window):
    """Wait until what was done is on the screen."""
    window.evaluate("() => new Promise((r) => requestAnimationFrame(() => setTimeout(r)))")


def said(window):
    settle(window)
    return window.locator(".sentence").inner_text()


def caption(window):
    settle(window)
    return window.locator(".caption").inner_text()


def seen(window, selector=".frame"):
    """What is on the screen there: rows × columns × (red, green, blue)."""
    part = window.locator(selector)
    pixels = image.imread(io.BytesIO(part.screenshot()))[..., :3]
    return np.rint(255 * pixels).astype(int), part.bounding_box()


def middles(window, weight, selector=".frame"):
    """Where cells of a weight are on the screen: the middles of patches of its colour."""
    pixels, box = seen(window, selector)
    alike = (abs(pixels - cividis(weight)).max(-1) <= 3)[:-60]  # not in the scale below
    rows = np.flatnonzero(alike.sum(1) > 20)
    across = np.array([np.flatnonzero(alike[row]).mean() for row in rows])
    found = []
    for part in np.split(np.arange(len(rows)), np.flatnonzero(abs(np.diff(across)) > 20) + 1):
        found.append((box["x"] + across[part].mean(), box["y"] + rows[part].mean()))
    return found


def test_nothing_is_fetched_and_nothing_could_be(opened, trace):
    window = opened(render_page(trace))
    assert window.errors == []
    assert [url for url in window.asked if not url.startswith("file:")] == []
    refused = window.evaluate(
        """() => new Promise((resolve) => {
            document.addEventListener("securitypolicyviolation", (event) =>
                resolve(event.effectiveDirective));
            fetch("https://example.org/").catch(() => {});
        })"""
    )
    assert refused == "connect-src"


def test_the_title_with_a_script_in_it_is_text(opened, trace):
    window = opened(render_page(trace))
    assert window.locator("h1").inner_text() == 'a <script>"cat"</script>'
    assert window.title() == 'a <script>"cat"</script>'


def test_words_with_markup_and_quotes_are_text(opened):
    evil = ["<script>window.hacked=1</script>", "\"'><img src=x onerror=hacked=1>", "&lt;"]
    trace = build_translation_trace(
        evil, evil, cross=[np.eye(3)[None]], title="</script><b>", model=evil[1]
    )
    window = opened(render_page(trace))
    for word in evil:
        window.keyboard.press("ArrowDown")
        assert f"“{word}” looks most at “{word}” (1.00)." in said(window)
    window.keyboard.press("l")
    assert window.evaluate("window.hacked") is None
    assert window.locator("img, b").count() == 0
    assert window.locator("h1").inner_text() == "</script><b>"


def test_pointing_at_a_cell_tells_its_weight(opened, trace):
    window = opened(render_page(trace))
    assert said(window) == "Point at a word or a cell; click to lock."
    cells = middles(window, 9 / 13)
    assert len(cells) == 4
    window.mouse.move(*cells[0])
    assert said(window).startswith("“<s>” looks at “The” with 0.69.")
    window.mouse.move(5, 5)
    assert said(window) == "Point at a word or a cell; click to lock."


def test_a_click_locks_until_the_next(opened, trace):
    window = opened(render_page(trace))
    cell = middles(window, 9 / 13)[0]
    window.mouse.click(*cell)
    locked = said(window)
    assert locked.endswith("Locked.")
    window.mouse.move(5, 5)
    assert said(window) == locked
    window.mouse.click(*cell)
    assert not said(window).endswith("Locked.")
    window.mouse.click(*cell)
    window.keyboard.press("Escape")
    assert "Locked" not in said(window)


def test_the_keyboard_reaches_tokens_layers_heads_and_tabs(opened, trace):
    window = opened(render_page(trace))
    assert caption(window) == "Cross · layer 0, head 0 · cross.0"
    for key in ("ArrowDown", "ArrowDown"):
        window.keyboard.press(key)
    assert said(window).startswith("“猫” looks most at “cat” (0.69)")
    window.keyboard.press("Shift+ArrowRight")
    assert caption(window) == "Cross · layer 0, head 1 · cross.0"
    assert said(window).startswith("“猫” looks most at “sit” (0.69)")  # the token is kept
    window.keyboard.press("ArrowRight")
    assert said(window).startswith("“猫” looks at “The” with 0.08.")
    window.keyboard.press("Shift+ArrowDown")
    window.keyboard.press("Shift+ArrowDown")
    assert (
        caption(window) == "Cross · layer 2, head 3 · decoder.layers.1.cross · call 1 · model.py:41"
    )
    window.keyboard.press("1")
    assert caption(window).startswith("Encoder · layer 0, head 1")
    assert window.locator("[aria-selected=true]").inner_text() == "Encoder"


def test_everything_is_reached_by_the_tab_key_and_named(opened, trace):
    window = opened(render_page(trace))
    names = []
    for _ in range(16):
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
    told = " ".join(filter(None, names))
    for wanted in ("PNG", "SVG", "Theme", "Cross", "Matrix", "Whole words", "Hide below"):
        assert wanted in told
    assert window.locator("[aria-live=polite]").inner_text() == said(window)


def test_a_thumbnail_opens_its_head(opened, trace):
    window = opened(render_page(trace))
    box = window.locator(".overview").bounding_box()
    window.mouse.click(box["x"] + 26 + 69 + 30, box["y"] + 22 + 69 + 30)
    assert caption(window) == "Cross · layer 1, head 1 · cross.1"
    window.keyboard.press("Shift+Tab")
    window.locator(".overview").focus()
    window.keyboard.press("ArrowUp")
    assert caption(window) == "Cross · layer 0, head 1 · cross.0"


def test_whole_words_and_folded_special_pieces(opened, trace):
    window = opened(render_page(trace))
    window.get_by_role("button", name="Whole words").click()
    for _ in range(3):
        window.keyboard.press("ArrowDown")
    assert said(window).startswith("“坐着” looks most at “sits” (0.77)")
    window.get_by_role("button", name="Fold special").click()
    window.keyboard.press("ArrowDown")
    assert said(window).startswith("“猫” looks most at “cat” (0.69)")


def test_what_a_reduced_look_cannot_do_is_said(opened, trace):
    window = opened(render_page(trace, "cross", -1))
    words = window.get_by_role("button", name="Whole words")
    assert words.is_disabled()
    assert words.get_attribute("title") == "needs whole weights, but this look was reduced"
    window.keyboard.press("ArrowDown")
    assert said(window).startswith("“<s>” looks most at “The” (0.69)")
    assert "The others share 0.23." in said(window)


def test_lines_show_where_a_word_looks(opened, trace):
    window = opened(render_page(trace))
    window.get_by_role("button", name="Lines").click()
    said(window)
    box = window.locator(".frame").bounding_box()
    before, _ = seen(window)
    window.mouse.move(box["x"] + box["width"] * 0.3, box["y"] + 30 + 30 * 1.5)
    assert said(window).startswith("“猫” looks most at “cat” (0.69)")
    after, _ = seen(window)
    assert (before != after).any()
    window.mouse.move(box["x"] + box["width"] * 0.7, box["y"] + 30 + 30 * 2.5)
    assert said(window).startswith("“sit” is looked at most by “坐” (0.69)")


def test_the_wheel_zooms_into_the_matrix(opened):
    weights = np.eye(60)[None]
    text = [f"w{n}" for n in range(60)]
    window = opened(render_page(build_translation_trace(text, text, cross=[weights])))
    box = window.locator(".frame").bounding_box()
    window.mouse.move(box["x"] + box["width"] * 0.42, box["y"] + box["height"] * 0.3)
    told = said(window)
    assert told.startswith("“w")
    small = (seen(window)[0] == cividis(1.0)).all(-1).sum()
    for _ in range(6):
        window.mouse.wheel(0, -100)
        settle(window)
    assert said(window) == told  # the same cell is under the pointer
    large = (seen(window)[0] == cividis(1.0)).all(-1).sum()
    assert large > 2 * small
    window.keyboard.press("0")
    said(window)
    assert abs(int((seen(window)[0] == cividis(1.0)).all(-1).sum()) - int(small)) < small / 3


def test_a_threshold_hides_weak_looks(opened, trace):
    window = opened(render_page(trace))
    weak = (seen(window)[0] == cividis(0.0)).all(-1).sum()
    window.locator("input[type=range]").fill("0.2")
    said(window)
    assert (seen(window)[0] == cividis(0.0)).all(-1).sum() > weak + 10_000


def test_the_theme_follows_the_reader_and_the_button(opened, trace):
    def lightness(window):
        return seen(window, "main")[0][:8].mean()

    assert lightness(opened(render_page(trace), color_scheme="light")) > 240
    window = opened(render_page(trace), color_scheme="dark")
    assert lightness(window) < 40
    window.get_by_role("button", name="Theme").click()
    said(window)
    assert lightness(window) > 240


def test_the_language_follows_the_reader_and_the_button(opened, trace):
    window = opened(render_page(trace), locale="zh-CN")
    assert window.get_by_role("tab").all_inner_texts() == ["编码器", "解码器", "交叉"]
    assert said(window) == "指向一个词或一个格子；点击可锁定。"
    window.get_by_role("button", name="English").click()
    assert said(window) == "Point at a word or a cell; click to lock."
    assert window.locator("html").get_attribute("lang") == "en"


@pytest.mark.parametrize("mode", ["m", "l"])
def test_the_view_is_saved_as_png_and_svg(opened, trace, tmp_path, mode):
    window = opened(render_page(trace))
    window.keyboard.press(mode)
    for kind in ("PNG", "SVG"):
        with window.expect_download() as waiting:
            window.get_by_role("button", name=f"Save the picture as {kind}").click()
        name = waiting.value.suggested_filename
        assert re.fullmatch(
            rf"a-script-cat-script-Cross-layer-0-head-0-cross-0\.{kind.lower()}", name
        )
        waiting.value.save_as(tmp_path / kind)
    assert image.imread(tmp_path / "PNG", format="png").shape[1] > 1000
    svg = (tmp_path / "SVG").read_text("utf-8")
    assert ">猫</text>" in svg and "&lt;script&gt;" in svg and "<script" not in svg
    gold = 5 if mode == "l" else 0  # dashed lines; in the matrix they are frames
    assert svg.count("<path") == (20 + gold if mode == "l" else 0)
    assert svg.count("dasharray") == gold


def test_the_trace_is_saved_as_it_came(opened, trace, tmp_path):
    trace = replace(trace, maps=trace.maps[:-1])
    window = opened(render_page(trace))
    with window.expect_download() as waiting:
        window.get_by_role("button", name="Save the trace as JSON").click()
    assert waiting.value.suggested_filename == "a-script-cat-script.json"
    waiting.value.save_as(tmp_path / "trace.json")
    saved = load_trace(tmp_path / "trace.json")
    assert (saved.title, saved.tokens, saved.gold) == (trace.title, trace.tokens, trace.gold)
    assert saved.maps[0].weights == pytest.approx(trace.maps[0].weights, abs=1e-4)


def test_a_trace_that_the_page_holds_in_part_is_not_saved(opened, trace):
    button = opened(render_page(trace)).get_by_role("button", name="Save the trace as JSON")
    assert button.is_disabled()
    assert "reduced" in button.get_attribute("title")


def test_right_to_left_and_chinese_words_are_named_whole(opened):
    source = TokenList(("Ġ", "ç", "Į«", "Ġcat"))
    trace = build_translation_trace(source, ["قطة", "سوداء"], cross=[np.full((1, 2, 4), 0.25)])
    window = opened(render_page(trace))
    window.keyboard.press("ArrowDown")
    told = said(window)
    assert "looks most at “▁” (0.25), “猫” (0.25) and" in told
    assert told.startswith("“\u2068قطة\u2069”")  # set apart, so that the sentence is not turned


def test_two_in_one_notebook_do_not_disturb_each_other(chromium, trace):
    context = chromium.new_context(locale="en-US")
    context.route("**/*", lambda route: route.abort())
    window = context.new_page()
    window.set_content(
        show(trace, "encoder")._repr_html_() + show(trace, "cross", 1, 1)._repr_html_()
    )
    frames = [window.frame_locator("iframe").nth(n) for n in (0, 1)]
    opened = ("Encoder · layer 0, head 0", "Cross · layer 1, head 1")
    for n, (frame, wanted) in enumerate(zip(frames, opened, strict=True)):
        window.locator("iframe").nth(n).scroll_into_view_if_needed()  # it loads when it is seen
        assert frame.locator(".caption").inner_text().startswith(wanted)
    frames[0].get_by_role("tab", name="Decoder").click()
    window.wait_for_timeout(100)
    assert frames[0].locator(".caption").inner_text().startswith("Decoder")
    assert frames[1].locator(".caption").inner_text().startswith("Cross")
    context.close()
