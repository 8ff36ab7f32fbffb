import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from regard.viz import render_heatmap, side_by_side
from regard.viz.colour import paint
from regard.viz.text_layout import centre, display_width, pad, stack_characters, truncate, wrap

TEXTS = st.text("ab 力猫\u0308é…", max_size=60)


@pytest.mark.parametrize(
    ("text", "width"),
    [
        ("", 0),
        ("cat", 3),
        ("注意力", 6),
        ("ｃａｔ", 6),
        ("nai\u0308ve", 5),
        ("한국", 4),
        ("می\u200cخواهم", 7),
    ],
)
def test_wide_characters_take_two_columns_and_marks_none(text, width):
    assert display_width(text) == width


def test_text_that_fits_is_not_truncated():
    assert truncate("weights", 7) == "weights"


def test_truncated_text_ends_in_an_ellipsis():
    assert truncate("weights", 6) == "weigh…"
    assert truncate("注意力", 5) == "注意…"
    assert truncate("注意力", 4) == "注…"  # the second character would need a fifth column


def test_long_text_is_truncated():
    assert truncate("x" * 3000, 10) == "x" * 9 + "…"
    assert truncate("猫" * 3000, 10) == "猫" * 4 + "…"


@given(TEXTS, st.integers(1, 12))
def test_truncated_text_is_a_prefix_that_fits(text, width):
    short = truncate(text, width)
    if cell_len(text) <= width:
        assert short == text
    else:
        assert short.endswith("…") and cell_len(short) <= width
        assert text.startswith(short[:-1])


def test_text_is_padded_at_the_right_or_centred():
    assert pad("力", 5) == "力   "
    assert centre("力", 6) == "  力  "
    assert centre("a", 4) == " a  "


@given(TEXTS, st.integers(1, 12))
def test_padded_text_has_exactly_the_width(text, width):
    assert cell_len(pad(text, width)) == width
    assert cell_len(centre(text, width)) == width


def test_marks_stay_with_their_character():
    assert stack_characters("nai\u0308f") == ["n", "a", "i\u0308", "f"]
    assert stack_characters("") == []


def test_lines_wrap_at_spaces_and_the_last_is_truncated():
    assert wrap("one two three", 7, 3) == ["one two", "three"]
    assert wrap("one two three four", 8, 2) == ["one two", "three …"]
    assert wrap("注意力注意力", 4, 3) == ["注意", "力注", "意力"]
    assert wrap("short", 7, 3) == ["short"]
    assert wrap("", 7, 3) == [""]


@given(TEXTS, st.integers(2, 12), st.integers(1, 4))
def test_wrapped_lines_fit_and_lose_only_what_the_ellipsis_stands_for(text, width, max_lines):
    lines = wrap(text, width, max_lines)
    assert len(lines) <= max_lines and all(cell_len(line) <= width for line in lines)
    shown, whole = "".join(lines).replace(" ", ""), text.replace(" ", "")
    assert shown == whole or (shown.endswith("…") and whole.startswith(shown[:-1]))


def test_second_text_starts_in_one_column():
    assert side_by_side("a\nlong\nb", "1\n2\n3", gap=2) == "a     1\nlong  2\nb     3"


def test_shorter_text_has_no_trailing_spaces():
    assert side_by_side("a\nb\nc", "1", gap=1) == "a 1\nb\nc"
    assert side_by_side("a", "1\n2", gap=1) == "a 1\n  2"


def test_empty_texts_side_by_side_are_empty():
    assert side_by_side("", "") == ""


def test_colour_codes_take_no_columns():
    text = f"猫\n{paint('ab', 0.5, '24-bit')}\nabc"
    assert [display_width(line) for line in text.splitlines()] == [2, 2, 3]
    lines = side_by_side(text, "|\n|\n|", gap=1).splitlines()
    assert {display_width(line) for line in lines} == {5}


def test_heat_maps_of_different_height_keep_their_shape():
    tall = render_heatmap([[1.0]] * 4, ["猫", "a", "b", "c"], ["x"], colour="256", width=40)
    low = render_heatmap([[0.5, 0.5]], ["q"], ["x", "y"], colour="24-bit", width=40)
    lines = side_by_side(tall, low).splitlines()
    width = 4 + max(map(display_width, tall.splitlines()))
    assert len(lines) == len(tall.splitlines())
    for line, left, right in zip(lines, tall.splitlines(), low.splitlines(), strict=False):
        assert line.startswith(left) and line.endswith(right)
        if right:
            assert display_width(line) - display_width(right) == width
