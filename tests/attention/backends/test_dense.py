import pytest
import torch

from regard.attention import MultiHeadAttention, attend, look
from regard.attention.backends import dense
from regard.attention.call import prepare_call


def job(queries, keys, **changed):
    settings = {"values": None, "score": "dot", "mask": None, "bias": None, "offset": None}
    return prepare_call(queries, keys, **(settings | changed))


def test_score_weigh_and_gather_by_hand():
    # scores ln 1, ln 3: weights 1/4 and 3/4 of the values 8 and 4
    queries, keys = torch.ones(1, 1), torch.tensor([[1.0], [3.0]]).log()
    values = torch.tensor([[8.0], [4.0]])
    step = job(queries, keys, values=values)
    scores = dense.score(step, queries)
    torch.testing.assert_close(scores, torch.tensor([[1.0, 3.0]]).log())
    weights = dense.weigh(step, scores, step.shape)
    torch.testing.assert_close(weights, torch.tensor([[0.25, 0.75]]))
    torch.testing.assert_close(dense.gather(step, weights, 0.0), torch.tensor([[5.0]]))


def test_scores_are_not_written_over():
    queries, keys = torch.randn(5, 12), torch.randn(7, 12)
    step = job(queries, keys, mask=torch.rand(5, 7) > 0.5, bias=torch.randn(5, 7))
    scores = dense.score(step, queries)
    before = scores.clone()
    dense.weigh(step, scores, step.shape)
    assert torch.equal(scores, before)


def test_all_weights_dropped_gather_nothing():
    queries, keys = torch.randn(5, 12), torch.randn(7, 12)
    assert (dense.attend(job(queries, keys), dropout=1.0) == 0).all()


def products(queries, keys):
    """Score as a user would, in whatever precision the vectors have."""
    return queries @ keys.mT


@pytest.mark.parametrize("backend", [None, "dense", "blockwise"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_a_function_may_score_in_half_precision(dtype, backend):
    shapes = (2, 6, 5, 12), (2, 3, 7, 12), (2, 3, 7, 4)
    inputs = [(torch.randn(shape) / 2).to(dtype) for shape in shapes]
    mask = torch.rand(2, 6, 5, 7) > 0.3
    context, looks = look(*inputs, score=products, mask=mask, backend=backend)
    assert context.dtype == looks.dtype == dtype
    assert torch.equal(context, attend(*inputs, score=products, mask=mask, backend=backend))
    wide = attend(*(rows.float() for rows in inputs), score=products, mask=mask)
    torch.testing.assert_close(context.float(), wide, rtol=0, atol=3e-2)


def test_heads_in_half_precision_take_a_function_as_their_score():
    attention = MultiHeadAttention(12, 3, score=products).to(torch.bfloat16)
    assert attention(torch.randn(2, 5, 12).to(torch.bfloat16)).dtype == torch.bfloat16
