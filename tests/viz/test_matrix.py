import math

import numpy as np
import pytest
import torch

from regard import RegardError
from regard._support.text import escape_control
from regard.viz import label_matrix
from regard.viz.matrix import format_weight

WEIGHTS = [[0.25, 0.75, 0.0], [0.5, 0.25, 0.25]]
QUERIES, KEYS = ["ein", "Haus"], ["a", "small", "house"]


@pytest.mark.parametrize("convert", [list, torch.tensor, np.array])
def test_lists_tensors_and_arrays_give_the_same_matrix(convert):
    assert label_matrix(convert(WEIGHTS), QUERIES, KEYS).weights.tolist() == WEIGHTS


def test_weights_may_require_gradients():
    weights = torch.tensor(WEIGHTS, requires_grad=True)
    assert label_matrix(weights, QUERIES, KEYS).weights.tolist() == WEIGHTS


def test_scale_ends_at_one_by_default():
    assert label_matrix(WEIGHTS, QUERIES, KEYS).vmax == 1.0
    assert label_matrix(WEIGHTS, QUERIES, KEYS, vmax=0.8).vmax == 0.8


def test_weight_above_the_scale_overflows_but_rounding_does_not():
    assert label_matrix(WEIGHTS, QUERIES, KEYS, vmax=0.7).has_overflow
    assert not label_matrix(WEIGHTS, QUERIES, KEYS, vmax=0.75).has_overflow
    assert not label_matrix([[1.0000001]], ["a"], ["b"]).has_overflow


def test_wrong_number_of_query_labels_is_refused():
    with pytest.raises(RegardError, match="queries must have one label per row .*, 2, not 3"):
        label_matrix(WEIGHTS, KEYS, KEYS)


def test_wrong_number_of_key_labels_is_refused():
    with pytest.raises(RegardError, match="keys must have one label per column .*, 3, not 2"):
        label_matrix(WEIGHTS, QUERIES, QUERIES)


def test_weights_of_several_heads_are_refused_with_a_way_to_one_head():
    with pytest.raises(RegardError, match=r"shape is \(1, 4, 2, 3\); weights\[0, 0\] would be one"):
        label_matrix(torch.zeros(1, 4, 2, 3), QUERIES, KEYS)


@pytest.mark.parametrize("shape", [(3,), (0, 3), (2, 0), (5, 2, 3)])
def test_weights_that_are_not_one_matrix_are_refused(shape):
    with pytest.raises(RegardError, match=r"weights must be one matrix \(query, key\), but"):
        label_matrix(torch.zeros(shape), QUERIES, KEYS)


def test_rows_of_unequal_length_are_refused():
    with pytest.raises(RegardError, match="row 1 has 2 items and row 0 has 3"):
        label_matrix([[0.2, 0.3, 0.5], [0.5, 0.5]], QUERIES, KEYS)


@pytest.mark.parametrize("bad", [-0.5, math.nan, math.inf])
def test_invalid_weight_is_refused_with_its_position(bad):
    with pytest.raises(RegardError, match=rf"0 or greater, but weights\[1, 2\] is {bad}; a soft"):
        label_matrix([[0.2, 0.3, 0.5], [0.5, 0.5, bad]], QUERIES, KEYS)


@pytest.mark.parametrize("vmax", [0.0, -1.0, math.nan, math.inf])
def test_invalid_end_of_scale_is_refused(vmax):
    with pytest.raises(RegardError, match=f"vmax must be a number above 0, but it is {vmax}; None"):
        label_matrix(WEIGHTS, QUERIES, KEYS, vmax=vmax)


def test_exact_zero_is_formatted_differently_from_a_small_weight():
    formatted = [format_weight(weight) for weight in (0.0, 0.001, 1.0, 0.256)]
    assert formatted == ["0", "0.00", "1.00", "0.26"]


@pytest.mark.parametrize(
    ("text", "escaped"),
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
def test_control_characters_and_what_xml_forbids_are_escaped(text, escaped):
    assert escape_control(text) == escaped


@pytest.mark.parametrize(
    "text",
    ["house", "naïve", "nai\u0308ve", "注意力", "می\u200cخواهم", "▁the", "\ufffd\ufdcf\ufdf0"],
)
def test_other_characters_are_not_escaped(text):
    assert escape_control(text) == text


def test_labels_are_escaped():
    matrix = label_matrix([[1.0]], ["\x1b"], ["\t"])
    assert (matrix.queries, matrix.keys) == ((r"\x1b",), (r"\t",))


@pytest.mark.parametrize("cell", [(2, 0), (0, 3), (-1, 0), (0, -1)])
def test_outlined_cell_outside_the_matrix_is_refused(cell):
    with pytest.raises(RegardError, match=r"cells \(query, key\) of 2 queries and 3 keys, but one"):
        label_matrix(WEIGHTS, QUERIES, KEYS, outlined=[(0, 0), cell])
