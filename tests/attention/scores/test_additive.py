from functools import partial

import pytest
import torch

from helpers import formulas
from regard.attention import Additive, attend
from regard.attention.scores import additive
from regard.attention.scores.additive import TanhSum


def pairs(a, b, v):
    return torch.tanh(a[..., :, None, :] + b[..., None, :, :]) @ v


def test_scores_are_the_formula_for_different_widths():
    score = Additive(query_width=12, key_width=4, hidden_width=9).double()
    queries, keys = torch.randn(2, 3, 5, 12).double(), torch.randn(2, 3, 7, 4).double()
    expected = formulas.scores("additive", queries, keys, score)
    torch.testing.assert_close(score(queries, keys), expected)
    assert score.widths == (12, 4)


@pytest.mark.parametrize("numbers", [1, 7, 60, 1000])
def test_tiles_of_any_size_give_the_same_scores_and_gradients(numbers, monkeypatch):
    monkeypatch.setattr(additive, "TILE", numbers)
    score = TanhSum(4).double()
    a = torch.randn(3, 5, 4, dtype=torch.float64, requires_grad=True)
    b = torch.randn(3, 7, 4, dtype=torch.float64, requires_grad=True)
    inputs = (a, b, score.v)
    mine = score(a, b)
    theirs = pairs(a, b, score.v)
    torch.testing.assert_close(mine, theirs)
    coming_back = torch.randn_like(theirs)
    for got, wanted in zip(
        torch.autograd.grad(mine, inputs, coming_back),
        torch.autograd.grad(theirs, inputs, coming_back),
        strict=True,
    ):
        torch.testing.assert_close(got, wanted)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize(
    ("queries_at", "spread", "keys_at"),
    [
        (0, 1, 0),
        (0, 40, 0),
        (0, 1e4, 0),
        (1e3, 1, -1e3),
        (-500, 20, 505),
        (0, 31, -90),
        (0, 29, 55),
    ],
)
def test_sums_out_of_the_range_of_exponentials_are_right(queries_at, spread, keys_at, dtype):
    a = (queries_at + spread * (2 * torch.rand(5, 12) - 1)).to(dtype)
    b = (keys_at + torch.randn(7, 12)).to(dtype)
    v = torch.randn(12).to(dtype)
    score = TanhSum(12).to(dtype)
    score.v.data = v
    expected = pairs(a.double(), b.double(), v.double())
    # a sum of numbers around 1000 is itself only known to 6e-5 in float32
    close = 1e-11 if dtype == torch.float64 else 3e-5 * max(1, abs(queries_at) / 100)
    torch.testing.assert_close(score(a, b).double(), expected, rtol=0, atol=close)


@pytest.mark.parametrize("strange", [torch.inf, -torch.inf])
def test_infinite_projections_saturate_like_tanh(strange):
    score = TanhSum(3)
    a = torch.tensor([[strange, 0.0, 0.0], [0.0, 0.0, 0.0]])
    b = torch.randn(4, 3)
    torch.testing.assert_close(score(a, b), pairs(a, b, score.v))


def test_keys_can_be_projected_once_and_compared_many_times():
    score = Additive(12, 4, 9)
    queries, keys, values = torch.randn(2, 5, 12), torch.randn(2, 7, 4), torch.randn(2, 7, 6)
    whole = attend(queries, keys, values, score=score)
    projected = score.project_keys(keys)
    for i in range(5):
        one = attend(score.project_queries(queries[:, i]), projected, values, score=score.compare)
        torch.testing.assert_close(one, whole[:, i])


def test_gradients_can_be_differentiated_in_turn():
    score, queries, keys = Additive(3).double(), *torch.randn(2, 2, 4, 3, dtype=torch.float64)
    given = [x.requires_grad_() for x in (queries, keys)]
    assert torch.autograd.gradgradcheck(lambda *pair: score(*pair), given)
    blockwise = partial(attend, score=score, backend="blockwise")
    assert torch.autograd.gradgradcheck(blockwise, given)
    found = torch.autograd.functional.hessian(
        lambda x: attend(x, keys.detach(), score=score).square().sum(), queries.detach()
    )
    wanted = torch.autograd.functional.hessian(
        lambda x: attend(x, keys.detach(), score=lambda q, k: by_hand(score, q, k)).square().sum(),
        queries.detach(),
    )
    torch.testing.assert_close(found, wanted)


def by_hand(score, queries, keys):
    a, b = score.project_queries(queries), score.project_keys(keys)
    return torch.tanh(a[..., :, None, :] + b[..., None, :, :]) @ score.compare.v
