import re
from textwrap import indent

import pytest
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention
from torch.utils.flop_counter import FlopCounterMode

import regard
from regard.attention import complexity, complexity_table
from regard.errors import RegardError


def test_docstring_of_attention_shows_the_table():
    assert indent(complexity_table(), "    ") in regard.attention.__doc__


def test_costs_worked_by_hand():
    attention, recurrence, convolution = complexity(n=10, d=4, k=3)
    # 10 · 10 pairs of width 4; 10 matrices of 4 · 4; and 3 of them at each of 10 positions
    assert attention == ("self-attention", 400, 1, 1)
    assert recurrence == ("recurrence", 160, 10, 10)
    assert convolution == ("convolution", 480, 1, 4)


def test_path_length_of_one_position_is_one():
    assert [cost.max_path_length for cost in complexity(n=1, d=4)] == [1, 1, 1]


def test_attention_is_cheaper_than_recurrence_below_length_equal_to_width():
    for n, d in ((10, 64), (64, 64), (512, 64)):
        attention, recurrence, _ = complexity(n, d)
        assert (attention.operations < recurrence.operations) == (n < d)


def attend(n, d, k):
    words = torch.randn(1, n, d)
    scaled_dot_product_attention(words, words, words)


def recur(n, d, k):
    cell, state = nn.Linear(d, d, bias=False), torch.zeros(1, d)
    for _ in range(n):
        state = cell(state).tanh()


def convolve(n, d, k):
    nn.Conv1d(d, d, k, padding="same")(torch.randn(1, d, n))


@pytest.mark.parametrize("layer", [0, 1, 2], ids=["self-attention", "recurrence", "convolution"])
def test_flops_of_real_layers_are_proportional_to_operations(layer):
    def flops(**sizes):
        with FlopCounterMode(display=False) as counter:
            (attend, recur, convolve)[layer](**sizes)
        return counter.get_total_flops()

    smallest = {"n": 8, "d": 4, "k": 3}
    per_unit = flops(**smallest) / complexity(**smallest)[layer].operations
    for larger in ({"n": 24}, {"d": 20}, {"k": 5}):
        sizes = smallest | larger
        assert flops(**sizes) == per_unit * complexity(**sizes)[layer].operations, larger


def test_table_of_numbers_has_the_costs():
    lines = complexity_table(n=1000, d=20, k=5).splitlines()
    cells = [re.split(r" {2,}", line) for line in lines]
    assert cells == [
        ["mechanism", "operations", "sequential", "max path length"],
        ["self-attention", "20,000,000", "1", "1"],
        ["recurrence", "400,000", "1,000", "1,000"],
        ["convolution", "2,000,000", "1", "200"],
    ]


def test_columns_of_the_table_are_aligned():
    for table in (complexity_table(), complexity_table(n=1000, d=20)):
        header, *rows = table.splitlines()
        for title in ("operations", "sequential", "max path length"):
            column = header.index(title)
            assert all(row[column - 2 : column] == "  " and row[column] != " " for row in rows)


@pytest.mark.parametrize("sizes", [{"n": 0, "d": 4}, {"n": 5, "d": -1}, {"n": 5, "d": 4, "k": 0}])
def test_sizes_below_one_are_refused(sizes):
    name, number = next((name, size) for name, size in sizes.items() if size < 1)
    with pytest.raises(RegardError, match=f"{name} must be 1 or more, but it is {number}"):
        complexity(**sizes)


@pytest.mark.parametrize("sizes", [{"n": 5}, {"d": 4}])
def test_table_with_one_of_both_sizes_is_refused(sizes):
    with pytest.raises(RegardError, match="the table needs both n and d, or neither, but n is"):
        complexity_table(**sizes)
