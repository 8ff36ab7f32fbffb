import pytest
import torch

from regard.capture.calls.base import Dot
from regard.capture.calls.sliding_window import Sliding

QUERIES, KEYS, DROPPED = 2, 7, 3


@pytest.fixture
def given():
    """Queries at the end of a text, and its keys and values."""
    return [torch.randn(2, 4, count, 6) for count in (QUERIES, KEYS, KEYS)]


def without_the_first(queries, keys, values, mask=None):
    mask = None if mask is None else mask[..., DROPPED:]
    return Dot(queries, keys[:, :, DROPPED:], values[:, :, DROPPED:], mask)


@pytest.mark.parametrize("padded", [False, True])
def test_what_was_dropped_reads_as_hidden(given, padded):
    mask = (torch.arange(KEYS) >= DROPPED).expand(2, 1, QUERIES, KEYS).clone()
    if padded:
        mask[0, ..., DROPPED + 1] = False
    whole = Dot(*given, mask)
    slid = Sliding(without_the_first(*given, mask if padded else None), DROPPED)
    assert slid.sizes == whole.sizes and slid.offset == whole.offset
    assert slid.reach(QUERIES) == whole.reach(QUERIES) == KEYS
    some = (slice(1), [1, 3], slice(1, 2))
    torch.testing.assert_close(slid.weigh(*some), whole.weigh(*some))
    assert torch.equal(slid.hidden(), whole.hidden())


def test_rows_stand_where_they_stood(given):
    slid = Sliding(without_the_first(*given), DROPPED)
    for rows, all_rows in ((slid.memory, given[1]), (slid.values, given[2])):
        assert torch.equal(rows[:, :, DROPPED:], all_rows[:, :, DROPPED:])
        assert not rows[:, :, :DROPPED].any()
