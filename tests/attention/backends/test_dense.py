import torch

from regard.attention.backends import dense
from regard.attention.call import prepare_call


def make_call(queries, keys, **changes):
    defaults = {"values": None, "score": "dot", "mask": None, "bias": None, "offset": None}
    return prepare_call(queries, keys, **(defaults | changes))


def test_score_softmax_and_weighted_sum_worked_by_hand():
    # scores ln 1, ln 3: weights 1/4 and 3/4 of the values 8 and 4
    queries, keys = torch.ones(1, 1), torch.tensor([[1.0], [3.0]]).log()
    call = make_call(queries, keys, values=torch.tensor([[8.0], [4.0]]))
    scores = dense.score(call, queries)
    torch.testing.assert_close(scores, torch.tensor([[1.0, 3.0]]).log())
    weights = dense.softmax(call, scores, call.shape)
    torch.testing.assert_close(weights, torch.tensor([[0.25, 0.75]]))
    torch.testing.assert_close(dense.weighted_sum(call, weights, 0.0), torch.tensor([[5.0]]))


def test_softmax_with_mask_and_bias_leaves_the_scores_unchanged():
    queries, keys = torch.randn(5, 12), torch.randn(7, 12)
    call = make_call(queries, keys, mask=torch.rand(5, 7) > 0.5, bias=torch.randn(5, 7))
    scores = dense.score(call, queries)
    copy = scores.clone()
    dense.softmax(call, scores, call.shape)
    assert torch.equal(scores, copy)


def test_dropout_of_all_weights_gives_zero_context():
    call = make_call(torch.randn(5, 12), torch.randn(7, 12))
    assert (dense.attend(call, dropout=1.0) == 0).all()
