"""Attention over an image in the one-file page: hovering a patch, the opacity slider, tabs."""

import io
from dataclasses import replace

import numpy as np
import pytest
from matplotlib import image

from regard.trace import AttentionMap, PatchImage, TokenList, Trace
from regard.viz.page import render_page

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

pytestmark = pytest.mark.browser

RED = (200, 30, 40)


def vision_trace():
    """A class token and 2 × 2 patches of a red image; each patch attends to the next."""
    tokens = TokenList(("[CLS]", "a", "b", "c", "d"), special=(0,))
    weights = np.roll(np.eye(5), 1, axis=1)[None]
    m = AttentionMap(name="layer", kind="self", queries="text", keys="text", weights=weights)
    pixels = np.full((8, 8, 3), RED, dtype=np.uint8)
    return Trace(tokens={"text": tokens}, maps=(m,), images={"text": PatchImage(pixels, (2, 2), 1)})


def wait_for_frame(window):
    window.evaluate("() => new Promise((r) => requestAnimationFrame(() => setTimeout(r)))")


def screenshot(window):
    wait_for_frame(window)
    pixels = image.imread(io.BytesIO(window.locator(".canvas-frame").screenshot()))[..., :3]
    return np.rint(255 * pixels).astype(int)


def set_opacity(window, value):
    wait_for_frame(window)  # until then the slider of the view before is shown
    window.locator("input[type=range]:visible").fill(value)


def test_image_is_shown_in_its_colours_without_weights(open_page):
    window = open_page(render_page(vision_trace()))
    window.get_by_role("button", name="Image", exact=True).click()
    set_opacity(window, "0")
    assert (screenshot(window) == RED).all(-1).sum() > 5000
    set_opacity(window, "1")
    assert not (screenshot(window) == RED).all(-1).any()
    assert window.errors == []


def test_hovering_a_patch_describes_where_it_attends(open_page):
    window = open_page(render_page(vision_trace()))
    window.keyboard.press("i")
    set_opacity(window, "0")
    rows, columns = np.nonzero((screenshot(window) == RED).all(-1))
    box = window.locator(".canvas-frame").bounding_box()
    top, left, side = rows.min(), columns.min(), rows.max() - rows.min()
    for token, next_token, (x, y) in (("b", "c", (0.75, 0.25)), ("c", "d", (0.25, 0.75))):
        window.mouse.move(box["x"] + left + x * side, box["y"] + top + y * side)
        wait_for_frame(window)
        text = window.locator(".description").inner_text()
        assert text.startswith(f"“{token}” attends most to “{next_token}” (1.00)")


def test_attention_to_other_tokens_has_no_image_view(open_page):
    window = open_page(render_page(replace(vision_trace(), images={})))
    assert window.get_by_role("button", name="Image", exact=True).count() == 0
    window.keyboard.press("i")
    wait_for_frame(window)
    assert window.get_by_role("button", name="Matrix").get_attribute("aria-pressed") == "true"
    assert window.errors == []
