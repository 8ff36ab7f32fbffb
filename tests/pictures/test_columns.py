import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.pictures.columns import centred, columns, cut, left, letters


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
