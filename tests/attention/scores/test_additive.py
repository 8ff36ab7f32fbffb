from functools import partial

import pytest
import torch

from helpers import formulas
from regard.attention import Additive, attend
from regard.attention.scores import TanhSum, additive


def tanh_sums(a, b, v):
    return torch.tanh(a[..., :, None, :] + b[..., None, :, :]) @ v


def test_scores_of_different_widths_agree_with_the_formula():
    score = Additive(query_width=12, key_width=4, hidden_width=9).double()
    queries, keys = torch.randn(2, 3, 5, 12).double(), torch.randn(2, 3, 7, 4).double()
    expected = formulas.scores("additive", queries, keys, score)
    torch.testing.assert_close(score(queries, keys), expected)
    assert score.widths == (12, 4)


@pytest.mark.parametrize("elements", [1, 7, 60, 1000])
def test_tiles_of_any_size_give_the_same_scores_and_gradients(elements, monkeypatch):
    monkeypatch.setattr(additive, "TILE_ELEMENTS", elements)
    score = TanhSum(4).double()
    a = torch.randn(3, 5, 4, dtype=torch.float64, requires_grad=True)
    b = torch.randn(3, 7, 4, dtype=torch.float64, requires_grad=True)
    inputs = (a, b, score.v)
    computed = score(a, b)
    expected = tanh_sums(a, b, score.v)
    torch.testing.assert_close(computed, expected)
    grad_output = torch.randn_like(expected)
    for gradient, expected_gradient in zip(
        torch.autograd.grad(computed, inputs, grad_output),
        torch.autograd.grad(expected, inputs, grad_output),
        strict=True,
    ):
        torch.testing.assert_close(gradient, expected_gradient)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize(
    ("query_centre", "spread", "key_centre"),
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
def test_sums_beyond_the_range_of_exponentials_agree_with_tanh(
    query_centre, spread, key_centre, dtype
):
    a = (query_centre + spread * (2 * torch.rand(5, 12) - 1)).to(dtype)
    b = (key_centre + torch.randn(7, 12)).to(dtype)
    v = torch.randn(12).to(dtype)
    score = TanhSum(12).to(dtype)
    score.v.data = v
    expected = tanh_sums(a.double(), b.double(), v.double())
    # a sum around 1000 is itself only known to 6e-5 in float32
    tolerance = 1e-11 if dtype == torch.float64 else 3e-5 * max(1, abs(query_centre) / 100)
    torch.testing.assert_close(score(a, b).double(), expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("infinity", [torch.inf, -torch.inf])
def test_infinite_projections_saturate_like_tanh(infinity):
    score = TanhSum(3)
    a = torch.tensor([[infinity, 0.0, 0.0], [0.0, 0.0, 0.0]])
    b = torch.randn(4, 3)
    torch.testing.assert_close(score(a, b), tanh_sums(a, b, score.v))


def test_keys_projected_once_give_the_same_context_for_every_query():
    score = Additive(12, 4, 9)
    queries, keys, values = torch.randn(2, 5, 12), torch.randn(2, 7, 4), torch.randn(2, 7, 6)
    expected = attend(queries, keys, values, score=score)
    projected = score.project_keys(keys)
    for i in range(5):
        query = score.project_queries(queries[:, i])
        context = attend(query, projected, values, score=score.pairwise)
        torch.testing.assert_close(context, expected[:, i])


def test_double_backward_passes_gradgradcheck_and_agrees_with_the_formula():
    score, queries, keys = Additive(3).double(), *torch.randn(2, 2, 4, 3, dtype=torch.float64)
    inputs = [x.requires_grad_() for x in (queries, keys)]
    assert torch.autograd.gradgradcheck(lambda *pair: score(*pair), inputs)
    blockwise = partial(attend, score=score, backend="blockwise")
    assert torch.autograd.gradgradcheck(blockwise, inputs)
    computed = torch.autograd.functional.hessian(
        lambda x: attend(x, keys.detach(), score=score).square().sum(), queries.detach()
    )
    expected = torch.autograd.functional.hessian(
        lambda x: attend(x, keys.detach(), score=lambda q, k: formula(score, q, k)).square().sum(),
        queries.detach(),
    )
    torch.testing.assert_close(computed, expected)


def formula(score, queries, keys):
    a, b = score.project_queries(queries), score.project_keys(keys)
    return tanh_sums(a, b, score.pairwise.v)
