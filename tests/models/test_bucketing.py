"""Length bucketing of a batch."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.models.bucketing import (
    MAX_PADDING,
    MIN_BUCKET_TOKENS,
    length_buckets,
    scatter_rows,
)

LENGTHS = st.lists(st.integers(1, 60), min_size=1, max_size=300).map(torch.tensor)


@given(LENGTHS)
def test_every_item_is_in_one_bucket_and_lengths_descend(lengths):
    rows = torch.cat(length_buckets(lengths))
    assert sorted(rows.tolist()) == list(range(len(lengths)))
    assert lengths[rows].tolist() == sorted(lengths.tolist(), reverse=True)


@given(LENGTHS)
def test_buckets_have_enough_tokens_and_little_padding(lengths):
    buckets = length_buckets(lengths)
    assert all(len(rows) for rows in buckets)
    for rows in buckets[:-1]:  # the last one takes what is left
        assert lengths[rows].sum() >= MIN_BUCKET_TOKENS
    for rows in buckets:
        padded, tokens = len(rows) * lengths[rows].max(), lengths[rows].sum()
        # the first MIN_BUCKET_TOKENS are taken with whatever padding they bring
        enough = tokens - lengths[rows[-1]] < MIN_BUCKET_TOKENS
        assert tokens >= (1 - MAX_PADDING) * padded or enough


def test_items_of_one_length_are_one_bucket():
    (rows,) = length_buckets(torch.full((5000,), 7))
    assert rows.tolist() == list(range(5000))


@pytest.mark.parametrize("axis", [-1, -2])
def test_scatter_rows_puts_parts_at_their_rows_and_pads_with_zeros(axis):
    long, short = torch.randn(1, 3, 3), torch.randn(2, 3, 3).narrow(axis, 0, 2)
    batch = scatter_rows([long, short], [torch.tensor([1]), torch.tensor([2, 0])], axis)
    assert torch.equal(batch[1], long[0])
    padded = batch[[2, 0]]
    assert torch.equal(padded.narrow(axis, 0, 2), short)
    assert padded.narrow(axis, 2, 1).count_nonzero() == 0


def test_scatter_rows_passes_gradients_to_the_parts():
    parts = [torch.randn(1, 4, requires_grad=True), torch.randn(1, 2, requires_grad=True)]
    scatter_rows(parts, [torch.tensor([1]), torch.tensor([0])], axis=-1).sum().backward()
    for part in parts:
        assert torch.equal(part.grad, torch.ones_like(part))
