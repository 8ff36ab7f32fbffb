"""The playground as a person meets it: arrows and points are moved, and the numbers are right."""

import re

import numpy as np
import pytest

pytestmark = pytest.mark.browser
expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect


@pytest.fixture(autouse=True)
def patient():
    expect.set_options(timeout=60_000)  # a busy machine takes its time


@pytest.fixture
def window(open_page, explorer_url):
    window = open_page(f"{explorer_url}#playground", viewport={"width": 1280, "height": 1000})
    expect(cells(window, 2).first).to_be_visible()
    return window


def figure(text):
    return float(text.replace("−", "-").replace("-∞", "-inf"))


def cells(window, step):
    """The cells of one of the steps: scores, mask, softmax, context."""
    return window.locator(".grid").nth(step).locator("td[data-row]")


def grid(window, step):
    texts = cells(window, step).all_inner_texts()
    columns = window.locator(".grid").nth(step).locator("thead th").count()
    return np.array([figure(text) for text in texts]).reshape(-1, columns)


def tips(window, plane):
    return window.locator(".plane").nth(plane).locator(".tip")


def vectors(window, plane):
    """What the arrows of a plane say of themselves: queries, keys or values."""
    names = tips(window, plane).evaluate_all("all => all.map((tip) => tip.ariaLabel)")
    found = [re.search(r"\(([−\d.]+), ([−\d.]+)\)", name) for name in names]
    return np.array([[figure(number) for number in match.groups()] for match in found])


def softmax(scores):
    raised = np.exp(scores - scores.max(-1, keepdims=True))
    return raised / raised.sum(-1, keepdims=True)


def check(window, allowed=True, temperature=1.0):
    """Every number on the page is that of softmax attention, computed here."""
    for _ in range(100):  # the grids follow the arrows and settings, but not at once
        queries, keys, values = (vectors(window, plane) for plane in range(3))
        scores = queries @ keys.T / np.sqrt(2)
        seen = np.where(allowed, scores / temperature, -np.inf)
        if grid(window, 0) == pytest.approx(scores, abs=0.006) and grid(window, 1) == pytest.approx(
            seen, abs=0.006
        ):
            break
        window.wait_for_timeout(50)
    assert grid(window, 0) == pytest.approx(scores, abs=0.006)
    assert grid(window, 1) == pytest.approx(seen, abs=0.006)
    weights = softmax(seen)
    assert grid(window, 2) == pytest.approx(weights, abs=0.006)
    assert grid(window, 3) == pytest.approx(weights @ values, abs=0.006)
    return weights


def test_dragging_an_arrow_changes_the_numbers_and_they_are_right(window):
    before = check(window)
    box = tips(window, 1).nth(3).locator(".grip").bounding_box()
    window.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    window.mouse.down()
    window.mouse.move(box["x"] + 60, box["y"] - 70, steps=6)
    window.mouse.up()
    expect(tips(window, 1).nth(3)).not_to_have_attribute("aria-label", re.compile("−1.20, −0.90"))
    after = check(window)
    assert abs(after - before).max() > 0.05
    assert window.errors == []


def test_an_arrow_is_moved_by_keys_however_fast_they_are_pressed(window):
    tips(window, 0).first.evaluate(
        """tip => [["ArrowUp", false], ["ArrowLeft", true]].forEach(([key, shiftKey]) =>
            tip.dispatchEvent(new KeyboardEvent("keydown", { key, shiftKey, cancelable: true })))"""
    )
    expect(tips(window, 0).first).to_have_attribute("aria-label", re.compile(r"\(1.35, 0.25\)"))
    check(window)


def test_a_click_hides_a_cell_and_another_shows_it_again(window):
    allowed = np.ones((5, 5), bool)
    allowed[1, 2] = False
    cells(window, 1).nth(5 + 2).click()
    expect(cells(window, 1).nth(5 + 2)).to_have_text("−∞")
    check(window, allowed)
    assert window.get_by_label("Mask").input_value() == "cells"
    cells(window, 1).nth(5 + 2).click()
    expect(cells(window, 1).nth(5 + 2)).not_to_have_text("−∞")
    check(window)


def test_a_causal_mask_and_a_temperature(window):
    window.get_by_label("Mask").select_option("causal")
    window.get_by_label("Temperature").fill("0.5")
    expect(cells(window, 2).nth(1)).to_have_text("0.00")
    expect(cells(window, 1).nth(1)).to_have_text("−∞")
    check(window, np.tri(5, dtype=bool), 0.5)


def test_the_formula_is_that_of_the_cell_under_the_pointer(window):
    for query, key in ((0, 4), (3, 1)):
        cells(window, 2).nth(5 * query + key).hover()
        words = window.locator(".grid").first.locator("tbody th").all_inner_texts()
        told = window.locator(".formula")
        expect(told.locator(".formula-of")).to_contain_text(f"“{words[query]}” (q")
        lines = dict(
            zip(
                told.locator("dt").all_inner_texts(),
                told.locator("dd").all_text_contents(),
                strict=True,
            )
        )
        assert figure(lines["score"].split(" = ")[-1]) == grid(window, 0)[query, key]
        weight = figure(lines["weight"].split(" = ")[-1])
        assert weight == pytest.approx(grid(window, 2)[query, key], abs=0.0051)
        q, k = vectors(window, 0)[query], vectors(window, 1)[key]
        product = f"({q[0]:.2f}·{k[0]:.2f} + {q[1]:.2f}·{k[1]:.2f}) / 1.41"
        assert (
            re.sub(r"[()]", "", lines["score"]).find(re.sub(r"[()]", "", product.replace("-", "−")))
            > 0
        )


def test_the_grid_is_walked_through_by_keys(window):
    cells(window, 1).first.focus()
    for key in ("ArrowDown", "ArrowRight", "ArrowRight", "Space"):
        window.keyboard.press(key)
    expect(cells(window, 1).nth(5 + 2)).to_have_text("−∞")
    expect(window.locator(".formula-of")).to_contain_text("“train” (q₂) looks at “horse” (k₃)")


def test_other_words_and_a_link_to_them(window, open_page):
    window.get_by_label("Words").fill("one, two three")
    expect(window.locator(".grid").nth(2).locator("tbody th")).to_have_text(["one", "two", "three"])
    tips(window, 2).first.focus()
    window.keyboard.press("Shift+ArrowDown")
    expect(tips(window, 2).first).to_have_attribute("aria-label", re.compile(r"\(1.60, −0.05\)"))
    window.get_by_label("Score").select_option("cosine")
    expect(cells(window, 0).first).to_have_text("1.00")
    again = open_page(window.url)
    expect(cells(again, 0).first).to_have_text("1.00")
    assert vectors(again, 2).tolist() == vectors(window, 2).tolist()
    assert grid(again, 2).tolist() == grid(window, 2).tolist()


@pytest.mark.parametrize(
    ("score", "positions"),
    [("additive", "none"), ("bilinear", "rotary"), ("gaussian", "alibi"), ("boxcar", "sinusoidal")],
)
def test_other_scores_and_positions_end_in_weights_and_a_formula(window, score, positions):
    window.get_by_label("Score").select_option(score)
    window.get_by_label("Positions").select_option(positions)
    window.wait_for_load_state("networkidle")
    sums = grid(window, 2).sum(-1)
    assert all(abs(sums - 1) < 0.03) or (score == "boxcar" and set(sums.round()) <= {0.0, 1.0})
    said = window.locator(".formula dd").nth(1).text_content()
    assert figure(said.split(" = ")[-1]) == grid(window, 0)[0, 2]
    assert window.errors == []


def samples(window):
    names = window.locator(".sample").evaluate_all("all => all.map((point) => point.ariaLabel)")
    found = [re.match(r"Point at ([−\d.]+), ([−\d.]+);", name) for name in names]
    return np.array([[figure(number) for number in match.groups()] for match in found])


def predicted(points, x, bandwidth):
    heights = np.exp(-0.5 * ((points[:, 0] - x) / bandwidth) ** 2)
    return heights @ points[:, 1] / heights.sum()


def test_nadaraya_watson_follows_its_points_and_its_bandwidth(open_page, explorer_url):
    window = open_page(f"{explorer_url}#playground?panel=regression&x=4")
    said = window.locator(".formula-line")
    expect(said).to_contain_text("At x = 4.00")
    assert figure(said.inner_text().split("= ")[-1]) == pytest.approx(
        predicted(samples(window), 4, 0.6), abs=0.006
    )
    before = window.locator(".curve").get_attribute("d")
    box = window.locator(".sample").nth(4).bounding_box()
    window.mouse.move(box["x"] + 8, box["y"] + 8)
    window.mouse.down()
    window.mouse.move(box["x"] + 8, box["y"] - 120, steps=5)
    window.mouse.up()
    expect(window.locator(".curve")).not_to_have_attribute("d", before)
    window.get_by_label("Bandwidth").fill("1.5")
    expect(window.get_by_label("Bandwidth").locator("xpath=../output")).to_have_text("1.50")
    points = samples(window)
    x = float(re.search(r"x=([\d.]+)", window.url)[1])
    wanted = f"{predicted(points, x, 1.5):.2f}".replace("-", "−")
    expect(said).to_have_text(re.compile(f"= {wanted}$"))
    assert window.locator(".bars rect").count() == len(points)


def test_points_are_added_and_removed_by_pointer_and_keys(open_page, explorer_url):
    window = open_page(f"{explorer_url}#playground?panel=regression")
    expect(window.locator(".sample")).to_have_count(10)
    paper = window.locator(".regression").bounding_box()
    window.mouse.dblclick(paper["x"] + paper["width"] * 0.5, paper["y"] + 30)
    expect(window.locator(".sample")).to_have_count(11)
    window.locator(".sample").last.dblclick()
    expect(window.locator(".sample")).to_have_count(10)
    window.locator(".sample").first.focus()
    window.keyboard.press("+")
    expect(window.locator(".sample")).to_have_count(11)
    window.locator(".sample").first.focus()
    window.keyboard.press("Delete")
    expect(window.locator(".sample")).to_have_count(10)
