import numpy as np
import pytest
import torch

from regard.capture import summary as blocks
from regard.capture.calls.base import Dot, Whole
from regard.capture.summary import Rows, join, reduce, top
from regard.trace import summarize_weights as reduce_whole

ALL = slice(None)


def brute(weights):
    """Reduce by the plain formulas of `regard.trace`."""
    return [reduce_whole(sentence.double().numpy()) for sentence in weights]


def assert_reduced(rows, weights):
    for b, expected in enumerate(brute(weights)):
        for name in Rows._fields:
            mine, theirs = getattr(rows, name)[b].numpy(), getattr(expected, name)
            if name == "top_keys":
                mine = np.take_along_axis(weights[b].numpy(), mine.astype(int), -1)
                mine = mine * (rows.top_weights[b].numpy() > 0)  # places of nothing do not matter
                theirs = expected.top_weights
            np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=2e-5, err_msg=name)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("queries, keys", [(5, 7), (70, 70), (130, 130), (20, 1100)])
def test_blocks_are_reduced_as_the_whole_would_be(queries, keys, causal, monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK", 2**11)  # so that there are many blocks
    q, k = torch.randn(2, 3, queries, 8) * 2, torch.randn(2, 3, keys, 8)
    asked = Dot(q, k, k, is_causal=causal)
    weights = torch.zeros(2, 3, queries, keys)
    found = asked.weigh(ALL, [0, 1, 2], ALL)
    weights[..., : found.shape[-1]] = found
    assert_reduced(reduce(asked, [0, 1, 2], first=0), weights)


def test_some_heads_only():
    weights = torch.rand(2, 4, 5, 7).softmax(-1)
    rows = reduce(Whole(weights), [3, 1], first=0)
    assert_reduced(rows, weights[:, [3, 1]])


def test_heads_that_are_computed_together(monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK", 2**9)
    weights = torch.rand(2, 4, 50, 7).softmax(-1)
    asked = Whole(weights)
    asked.apart = False
    assert_reduced(reduce(asked, [0, 1, 2, 3], first=0), weights)


def test_a_query_that_looks_nowhere_does_not_count():
    weights = torch.rand(2, 3, 5, 7).softmax(-1)
    weights[1, :, 2] = 0
    assert_reduced(reduce(Whole(weights), [0, 1, 2], first=0), weights)


@pytest.mark.parametrize("keys", [5, 64, 1024, 1100])
def test_the_strongest_are_found_in_rows_of_any_length(keys):
    weights = torch.rand(2, 3, keys)
    values, places = top(weights, 8)
    expected = weights.topk(min(8, keys)).values
    assert torch.equal(values, expected)
    assert torch.equal(weights.gather(-1, places), expected)


def test_distance_is_counted_from_where_a_query_stands():
    weights = torch.zeros(1, 1, 2, 7)
    weights[..., 0] = 1
    assert reduce(Whole(weights), [0], first=5).distance.tolist() == [[[5.0, 6.0]]]
    assert reduce(Whole(weights), [0], first=0).distance.tolist() == [[[0.0, 1.0]]]


def test_steps_are_put_below_each_other():
    weights = torch.rand(1, 2, 6, 6).tril()
    weights = weights / weights.sum(-1, keepdim=True)
    steps = [
        Whole(weights[:, :, :3, :3]),
        *(Whole(weights[:, :, n : n + 1, : n + 1]) for n in (3, 4, 5)),
    ]
    joined = join([reduce(step, [0, 1], step.offset) for step in steps], 6)
    assert_reduced(joined, weights)


def test_places_that_a_cache_never_filled_are_left_out():
    weights = torch.zeros(1, 2, 4, 9)
    weights[..., :4] = torch.rand(4, 4).tril()
    steps = [reduce(Whole(weights[:, :, n : n + 1]), [0, 1], first=n) for n in range(4)]
    joined = join(steps, 4)
    assert joined.top_keys.max() < 4
    torch.testing.assert_close(joined.top_weights.sum(-1), weights.sum(-1))


def test_steps_of_long_texts_are_drawn_from_their_strongest_keys():
    weights = torch.rand(1, 2, 100, 100).tril() ** 30 + 1e-9
    weights = (weights / weights.sum(-1, keepdim=True)).tril()
    steps = [Whole(weights[:, :, n : n + 1, : n + 1]) for n in range(100)]
    joined = join([reduce(step, [0, 1], step.offset) for step in steps], 100)
    expected = torch.tensor(brute(weights)[0].tiles)[None]
    assert (joined.tiles - expected).abs().max() < 0.1
    assert torch.allclose(joined.tiles.sum(), expected.sum(), rtol=0.05)
