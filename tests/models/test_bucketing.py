import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.models.bucketing import LEAST, WASTE, placed, portions

LENGTHS = st.lists(st.integers(1, 60), min_size=1, max_size=300).map(torch.tensor)


@given(LENGTHS)
def test_every_sentence_is_in_one_portion_and_they_fall_in_length(lengths):
    rows = torch.cat(portions(lengths))
    assert sorted(rows.tolist()) == list(range(len(lengths)))
    assert lengths[rows].tolist() == sorted(lengths.tolist(), reverse=True)


@given(LENGTHS)
def test_portions_fill_the_kernels_and_hold_little_padding(lengths):
    apart = portions(lengths)
    assert all(len(rows) for rows in apart)
    for rows in apart[:-1]:  # the last one takes what is left
        assert lengths[rows].sum() >= LEAST
    for rows in apart:
        read, tokens = len(rows) * lengths[rows].max(), lengths[rows].sum()
        # as many tokens as fill the kernels are read with whatever padding that takes
        assert tokens >= (1 - WASTE) * read or tokens - lengths[rows[-1]] < LEAST


def test_sentences_of_one_length_are_one_portion():
    (rows,) = portions(torch.full((5000,), 7))
    assert rows.tolist() == list(range(5000))


@pytest.mark.parametrize("axis", [-1, -2])
def test_parts_come_to_their_rows_and_the_rest_is_zero(axis):
    long, short = torch.randn(1, 3, 3), torch.randn(2, 3, 3).narrow(axis, 0, 2)
    whole = placed([long, short], [torch.tensor([1]), torch.tensor([2, 0])], axis)
    assert torch.equal(whole[1], long[0])
    shorter = whole[[2, 0]]
    assert torch.equal(shorter.narrow(axis, 0, 2), short)
    assert shorter.narrow(axis, 2, 1).count_nonzero() == 0


def test_parts_keep_their_gradients():
    parts = [torch.randn(1, 4, requires_grad=True), torch.randn(1, 2, requires_grad=True)]
    placed(parts, [torch.tensor([1]), torch.tensor([0])], axis=-1).sum().backward()
    for part in parts:
        assert torch.equal(part.grad, torch.ones_like(part))
