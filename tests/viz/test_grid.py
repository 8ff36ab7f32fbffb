import math

import numpy as np
import pytest
import torch

from regard.viz.grid import grid, number, safe

ROWS = [[0.25, 0.75, 0.0], [0.5, 0.25, 0.25]]
QUERIES, KEYS = ["ein", "Haus"], ["a", "small", "house"]


@pytest.mark.parametrize("make", [list, torch.tensor, np.array])
def test_lists_tensors_and_arrays_give_the_same_grid(make):
    assert grid(make(ROWS), QUERIES, KEYS) == grid(ROWS, QUERIES, KEYS)
    assert grid(make(ROWS), QUERIES, KEYS).rows == ((0.25, 0.75, 0.0), (0.5, 0.25, 0.25))


def test_weights_may_need_a_gradient():
    weights = torch.tensor(ROWS, requires_grad=True)
    assert grid(weights, QUERIES, KEYS).rows[1] == (0.5, 0.25, 0.25)


def test_the_scale_ends_at_one_unless_told_otherwise():
    assert grid(ROWS, QUERIES, KEYS).top == 1.0
    assert grid(ROWS, QUERIES, KEYS, top=0.8).top == 0.8


def test_a_weight_beyond_the_scale_overflows_but_rounding_does_not():
    assert grid(ROWS, QUERIES, KEYS, top=0.7).overflows
    assert not grid(ROWS, QUERIES, KEYS, top=0.75).overflows
    assert not grid([[1.0000001]], ["a"], ["b"]).overflows


def test_a_wrong_number_of_queries_is_told_with_both_numbers():
    with pytest.raises(ValueError, match=r"queries must be one word per row .* 2 wanted, 3 came"):
        grid(ROWS, KEYS, KEYS)


def test_a_wrong_number_of_keys_is_told_with_both_numbers():
    with pytest.raises(ValueError, match=r"keys must be one word per column .* 3 wanted, 2 came"):
        grid(ROWS, QUERIES, QUERIES)


def test_weights_of_many_heads_are_refused_with_the_way_to_one_head():
    with pytest.raises(ValueError, match=r"shape is \(1, 4, 2, 3\); weights\[0, 0\] would be one"):
        grid(torch.zeros(1, 4, 2, 3), QUERIES, KEYS)


@pytest.mark.parametrize("shape", [(3,), (0, 3), (2, 0), (5, 2, 3)])
def test_what_is_not_one_matrix_is_refused(shape):
    with pytest.raises(ValueError, match=r"weights must be one matrix of queries and keys, but"):
        grid(torch.zeros(shape), QUERIES, KEYS)


def test_rows_of_unequal_length_are_refused():
    with pytest.raises(ValueError, match="row 1 has 2 numbers and row 0 has 3"):
        grid([[0.2, 0.3, 0.5], [0.5, 0.5]], QUERIES, KEYS)


@pytest.mark.parametrize("bad", [-0.5, math.nan, math.inf])
def test_a_weight_that_is_no_weight_is_refused_with_its_place(bad):
    with pytest.raises(ValueError, match=rf"0 or more, but weights\[1, 2\] is {bad}; scores"):
        grid([[0.2, 0.3, 0.5], [0.5, 0.5, bad]], QUERIES, KEYS)


@pytest.mark.parametrize("top", [0.0, -1.0, math.nan, math.inf])
def test_a_scale_that_ends_nowhere_is_refused(top):
    with pytest.raises(ValueError, match=f"top must be a number above 0, but it is {top}; None"):
        grid(ROWS, QUERIES, KEYS, top=top)


def test_an_exact_zero_is_told_from_a_small_weight():
    assert (number(0.0), number(0.001), number(1.0), number(0.256)) == ("0", "0.00", "1.00", "0.26")


@pytest.mark.parametrize(
    ("word", "shown"),
    [
        ("\x1b[31mred", r"\x1b[31mred"),
        ("two\nlines\r", r"two\nlines\r"),
        ("\x9b2J", r"\x9b2J"),
        ("\u202eabc", r"\u202eabc"),
        ("\u2028", r"\u2028"),
        ("\ud800", r"\ud800"),
        ("\uffff\ufffe", r"\uffff\ufffe"),
        ("\ufdd0\ufdef", r"\ufdd0\ufdef"),
        ("\U0001fffe", r"\U0001fffe"),
    ],
)
def test_signs_that_steer_the_terminal_or_spoil_xml_are_spelled_out(word, shown):
    assert safe(word) == shown


@pytest.mark.parametrize(
    "word",
    ["house", "naïve", "nai\u0308ve", "注意力", "می\u200cخواهم", "▁the", "\ufffd\ufdcf\ufdf0"],
)
def test_other_words_stay_as_they_are(word):
    assert safe(word) == word


def test_both_sides_of_a_grid_are_safe():
    made = grid([[1.0]], ["\x1b"], ["\t"])
    assert (made.queries, made.keys) == ((r"\x1b",), (r"\t",))
