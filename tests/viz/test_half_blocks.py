import re

import numpy as np
import pytest

from regard.viz.colour import cividis
from regard.viz.half_blocks import half_blocks, pooled
from regard.viz.side_by_side import shown

WEIGHTS = np.eye(6)[:5]


def map_lines(text):
    return [line for line in text.splitlines() if "▀" in line]


def test_two_queries_share_a_line_in_two_colours():
    lines = map_lines(half_blocks([[1.0, 0.0], [0.0, 0.5]], colour="24-bit", width=40))
    high, half, none = (";".join(map(str, cividis(share))) for share in (1.0, 0.5, 0.0))
    assert lines == [
        f"0 \x1b[38;2;{high};48;2;{none}m▀\x1b[0m\x1b[38;2;{none};48;2;{half}m▀\x1b[0m"
    ]


def test_an_odd_last_query_leaves_its_lower_half_as_it_is():
    last = map_lines(half_blocks(WEIGHTS, colour="256", width=40))[-1]
    assert last.count("▀") == 6
    assert "48;" not in last


def test_without_colours_a_line_shows_the_stronger_of_two_queries():
    lines = half_blocks(WEIGHTS, title="Looks", colour="plain", width=40).splitlines()
    assert lines == ["Looks", "", "  0", "0 @@", "    @@", "      @", "", "  0 [ .:-=+*x#@] 1"]


def test_no_color_is_heeded(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in half_blocks(WEIGHTS, width=40)


@pytest.mark.parametrize("colour", ["24-bit", "256", "plain"])
@pytest.mark.parametrize("width", [5, 40, 200])
def test_a_large_map_fits_into_the_terminal(colour, width):
    weights = np.random.default_rng(0).dirichlet(np.ones(300), size=500)
    text = half_blocks(weights, colour=colour, width=width)
    assert max(shown(line) for line in text.splitlines()[1:-2]) <= width
    assert len(text.splitlines()) == 1 + 40 + 2


def test_edges_are_numbered_by_position_also_when_coarser():
    lines = half_blocks(np.zeros((500, 300)), colour="plain", width=104).splitlines()
    assert lines[0].split() == [str(n) for n in range(0, 300, 30)]
    numbered = [int(found[0]) for line in lines[1:-2] if (found := re.findall(r"^ *(\d+)", line))]
    assert numbered == [62 * n + n // 2 for n in range(8)]


def test_a_coarser_map_keeps_the_strongest_weight():
    coarse = pooled(np.eye(7), 3, 2)
    assert coarse.tolist() == [[1, 0], [1, 1], [0, 1]]


def test_more_than_one_head_is_refused():
    with pytest.raises(ValueError, match=r"one matrix of queries and keys, .* \(2, 3, 4\)"):
        half_blocks(np.zeros((2, 3, 4)))


@pytest.mark.parametrize("bad", [-0.5, np.nan, np.inf])
def test_a_weight_that_is_no_weight_is_refused_with_its_place(bad):
    weights = WEIGHTS.copy()
    weights[3, 4] = bad
    with pytest.raises(ValueError, match=rf"0 or more, but weights\[3, 4\] is {bad}; scores"):
        half_blocks(weights, colour="plain", width=40)
