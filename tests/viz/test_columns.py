import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.viz.columns import centred, columns, cut, left, letters, wrapped


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", 0),
        ("cat", 3),
        ("注意力", 6),
        ("ｃａｔ", 6),
        ("nai\u0308ve", 5),
        ("한국", 4),
        ("a\u200db", 2),
    ],
)
def test_columns_count_wide_signs_twice_and_marks_not_at_all(text, wanted):
    assert columns(text) == wanted


def test_a_text_that_fits_is_not_cut():
    assert cut("weights", 7) == "weights"


def test_a_cut_text_ends_in_an_ellipsis():
    assert cut("weights", 6) == "weigh…"
    assert cut("注意力", 5) == "注意…"
    assert cut("注意力", 4) == "注…"  # the second sign would need a fifth column


def test_padding_puts_the_text_left_or_in_the_middle():
    assert left("力", 5) == "力   "
    assert centred("力", 6) == "  力  "
    assert centred("a", 4) == " a  "


@given(st.text(), st.integers(1, 12))
def test_padded_text_takes_exactly_its_room(text, room):
    assert columns(left(text, room)) == room
    assert columns(centred(text, room)) == room


def test_marks_stay_with_their_letter():
    assert letters("nai\u0308f") == ["n", "a", "i\u0308", "f"]
    assert letters("") == []


def test_a_long_text_is_cut_in_one_walk():
    began = time.process_time()
    assert cut("x" * 3000, 10) == "x" * 9 + "…"
    assert time.process_time() - began < 0.5  # counted anew for each letter, it takes seconds


@given(st.text(), st.integers(1, 12))
def test_a_text_is_cut_where_one_letter_more_would_not_fit(text, room):
    short = cut(text, room)
    if columns(text) <= room:
        assert short == text
    else:
        kept = short.removesuffix("…")
        assert text.startswith(kept) and columns(kept) < room
        assert columns(text[: len(kept) + 1]) > room - 1


def test_lines_break_at_spaces_and_the_last_is_cut():
    assert wrapped("one two three", 7, 3) == ["one two", "three"]
    assert wrapped("one two three four", 8, 2) == ["one two", "three f…"]
    assert wrapped("注意力注意力", 4, 3) == ["注意", "力注", "意力"]
    assert wrapped("short", 7, 3) == ["short"]
    assert wrapped("", 7, 3) == [""]


@given(st.text("ab 力\u0308", max_size=60), st.integers(2, 12), st.integers(1, 4))
def test_wrapped_lines_fit_and_are_not_too_many(text, room, lines):
    broken = wrapped(text, room, lines)
    assert len(broken) <= lines and all(columns(line) <= room for line in broken)
    said = "".join(broken).replace(" ", "")
    whole = text.replace(" ", "")
    assert said == whole or (said.endswith("…") and whole.startswith(said[:-1]))
