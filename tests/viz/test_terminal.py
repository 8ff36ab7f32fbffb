import re

import pytest
import torch

from regard.viz.columns import columns
from regard.viz.terminal import render_heatmap, render_strongest

QUERIES = ["我", "喜欢", "猫"]
KEYS = ["I", "like", "black", "cats"]
WEIGHTS = [[0.7, 0.1, 0.1, 0.1], [0.05, 0.9, 0.05, 0.0], [0.0, 0.0, 0.3, 0.7]]
STEERING = re.compile("\x1b\\[[0-9;]*m")


def bare(text):
    """The text without its colours."""
    return STEERING.sub("", text)


def test_a_plain_map_reads_as_a_table_of_shades_and_numbers():
    assert render_heatmap(
        WEIGHTS, QUERIES, KEYS, title="Looks", colour="plain", width=80
    ) == "\n".join(
        [
            "Looks",
            "",
            "         I      like     black    cats",
            "我    0.70 xx  0.10 ..  0.10 ..  0.10 ..",
            "喜欢  0.05     0.90 @@  0.05        0",
            "猫       0        0     0.30 --  0.70 xx",
            "",
            "     0 [ .:-=+*x#@] 1",
        ]
    )


@pytest.mark.parametrize("colour", ["24-bit", "256"])
def test_a_coloured_map_paints_one_cell_per_weight(colour):
    lines = render_heatmap(WEIGHTS, QUERIES, KEYS, colour=colour, width=80).splitlines()
    for line, row in zip(lines[1:4], WEIGHTS, strict=True):
        assert re.findall("m *([0-9.]+) *\x1b\\[0m", line) == [
            f"{w:.2f}" if w else "0" for w in row
        ]


def test_equal_weights_have_equal_colours_and_unequal_ones_have_not():
    line = render_heatmap(WEIGHTS, QUERIES, KEYS, colour="24-bit", width=80).splitlines()[1]
    colours = re.findall("\x1b\\[(48[0-9;]*)m", line)
    assert colours[1] == colours[2] == colours[3] != colours[0]


def test_every_row_of_a_coloured_map_is_equally_wide():
    lines = render_heatmap(WEIGHTS, QUERIES, KEYS, colour="24-bit", width=80).splitlines()
    assert {columns(bare(line)) for line in lines[1:4]} == {4 + 1 + 4 * 7}


def test_key_words_stand_above_their_cells():
    lines = bare(render_heatmap(WEIGHTS, QUERIES, KEYS, colour="24-bit", width=80)).splitlines()
    assert lines[0] == "        I    like   black  cats"
    assert lines[2] == "喜欢  0.05   0.90   0.05     0   "


def test_key_words_that_do_not_fit_are_written_downwards():
    keys = ["I", "like", "yellow", "cats"]
    lines = bare(render_heatmap(WEIGHTS, QUERIES, keys, colour="24-bit", width=30)).splitlines()
    heads = [line.ljust(29) for line in lines[:6]]
    downwards = ["".join(head[7 + 6 * key] for head in heads).strip() for key in range(4)]
    assert downwards == keys
    assert heads[-1].split() == ["I", "e", "w", "s"]  # they end at the map


def test_chinese_words_written_downwards_keep_their_columns():
    words = ["注意力", "猫"]
    lines = render_heatmap([[1.0, 0.0]], ["x"], words, colour="plain", width=8).splitlines()
    assert lines[:4] == ["  注", "  意", "  力猫", "x @@"]


def test_a_narrow_map_has_square_cells_without_numbers():
    lines = render_heatmap(WEIGHTS, QUERIES, KEYS, colour="plain", width=15).splitlines()
    assert lines[5:8] == ["我   xx......", "喜欢   @@", "猫       --xx"]


def test_a_map_that_is_too_wide_goes_on_below():
    torch.manual_seed(0)
    weights = torch.rand(3, 41).softmax(-1)
    keys = [f"k{number}" for number in range(41)]
    text = render_heatmap(weights, QUERIES, keys, colour="256", width=40)
    assert max(columns(bare(line)) for line in text.splitlines()) <= 40
    blocks = text.split("\n\n")
    cells = [len(re.findall("m +\x1b", block.splitlines()[-1])) for block in blocks[:-1]]
    assert cells == [17, 17, 7]
    assert all(block.splitlines()[-1].startswith("猫") for block in blocks[:-1])


@pytest.mark.parametrize("width", [1, 7, 20, 40, 79, 200])
@pytest.mark.parametrize("colour", ["plain", "256", "24-bit"])
def test_no_line_of_the_map_is_wider_than_asked(width, colour):
    text = render_heatmap(
        WEIGHTS, ["a", "query", "of_many_letters"], KEYS, colour=colour, width=width
    )
    rows = bare(text).splitlines()[:-2]  # the scale below is as wide as it is
    assert max(map(columns, rows)) <= max(width, 4)


def test_the_scale_says_where_it_ends():
    assert "] 1" in render_heatmap(WEIGHTS, QUERIES, KEYS, colour="plain")
    assert render_heatmap(WEIGHTS, QUERIES, KEYS, top=0.9, colour="plain").endswith("] 0.9")
    assert render_heatmap(WEIGHTS, QUERIES, KEYS, top=0.8, colour="plain").endswith("] 0.8 or more")


def test_a_lower_top_makes_the_same_weight_darker_in_ink():
    assert "0.30 --" in render_heatmap(WEIGHTS, QUERIES, KEYS, colour="plain", width=80)
    assert "0.30 @@" in render_heatmap(WEIGHTS, QUERIES, KEYS, top=0.3, colour="plain", width=80)


def test_a_word_cannot_steer_the_terminal():
    words = ["\x1b[2J", "\r\n", "\x9b5A", "\x07"]
    text = render_heatmap([WEIGHTS[0]], ["\x1b]0;title\x07"], words, title="\x1bc", colour="plain")
    assert not set(text) & set("\x1b\r\x9b\x07")
    assert r"\x1bc" in text
    assert "\x1b" not in render_strongest([WEIGHTS[0]], ["\x1bc"], words)


def test_colour_follows_the_environment(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[48;2;" in render_heatmap(WEIGHTS, QUERIES, KEYS)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in render_heatmap(WEIGHTS, QUERIES, KEYS)


def test_the_terminals_own_width_is_the_default(monkeypatch):
    monkeypatch.setenv("COLUMNS", "15")
    wanted = render_heatmap(WEIGHTS, QUERIES, KEYS, colour="plain", width=15)
    assert render_heatmap(WEIGHTS, QUERIES, KEYS, colour="plain") == wanted


def test_an_unknown_colour_is_refused_with_those_there_are():
    with pytest.raises(
        ValueError, match="one of '24-bit', '256', 'plain', or None, but it is 'red'"
    ):
        render_heatmap(WEIGHTS, QUERIES, KEYS, colour="red")


def test_a_wrong_number_of_words_is_refused():
    with pytest.raises(ValueError, match=r"queries must be .* 3 wanted, 4 came"):
        render_heatmap(WEIGHTS, KEYS, KEYS)
    with pytest.raises(ValueError, match=r"keys must be .* 4 wanted, 3 came"):
        render_strongest(WEIGHTS, QUERIES, QUERIES)


def test_the_strongest_look_of_each_query_is_named():
    assert render_strongest(torch.tensor(WEIGHTS), QUERIES, KEYS) == "\n".join(
        [
            "我    looks most at I (0.70)",
            "喜欢  looks most at like (0.90)",
            "猫    looks most at cats (0.70)",
        ]
    )


def test_equally_strong_looks_are_all_named():
    weights = [[0.4, 0.2, 0.4 + 1e-8], [0.5, 0.499, 0.001]]
    assert render_strongest(weights, ["a", "b"], ["x", "y", "z"]).splitlines() == [
        "a  looks most at x, z (0.40 each)",
        "b  looks most at x (0.50)",
    ]


def test_a_query_that_may_look_nowhere_is_said_to_look_nowhere():
    assert render_strongest([[0.0, 0.0]], ["a"], ["x", "y"]) == "a  looks nowhere"
