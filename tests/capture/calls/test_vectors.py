import pytest
import torch

from regard import masks
from regard.attention import SCORE_NAMES, make_score
from regard.attention.call import prepare_call
from regard.capture.calls import (
    FlexCall,
    MaterializedWeights,
    QueryKeyVectors,
    SDPACall,
    SlidingWindowCall,
    capture_regard_call,
)
from regard.errors import RegardError

ALL = slice(None)


def scores_of(vectors):
    """Return all scores of a call, computed element by element."""
    batch, heads = max(len(vectors.queries), len(vectors.keys)), vectors.num_heads
    queries, keys = vectors.queries.shape[2], vectors.keys.shape[2]
    return torch.tensor(
        [
            [
                [[vectors.products(b, h, q, k).sum() for k in range(keys)] for q in range(queries)]
                for h in range(heads)
            ]
            for b in range(batch)
        ]
    )


def test_products_of_sdpa_sum_to_the_score():
    queries, keys = torch.randn(2, 3, 5, 8), torch.randn(2, 3, 7, 8)
    call = SDPACall(queries, keys, keys, scale=0.7)
    scores = scores_of(call.vectors())
    torch.testing.assert_close(scores, queries @ keys.transpose(-2, -1) * 0.7)
    torch.testing.assert_close(scores.softmax(-1), call.weights(ALL, [0, 1, 2], ALL))


def test_grouped_query_heads_share_the_key_of_their_group():
    queries, keys = torch.randn(2, 4, 3, 8), torch.randn(2, 2, 5, 8)
    vectors = SDPACall(queries, keys, keys, enable_gqa=True).vectors()
    query, key = vectors.pair(1, 2, 0, 4)
    assert torch.equal(query, queries[1, 2, 0]) and torch.equal(key, keys[1, 1, 4])


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("name", SCORE_NAMES)
def test_products_of_regard_scores_have_the_softmax_of_the_weights(name, grouped):
    score = make_score(name, (12, 12))
    queries, keys = torch.randn(2, 4, 5, 12), torch.randn(2, 2 if grouped else 4, 7, 12)
    mask = masks.lengths([7, 7])  # not an SDPACall, and hides nothing
    with torch.no_grad():
        call = capture_regard_call(prepare_call(queries, keys, None, score, mask, None, None))
        vectors = call.vectors()
        if not score.is_dot_product:
            assert vectors is None
            return
        weights = call.weights(ALL, [0, 1, 2, 3], ALL)
        torch.testing.assert_close(scores_of(vectors).softmax(-1), weights, rtol=1e-4, atol=1e-5)


def test_flex_attention_has_vectors_without_its_score_function():
    x = torch.randn(1, 2, 4, 16)
    mask = (None, lambda b, h, q, k: q.new_ones((), dtype=torch.bool))
    call = FlexCall(x, x, x, lambda score, *_: score + 1.0, mask, 0.5)
    scores = scores_of(call.vectors())
    torch.testing.assert_close(scores, x @ x.transpose(-2, -1) * 0.5)
    torch.testing.assert_close(scores.softmax(-1), call.weights(ALL, [0, 1], ALL))


def test_dropped_keys_are_zeros_and_come_from_earlier_steps():
    queries, keys = torch.randn(1, 2, 6, 8), torch.randn(1, 2, 6, 8)
    before = SDPACall(queries[:, :, :4], keys[:, :, :4], keys[:, :, :4]).vectors()
    step = SDPACall(queries[:, :, 4:5], keys[:, :, 2:5], keys[:, :, 2:5])  # a window of 3
    padded = SlidingWindowCall(step, 2).vectors()
    assert padded.keys.shape == (1, 2, 5, 8) and not padded.keys[:, :, :2].any()
    joined = before.append_step(padded, dropped=2)
    assert torch.equal(joined.queries, queries[:, :, :5])
    assert torch.equal(joined.keys, keys[:, :, :5])


def test_written_out_weights_have_no_vectors_unless_given():
    weights = torch.rand(1, 2, 3, 4).softmax(-1)
    assert MaterializedWeights(weights).vectors() is None
    given = QueryKeyVectors(torch.randn(1, 2, 3, 8), torch.randn(1, 2, 4, 8), 1.0)
    assert MaterializedWeights(weights, vectors=given).vectors() is given


def test_detached_copy_does_not_change_with_the_model():
    queries = torch.randn(1, 2, 3, 8, dtype=torch.bfloat16, requires_grad=True)
    copy = QueryKeyVectors(queries, queries, 1.0).detached()
    before = copy.queries.clone()
    queries.data.zero_()
    assert torch.equal(copy.queries, before)
    assert copy.queries.dtype == torch.float32 and not copy.keys.requires_grad


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ((2, 0, 0, 0), "batch must be from 0 to 1, but it is 2"),
        ((0, 3, 0, 0), "head must be from 0 to 2, but it is 3"),
        ((0, 0, -1, 0), "query must be from 0 to 4, but it is -1"),
        ((0, 0, 0, 7), "key must be from 0 to 6, but it is 7"),
    ],
)
def test_missing_cell_is_refused(cell, message):
    vectors = QueryKeyVectors(torch.randn(2, 3, 5, 8), torch.randn(2, 3, 7, 8), 1.0)
    with pytest.raises(RegardError, match=message):
        vectors.pair(*cell)
