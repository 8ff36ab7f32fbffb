import re

import numpy as np
import pytest
import torch

from regard import RegardError
from regard.trace import build_translation_trace
from regard.viz import (
    render_half_blocks,
    render_head,
    render_heatmap,
    render_links,
    render_strongest,
)
from regard.viz.text_layout import display_width

QUERIES = ["我", "喜欢", "猫"]
KEYS = ["I", "like", "black", "cats"]
WEIGHTS = [[0.7, 0.1, 0.1, 0.1], [0.05, 0.9, 0.05, 0.0], [0.0, 0.0, 0.3, 0.7]]
COLOUR_CODE = re.compile("\x1b\\[[0-9;]*m")


def without_colours(text):
    """Return a text without its colour codes."""
    return COLOUR_CODE.sub("", text)


def test_plain_map_is_a_table_of_numbers_and_shades():
    assert render_heatmap(
        WEIGHTS, QUERIES, KEYS, title="Head", colour="plain", width=80
    ) == "\n".join(
        [
            "Head",
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
def test_coloured_map_paints_one_cell_per_weight(colour):
    lines = render_heatmap(WEIGHTS, QUERIES, KEYS, colour=colour, width=80).splitlines()
    for line, row in zip(lines[1:4], WEIGHTS, strict=True):
        assert re.findall("m *([0-9.]+) *\x1b\\[0m", line) == [
            f"{w:.2f}" if w else "0" for w in row
        ]


def test_equal_weights_have_equal_colours():
    line = render_heatmap(WEIGHTS, QUERIES, KEYS, colour="24-bit", width=80).splitlines()[1]
    colours = re.findall("\x1b\\[(48[0-9;]*)m", line)
    assert colours[1] == colours[2] == colours[3] != colours[0]


def test_rows_of_a_coloured_map_are_equally_wide():
    lines = render_heatmap(WEIGHTS, QUERIES, KEYS, colour="24-bit", width=80).splitlines()
    assert {display_width(line) for line in lines[1:4]} == {4 + 1 + 4 * 7}


def test_key_labels_are_above_their_cells():
    text = render_heatmap(WEIGHTS, QUERIES, KEYS, colour="24-bit", width=80)
    lines = without_colours(text).splitlines()
    assert lines[0] == "        I    like   black  cats"
    assert lines[2] == "喜欢  0.05   0.90   0.05     0   "


def test_key_labels_that_do_not_fit_are_written_downwards():
    keys = ["I", "like", "yellow", "cats"]
    text = render_heatmap(WEIGHTS, QUERIES, keys, colour="24-bit", width=30)
    lines = without_colours(text).splitlines()
    header = [line.ljust(29) for line in lines[:6]]
    labels = ["".join(line[7 + 6 * key] for line in header).strip() for key in range(4)]
    assert labels == keys
    assert header[-1].split() == ["I", "e", "w", "s"]  # they end at the map


def test_chinese_labels_written_downwards_keep_their_columns():
    words = ["注意力", "猫"]
    lines = render_heatmap([[1.0, 0.0]], ["x"], words, colour="plain", width=8).splitlines()
    assert lines[:4] == ["  注", "  意", "  力猫", "x @@"]


def test_narrow_map_has_square_cells_without_numbers():
    lines = render_heatmap(WEIGHTS, QUERIES, KEYS, colour="plain", width=15).splitlines()
    assert lines[5:8] == ["我   xx......", "喜欢   @@", "猫       --xx"]


def test_map_that_is_too_wide_continues_below():
    torch.manual_seed(0)
    weights = torch.rand(3, 41).softmax(-1)
    keys = [f"k{number}" for number in range(41)]
    text = render_heatmap(weights, QUERIES, keys, colour="256", width=40)
    assert max(display_width(line) for line in text.splitlines()) <= 40
    blocks = text.split("\n\n")
    cells = [len(re.findall("m +\x1b", block.splitlines()[-1])) for block in blocks[:-1]]
    assert cells == [17, 17, 7]
    assert all(block.splitlines()[-1].startswith("猫") for block in blocks[:-1])


@pytest.mark.parametrize("width", [1, 7, 20, 40, 79, 200])
@pytest.mark.parametrize("colour", ["plain", "256", "24-bit"])
def test_no_line_of_the_map_exceeds_the_width(width, colour):
    text = render_heatmap(
        WEIGHTS, ["a", "query", "of_many_letters"], KEYS, colour=colour, width=width
    )
    rows = without_colours(text).splitlines()[:-2]  # the scale below is as wide as it is
    assert max(map(display_width, rows)) <= max(width, 4)


def test_scale_shows_its_end_and_overflow():
    assert "] 1" in render_heatmap(WEIGHTS, QUERIES, KEYS, colour="plain")
    assert render_heatmap(WEIGHTS, QUERIES, KEYS, vmax=0.9, colour="plain").endswith("] 0.9")
    assert render_heatmap(WEIGHTS, QUERIES, KEYS, vmax=0.8, colour="plain").endswith(
        "] 0.8 or more"
    )


def test_lower_vmax_makes_the_same_weight_darker():
    assert "0.30 --" in render_heatmap(WEIGHTS, QUERIES, KEYS, colour="plain", width=80)
    assert "0.30 @@" in render_heatmap(WEIGHTS, QUERIES, KEYS, vmax=0.3, colour="plain", width=80)


def test_label_cannot_control_the_terminal():
    words = ["\x1b[2J", "\r\n", "\x9b5A", "\x07"]
    text = render_heatmap([WEIGHTS[0]], ["\x1b]0;title\x07"], words, title="\x1bc", colour="plain")
    assert not set(text) & set("\x1b\r\x9b\x07")
    assert r"\x1bc" in text
    assert "\x1b" not in render_strongest([WEIGHTS[0]], ["\x1bc"], words)


def test_colour_depth_follows_the_environment(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[48;2;" in render_heatmap(WEIGHTS, QUERIES, KEYS)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in render_heatmap(WEIGHTS, QUERIES, KEYS)


def test_default_width_is_that_of_the_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "15")
    expected = render_heatmap(WEIGHTS, QUERIES, KEYS, colour="plain", width=15)
    assert render_heatmap(WEIGHTS, QUERIES, KEYS, colour="plain") == expected


def test_unknown_colour_depth_is_refused_with_the_choices():
    with pytest.raises(
        RegardError, match="one of '24-bit', '256', 'plain', or None, but it is 'red'"
    ):
        render_heatmap(WEIGHTS, QUERIES, KEYS, colour="red")


def test_wrong_number_of_labels_is_refused():
    with pytest.raises(RegardError, match="queries must have .* 3, not 4"):
        render_heatmap(WEIGHTS, KEYS, KEYS)
    with pytest.raises(RegardError, match="keys must have .* 4, not 3"):
        render_strongest(WEIGHTS, QUERIES, QUERIES)


def test_strongest_key_of_each_query_is_named():
    assert render_strongest(torch.tensor(WEIGHTS), QUERIES, KEYS) == "\n".join(
        [
            "我    attends most to I (0.70)",
            "喜欢  attends most to like (0.90)",
            "猫    attends most to cats (0.70)",
        ]
    )


def test_equally_strong_keys_are_all_named():
    weights = [[0.4, 0.2, 0.4 + 1e-8], [0.5, 0.499, 0.001]]
    assert render_strongest(weights, ["a", "b"], ["x", "y", "z"]).splitlines() == [
        "a  attends most to x, z (0.40 each)",
        "b  attends most to x (0.50)",
    ]


def test_fully_masked_query_attends_to_nothing():
    assert render_strongest([[0.0, 0.0]], ["a"], ["x", "y"]) == "a  attends to nothing"


def cross_trace(queries, keys):
    weights = np.random.default_rng(0).dirichlet(np.full(keys, 0.1), size=(2, queries))
    source = [f"s{n}" for n in range(keys)]
    target = [f"t{n}" for n in range(queries)]
    return build_translation_trace(source, target, cross=[weights], model="large")


def test_head_of_a_small_trace_is_a_labelled_map(trace):
    lines = render_head(trace, "cross", 0, 0, colour="plain", width=80).splitlines()
    assert lines[0] == 'a <script>"cat"</script>'
    assert lines[1] == "a hand-made translator · Cross-attention · layer 0, head 0"
    assert lines[3].split() == ["writing", "↓", "reading", "→"]
    assert lines[4].split() == ["The", "cat", "sit", "s", "</s>"]
    assert [line.split()[0] for line in lines[5:9]] == ["猫", "坐", "着", "</s>"]


def test_rows_may_be_named_by_the_input_words(trace):
    text = render_head(trace, rows="input", colour="plain", width=80)
    lines = text.splitlines()
    assert lines[3].startswith("decoder input ↓")
    assert [line.split()[0] for line in lines[5:9]] == ["<s>", "猫", "坐", "着"]
    assert render_links(trace, rows="input", count=1).startswith("<s>  attends to The")
    lines = render_head(trace, "decoder", rows="output", colour="plain", width=80).splitlines()
    assert lines[3].split() == ["query", "↓", "key", "→"]
    assert [line.split()[0] for line in lines[5:9]] == ["<s>", "猫", "坐", "着"]


NOTE = "scaled to the largest of this map"


@pytest.mark.parametrize("largest, end", [(0.3, "0.3"), (0.49, "0.49"), (0.5, "1"), (0.9, "1")])
def test_colours_of_a_map_of_small_weights_end_at_the_largest(largest, end):
    weights = [[largest, 0.1, 0.0]]
    text = render_heatmap(weights, ["q"], list("abc"), colour="plain", width=60)
    assert f"[ .:-=+*x#@] {end}\n" in f"{text}\n"
    assert (NOTE in text) == (end != "1")
    assert ("@@" in text.splitlines()[1]) == (end != "1" or largest == 0.9)  # the darkest shade
    half_blocks = render_half_blocks(weights, colour="plain", width=60)
    assert (NOTE in half_blocks) == (end != "1")
    given = render_heatmap(weights, ["q"], list("abc"), colour="plain", width=60, vmax=1.0)
    assert NOTE not in given


def test_head_of_a_large_trace_is_half_blocks_and_its_strongest_links():
    text = render_head(cross_trace(50, 60), colour="24-bit", width=80)
    assert text.count("▀") == 25 * 60
    assert text.splitlines()[-12:] == render_links(cross_trace(50, 60)).splitlines()


def test_head_of_a_wide_trace_fits_a_narrow_terminal():
    text = render_head(cross_trace(5, 60), colour="plain", width=50)
    map_part = text.split("\n\n")[1]
    assert max(map(display_width, map_part.splitlines())) <= 50


def test_links_are_listed_largest_weight_first(trace):
    assert render_links(trace, "decoder", 0, 0, count=3).splitlines() == [
        "<s>  attends to <s>  (1.00; 0 to 0)",
        "猫   attends to 猫  (0.90; 1 to 1)",
        "坐   attends to 坐  (0.82; 2 to 2)",
    ]


def test_links_of_weight_zero_are_not_listed(trace):
    links = render_links(trace, "decoder", 0, 0, count=100).splitlines()
    assert len(links) == 10  # the lower triangle: attention is causal


def test_long_labels_of_links_are_truncated():
    trace = build_translation_trace(["猫" * 50], ["chat" * 50], cross=[np.ones((1, 1, 1))])
    (line,) = render_links(trace).splitlines()
    assert display_width(line) <= 80 and line.count("…") == 2


def test_label_of_a_link_cannot_control_the_terminal():
    trace = build_translation_trace(["\x1b[2J"], ["\x07"], cross=[np.ones((1, 1, 1))])
    assert not set(render_links(trace)) & set("\x1b\x07")
