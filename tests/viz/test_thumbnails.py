import numpy as np
import pytest

from regard import RegardError
from regard.trace import build_translation_trace
from regard.viz import render_all_heads
from regard.viz.text_layout import display_width

ALIGNED, FLAT = np.eye(3), np.full((3, 3), 1 / 3)


def test_every_head_is_drawn_and_the_selected_one_is_marked():
    trace = build_translation_trace("abc", "xyz", cross=[[FLAT, FLAT], [ALIGNED, FLAT]], model="m")
    assert render_all_heads(trace, colour="plain", width=40).splitlines() == [
        "m · Cross-attention: layer.head, * selected",
        "writing ↓  reading →",
        "",
        "0.0        0.1",
        "|------|   |------|",
        "|------|   |------|",
        "|------|   |------|",
        "",
        "1.0*       1.1",
        "|@@    |   |------|",
        "|  @@  |   |------|",
        "|    @@|   |------|",
        "",
        " 0 [ .:-=+*x#@] 1",
    ]


@pytest.mark.parametrize("colour", ["plain", "256", "24-bit"])
@pytest.mark.parametrize("width", [20, 80, 200])
def test_lines_fit_the_width_where_one_map_does(colour, width):
    weights = np.random.default_rng(0).dirichlet(np.ones(60), size=(7, 50))
    trace = build_translation_trace(["a"] * 60, ["b"] * 50, cross=[weights])
    text = render_all_heads(trace, colour=colour, width=width)
    one_map = 2 + 2 * 24 if colour == "plain" else 24
    drawn = text.split("\n\n")[1:-1]  # without the heading and the legend
    assert max(display_width(line) for part in drawn for line in part.splitlines()) <= max(
        width, one_map
    )
    assert all(f"0.{head}" in text for head in range(7))


def test_heading_describes_the_rows():
    trace = build_translation_trace("abc", "xyz", cross=[[FLAT]], decoder_input="<xy")
    assert render_all_heads(trace, rows="output").splitlines()[1] == "writing ↓  reading →"
    assert render_all_heads(trace, rows="input").splitlines()[1] == "decoder input ↓  reading →"


def test_unknown_kind_is_an_error():
    trace = build_translation_trace("abc", "xyz", cross=[[FLAT]])
    with pytest.raises(RegardError, match="encodr"):
        render_all_heads(trace, "encodr")


@pytest.mark.parametrize("vmax", [0, -1.0, float("nan")])
@pytest.mark.usefixtures("unchecked")
def test_end_of_the_scale_must_be_above_zero(vmax):
    trace = build_translation_trace(["the", "cat"], ["chat"], cross=[[[[0.25, 0.75]]]])
    with pytest.raises(RegardError, match="vmax must be a number above 0"):
        render_all_heads(trace, vmax=vmax)
