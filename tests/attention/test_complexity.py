import re

import pytest
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention
from torch.utils.flop_counter import FlopCounterMode

import regard
from regard.attention import complexity, complexity_table


def test_the_docstring_of_attention_shows_the_table():
    _, _, table = regard.attention.__doc__.rstrip().split("\n\n")
    assert table == complexity_table()


def test_costs_by_hand():
    attention, recurrence, convolution = complexity(n=10, d=4, k=3)
    # 10 · 10 pairs of 4 numbers; 10 matrices of 4 · 4; and 3 such at each of 10 places
    assert (attention.work, attention.steps, attention.path) == (400, 1, 1)
    assert (recurrence.work, recurrence.steps, recurrence.path) == (160, 10, 10)
    assert (convolution.work, convolution.steps, convolution.path) == (480, 1, 4)


def test_one_word_is_next_to_itself():
    assert [cost.path for cost in complexity(n=1, d=4)] == [1, 1, 1]


def test_attention_is_cheaper_than_recurrence_while_texts_are_shorter_than_vectors_are_wide():
    for n, d in ((10, 64), (64, 64), (512, 64)):
        attention, recurrence, _ = complexity(n, d)
        assert (attention.work < recurrence.work) == (n < d)


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
def test_the_work_of_real_layers_grows_as_counted(layer):
    def flops(**sizes):
        with FlopCounterMode(display=False) as counter:
            (attend, recur, convolve)[layer](**sizes)
        return counter.get_total_flops()

    smallest = {"n": 8, "d": 4, "k": 3}
    per_unit = flops(**smallest) / complexity(**smallest)[layer].work
    for larger in ({"n": 24}, {"d": 20}, {"k": 5}):
        sizes = smallest | larger
        assert flops(**sizes) == per_unit * complexity(**sizes)[layer].work, larger


def test_the_table_of_numbers_has_the_numbers():
    lines = complexity_table(n=1000, d=20, k=5).splitlines()
    cells = [re.split(r" {2,}", line) for line in lines]
    assert cells == [
        ["mechanism", "work", "steps", "longest path"],
        ["self-attention", "20,000,000", "1", "1"],
        ["recurrence", "400,000", "1,000", "1,000"],
        ["convolution", "2,000,000", "1", "200"],
    ]


def test_columns_of_the_table_stand_below_each_other():
    for table in (complexity_table(), complexity_table(n=1000, d=20)):
        header, *rows = table.splitlines()
        for title in ("work", "steps", "longest path"):
            column = header.index(title)
            assert all(row[column - 2 : column] == "  " and row[column] != " " for row in rows)


@pytest.mark.parametrize("sizes", [{"n": 0, "d": 4}, {"n": 5, "d": -1}, {"n": 5, "d": 4, "k": 0}])
def test_sizes_below_one_are_refused(sizes):
    name, number = next((name, size) for name, size in sizes.items() if size < 1)
    with pytest.raises(ValueError, match=f"{name} must be 1 or more, but it is {number}"):
        complexity(**sizes)


@pytest.mark.parametrize("sizes", [{"n": 5}, {"d": 4}])
def test_numbers_need_both_sizes(sizes):
    with pytest.raises(ValueError, match="numbers need both n and d, but n is"):
        complexity_table(**sizes)
