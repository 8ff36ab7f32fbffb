"""The explorer's playground in Chromium: vectors and points move, and the numbers follow."""

import re

import numpy as np
import pytest

expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect

pytestmark = pytest.mark.browser

SCORES, MASKED_SCORES, WEIGHTS, CONTEXT = range(4)  # order of the tables
QUERIES, KEYS, VALUES = range(3)  # order of the planes


@pytest.fixture(autouse=True)
def long_timeout():
    expect.set_options(timeout=60_000)  # the machine may be busy


@pytest.fixture
def window(open_page, explorer_url):
    window = open_page(f"{explorer_url}#playground", viewport={"width": 1280, "height": 1000})
    expect(cells(window, WEIGHTS).first).to_be_visible()
    return window


def to_number(text):
    return float(text.replace("−", "-").replace("-∞", "-inf"))


def cells(window, table):
    return window.locator(".matrix-table").nth(table).locator("td[data-row]")


def matrix(window, table):
    """Return the numbers of a table."""
    texts = cells(window, table).all_inner_texts()
    columns = window.locator(".matrix-table").nth(table).locator("thead th").count()
    return np.array([to_number(text) for text in texts]).reshape(-1, columns)


def vector_elements(window, plane):
    return window.locator(".vector-plane").nth(plane).locator(".vector")


def vectors(window, plane):
    """Return the vectors of a plane, read from their accessible names."""
    names = vector_elements(window, plane).evaluate_all("all => all.map((one) => one.ariaLabel)")
    matches = [re.search(r"\(([−\d.]+), ([−\d.]+)\)", name) for name in names]
    return np.array([[to_number(text) for text in match.groups()] for match in matches])


def softmax(scores):
    exponentials = np.exp(scores - scores.max(-1, keepdims=True))
    return exponentials / exponentials.sum(-1, keepdims=True)


def check_numbers(window, mask=True, temperature=1.0):
    """Compare all tables with scaled dot-product attention computed here; return the weights."""
    for _ in range(100):  # the tables follow the arrows and settings with a delay
        queries, keys, values = (vectors(window, plane) for plane in range(3))
        scores = queries @ keys.T / np.sqrt(2)
        masked = np.where(mask, scores / temperature, -np.inf)
        expected = [pytest.approx(scores, abs=0.006), pytest.approx(masked, abs=0.006)]
        if [matrix(window, SCORES), matrix(window, MASKED_SCORES)] == expected:
            break
        window.wait_for_timeout(50)
    assert matrix(window, SCORES) == pytest.approx(scores, abs=0.006)
    assert matrix(window, MASKED_SCORES) == pytest.approx(masked, abs=0.006)
    weights = softmax(masked)
    assert matrix(window, WEIGHTS) == pytest.approx(weights, abs=0.006)
    assert matrix(window, CONTEXT) == pytest.approx(weights @ values, abs=0.006)
    return weights


def test_dragging_a_vector_updates_all_numbers(window):
    before = check_numbers(window)
    key = vector_elements(window, KEYS).nth(3)
    box = key.locator(".handle").bounding_box()
    window.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    window.mouse.down()
    window.mouse.move(box["x"] + 60, box["y"] - 70, steps=6)
    window.mouse.up()
    expect(key).not_to_have_attribute("aria-label", re.compile("−1.20, −0.90"))
    after = check_numbers(window)
    assert abs(after - before).max() > 0.05
    assert window.errors == []


def test_rapid_key_presses_all_move_the_vector(window):
    query = vector_elements(window, QUERIES).first
    query.evaluate(
        """one => [["ArrowUp", false], ["ArrowLeft", true]].forEach(([key, shiftKey]) =>
            one.dispatchEvent(new KeyboardEvent("keydown", { key, shiftKey, cancelable: true })))"""
    )
    expect(query).to_have_attribute("aria-label", re.compile(r"\(1.35, 0.25\)"))
    check_numbers(window)


def test_click_masks_a_cell_and_a_second_click_unmasks_it(window):
    mask = np.ones((5, 5), bool)
    mask[1, 2] = False
    cell = cells(window, MASKED_SCORES).nth(5 + 2)
    cell.click()
    expect(cell).to_have_text("−∞")
    check_numbers(window, mask)
    assert window.get_by_label("Mask").input_value() == "cells"
    cell.click()
    expect(cell).not_to_have_text("−∞")
    check_numbers(window)


def test_causal_mask_and_temperature_are_applied(window):
    window.get_by_label("Mask").select_option("causal")
    window.get_by_label("Temperature").fill("0.5")
    expect(cells(window, WEIGHTS).nth(1)).to_have_text("0.00")
    expect(cells(window, MASKED_SCORES).nth(1)).to_have_text("−∞")
    check_numbers(window, np.tri(5, dtype=bool), 0.5)


def test_formula_is_that_of_the_hovered_cell(window):
    for query, key in ((0, 4), (3, 1)):
        cells(window, WEIGHTS).nth(5 * query + key).hover()
        words = window.locator(".matrix-table").first.locator("tbody th").all_inner_texts()
        formula = window.locator(".formula")
        expect(formula.locator(".formula-title")).to_contain_text(f"“{words[query]}” (q")
        steps = formula.locator("dt").all_inner_texts()
        lines = dict(zip(steps, formula.locator("dd").all_text_contents(), strict=True))
        score = to_number(lines["score"].split(" = ")[-1])
        assert score == matrix(window, SCORES)[query, key]
        weight = to_number(lines["weight"].split(" = ")[-1])
        assert weight == pytest.approx(matrix(window, WEIGHTS)[query, key], abs=0.0051)
        q, k = vectors(window, QUERIES)[query], vectors(window, KEYS)[key]
        product = f"{q[0]:.2f}·{k[0]:.2f} + {q[1]:.2f}·{k[1]:.2f} / 1.41".replace("-", "−")
        assert product in re.sub(r"[()]", "", lines["score"])


def test_arrow_keys_move_through_the_table_and_space_masks(window):
    cells(window, MASKED_SCORES).first.focus()
    for key in ("ArrowDown", "ArrowRight", "ArrowRight", "Space"):
        window.keyboard.press(key)
    expect(cells(window, MASKED_SCORES).nth(5 + 2)).to_have_text("−∞")
    title = window.locator(".formula-title")
    expect(title).to_contain_text("“train” (q₂) attends to “horse” (k₃)")


def test_link_restores_words_vectors_and_score(window, open_page):
    window.get_by_label("Words").fill("one, two three")
    rows = window.locator(".matrix-table").nth(WEIGHTS).locator("tbody th")
    expect(rows).to_have_text(["one", "two", "three"])
    value = vector_elements(window, VALUES).first
    value.focus()
    window.keyboard.press("Shift+ArrowDown")
    expect(value).to_have_attribute("aria-label", re.compile(r"\(1.60, −0.05\)"))
    window.get_by_label("Score").select_option("cosine")
    expect(cells(window, SCORES).first).to_have_text("1.00")
    other = open_page(window.url)
    expect(cells(other, SCORES).first).to_have_text("1.00")
    assert vectors(other, VALUES).tolist() == vectors(window, VALUES).tolist()
    assert matrix(other, WEIGHTS).tolist() == matrix(window, WEIGHTS).tolist()


@pytest.mark.parametrize(
    ("score", "positions"),
    [("additive", "none"), ("bilinear", "rotary"), ("gaussian", "alibi"), ("boxcar", "sinusoidal")],
)
def test_every_score_and_encoding_gives_weights_and_a_formula(window, score, positions):
    window.get_by_label("Score").select_option(score)
    window.get_by_label("Positional encoding").select_option(positions)
    window.wait_for_load_state("networkidle")
    sums = matrix(window, WEIGHTS).sum(-1)
    assert all(abs(sums - 1) < 0.03) or (score == "boxcar" and set(sums.round()) <= {0.0, 1.0})
    line = window.locator(".formula dd").nth(1).text_content()
    assert to_number(line.split(" = ")[-1]) == matrix(window, SCORES)[0, 2]
    assert window.errors == []


def data_points(window):
    names = window.locator(".data-point").evaluate_all("all => all.map((one) => one.ariaLabel)")
    matches = [re.match(r"Point ([−\d.]+), ([−\d.]+);", name) for name in names]
    return np.array([[to_number(text) for text in match.groups()] for match in matches])


def predict(points, x, bandwidth):
    """Nadaraya-Watson with a Gaussian kernel."""
    kernel = np.exp(-0.5 * ((points[:, 0] - x) / bandwidth) ** 2)
    return kernel @ points[:, 1] / kernel.sum()


def test_regression_follows_points_and_bandwidth(open_page, explorer_url):
    window = open_page(f"{explorer_url}#playground?panel=regression&x=4")
    text = window.locator(".prediction-text")
    expect(text).to_contain_text("At x = 4.00")
    assert to_number(text.inner_text().split("= ")[-1]) == pytest.approx(
        predict(data_points(window), 4, 0.6), abs=0.006
    )
    before = window.locator(".curve").get_attribute("d")
    box = window.locator(".data-point").nth(4).bounding_box()
    window.mouse.move(box["x"] + 8, box["y"] + 8)
    window.mouse.down()
    window.mouse.move(box["x"] + 8, box["y"] - 120, steps=5)
    window.mouse.up()
    expect(window.locator(".curve")).not_to_have_attribute("d", before)
    bandwidth = window.get_by_label("Bandwidth")
    bandwidth.fill("1.5")
    expect(bandwidth.locator("xpath=../output")).to_have_text("1.50")
    points = data_points(window)
    x = float(re.search(r"x=([\d.]+)", window.url)[1])
    expected = f"{predict(points, x, 1.5):.2f}".replace("-", "−")
    expect(text).to_have_text(re.compile(f"= {expected}$"))
    assert window.locator(".weight-bars rect").count() == len(points)


def test_points_are_added_and_removed_by_pointer_and_keyboard(open_page, explorer_url):
    window = open_page(f"{explorer_url}#playground?panel=regression")
    points = window.locator(".data-point")
    expect(points).to_have_count(10)
    plot = window.locator(".regression-plot").bounding_box()
    window.mouse.dblclick(plot["x"] + plot["width"] * 0.5, plot["y"] + 30)
    expect(points).to_have_count(11)
    points.last.dblclick()
    expect(points).to_have_count(10)
    points.first.focus()
    window.keyboard.press("+")
    expect(points).to_have_count(11)
    points.first.focus()
    window.keyboard.press("Delete")
    expect(points).to_have_count(10)
