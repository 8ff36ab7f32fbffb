import re

import numpy as np
import pytest

from regard import RegardError
from regard.viz.colour import cividis
from regard.viz.half_blocks import max_pool, render_half_blocks
from regard.viz.text_layout import display_width

WEIGHTS = np.eye(6)[:5]


def map_lines(text):
    return [line for line in text.splitlines() if "▀" in line]


def test_two_rows_share_a_line_in_two_colours():
    lines = map_lines(render_half_blocks([[1.0, 0.0], [0.0, 0.5]], colour="24-bit", width=40))
    high, half, none = (";".join(map(str, cividis(intensity))) for intensity in (1.0, 0.5, 0.0))
    assert lines == [
        f"0 \x1b[38;2;{high};48;2;{none}m▀\x1b[0m\x1b[38;2;{none};48;2;{half}m▀\x1b[0m"
    ]


def test_odd_last_row_leaves_its_lower_half_unpainted():
    last = map_lines(render_half_blocks(WEIGHTS, colour="256", width=40))[-1]
    assert last.count("▀") == 6
    assert "48;" not in last


def test_line_without_colours_shows_the_larger_of_two_rows():
    lines = render_half_blocks(WEIGHTS, title="Head", colour="plain", width=40).splitlines()
    assert lines == ["Head", "", "  0", "0 @@", "    @@", "      @", "", "  0 [ .:-=+*x#@] 1"]


def test_no_color_variable_disables_colours(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in render_half_blocks(WEIGHTS, width=40)


@pytest.mark.parametrize("colour", ["24-bit", "256", "plain"])
@pytest.mark.parametrize("width", [5, 40, 200])
def test_large_map_fits_the_width(colour, width):
    weights = np.random.default_rng(0).dirichlet(np.ones(300), size=500)
    text = render_half_blocks(weights, colour=colour, width=width)
    assert max(display_width(line) for line in text.splitlines()[1:-3]) <= width
    assert len(text.splitlines()) == 1 + 40 + 3


def test_edges_show_positions_of_a_pooled_map():
    lines = render_half_blocks(np.zeros((500, 300)), colour="plain", width=104).splitlines()
    assert lines[0].split() == [str(n) for n in range(0, 300, 30)]
    numbered = [int(label[0]) for x in lines[1:-2] if (label := re.findall(r"^ *(\d+)", x))]
    assert numbered == [62 * n + n // 2 for n in range(8)]


def test_pooling_keeps_the_largest_weight():
    pooled = max_pool(np.eye(7), 3, 2)
    assert pooled.tolist() == [[1, 0], [1, 1], [0, 1]]


def test_weights_of_several_heads_are_refused():
    with pytest.raises(RegardError, match=r"one matrix \(query, key\), .* \(2, 3, 4\)"):
        render_half_blocks(np.zeros((2, 3, 4)))


@pytest.mark.parametrize("bad", [-0.5, np.nan, np.inf])
def test_invalid_weight_is_refused_with_its_position(bad):
    weights = WEIGHTS.copy()
    weights[3, 4] = bad
    with pytest.raises(RegardError, match=rf"0 or greater, but weights\[3, 4\] is {bad}; a soft"):
        render_half_blocks(weights, colour="plain", width=40)
