import pytest
import torch

from regard.capture.calls import SDPACall, SlidingWindowCall

QUERIES, KEYS, DROPPED = 2, 7, 3


@pytest.fixture
def vectors():
    """Queries at the end of a text, and its keys and values."""
    return [torch.randn(2, 4, count, 6) for count in (QUERIES, KEYS, KEYS)]


def call_without_dropped(queries, keys, values, mask=None):
    mask = None if mask is None else mask[..., DROPPED:]
    return SDPACall(queries, keys[:, :, DROPPED:], values[:, :, DROPPED:], mask)


@pytest.mark.parametrize("padded", [False, True])
def test_dropped_keys_count_as_masked(vectors, padded):
    mask = (torch.arange(KEYS) >= DROPPED).expand(2, 1, QUERIES, KEYS).clone()
    if padded:
        mask[0, ..., DROPPED + 1] = False
    full = SDPACall(*vectors, mask)
    window = SlidingWindowCall(call_without_dropped(*vectors, mask if padded else None), DROPPED)
    assert window.shape == full.shape and window.offset == full.offset
    assert window.visible_keys(QUERIES) == full.visible_keys(QUERIES) == KEYS
    block = (slice(1), [1, 3], slice(1, 2))
    torch.testing.assert_close(window.weights(*block), full.weights(*block))
    assert torch.equal(window.fully_masked_keys(), full.fully_masked_keys())


def test_remaining_keys_and_values_keep_their_positions(vectors):
    window = SlidingWindowCall(call_without_dropped(*vectors), DROPPED)
    for rows, all_rows in ((window.raw_keys, vectors[1]), (window.values, vectors[2])):
        assert torch.equal(rows[:, :, DROPPED:], all_rows[:, :, DROPPED:])
        assert not rows[:, :, :DROPPED].any()
