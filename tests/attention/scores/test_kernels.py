import math

import pytest
import torch

from regard.attention import Kernel, attend, make_score, weights
from regard.attention.scores import boxcar, epanechnikov, triangular, uniform
from regard.errors import RegardError

QUERIES, KEYS, WIDTH = 5, 7, 12
FINITE_SUPPORT = [boxcar, triangular, epanechnikov]


@pytest.mark.parametrize(
    ("profile", "expected"),
    [
        (uniform, [1, 1, 1, 1]),
        (boxcar, [1, 1, 1, 0]),
        (triangular, [1, 1 / 2, 0, -1]),
        (epanechnikov, [1, 3 / 4, 0, -3]),
    ],
)
def test_profiles_worked_by_hand(profile, expected):
    assert profile(torch.tensor([0.0, 0.5, 1.0, 2.0])).tolist() == expected


@pytest.mark.parametrize(
    ("profile", "expected"),
    [
        # keys 0, 1 and 3 away from the query are at 0, ½ and 1½ bandwidths of 2
        (uniform, [1 / 3, 1 / 3, 1 / 3]),
        (boxcar, [1 / 2, 1 / 2, 0]),
        (triangular, [2 / 3, 1 / 3, 0]),
        (epanechnikov, [4 / 7, 3 / 7, 0]),
    ],
)
def test_weights_are_normalised_profiles(profile, expected):
    keys = torch.tensor([[5.0], [6.0], [8.0]])
    computed = weights(torch.tensor([[5.0]]), keys, score=Kernel(profile, bandwidth=2.0))
    torch.testing.assert_close(computed, torch.tensor([expected]))
    assert all(weight == 0 for weight, x in zip(computed[0], expected, strict=True) if x == 0)


@pytest.mark.parametrize("profile", FINITE_SUPPORT)
def test_scores_are_logarithms_of_profiles(profile):
    queries, keys = torch.randn(2, 3, QUERIES, WIDTH), torch.randn(2, 3, KEYS, WIDTH)
    scores = Kernel(profile, bandwidth=5.0)(queries, keys)
    distance = (queries[..., :, None, :] - keys[..., None, :, :]).norm(dim=-1) / 5.0
    torch.testing.assert_close(scores.exp(), profile(distance).clamp(min=0))
    assert (scores == -math.inf).any()
    assert (scores > -math.inf).any()


@pytest.mark.parametrize("backend", ["dense", "blockwise"])
@pytest.mark.parametrize("profile", FINITE_SUPPORT)
def test_query_without_neighbours_gets_zeros_and_no_gradient(profile, backend):
    queries = torch.tensor([[0.0, 0.0], [99.0, 0.0]], requires_grad=True)
    keys = torch.rand(KEYS, 2).div(4).requires_grad_()
    values = torch.randn(KEYS, 3, requires_grad=True)
    score = Kernel(profile, bandwidth=1.0, learnable=profile is not boxcar)
    context = attend(queries, keys, values, score=score, backend=backend)
    assert context[1].tolist() == [0, 0, 0]
    assert weights(queries, keys, score=score)[1].tolist() == [0] * KEYS
    inputs = [queries, keys, values, *score.parameters()]
    (context * torch.randn(2, 3)).sum().backward()
    assert all(x.grad is None or x.grad.isfinite().all() for x in inputs)
    assert queries.grad is None or queries.grad[1].tolist() == [0, 0]
    assert values.grad.abs().sum() > 0


@pytest.mark.parametrize("profile", [triangular, epanechnikov])
def test_key_exactly_one_bandwidth_away_has_a_finite_gradient(profile):
    queries = torch.zeros(1, 1, requires_grad=True)
    keys = torch.tensor([[0.5], [2.0]], requires_grad=True)  # log has an infinite slope at 2
    score = Kernel(profile, bandwidth=2.0)
    assert weights(queries, keys, score=score).tolist() == [[1, 0]]
    attend(queries, keys, torch.tensor([[3.0], [5.0]]), score=score).sum().backward()
    assert queries.grad.isfinite().all()
    assert keys.grad.isfinite().all()


@pytest.mark.parametrize("profile", [triangular, epanechnikov])
def test_gradient_of_the_bandwidth_agrees_with_finite_differences(profile):
    queries, keys = torch.rand(QUERIES, 2).double(), torch.rand(KEYS, 2).double()
    values = torch.randn(KEYS, 3).double()
    score = Kernel(profile, bandwidth=2.0, learnable=True).double()
    attend(queries, keys, values, score=score).square().sum().backward()

    def loss(bandwidth):
        shape = profile(torch.cdist(queries, keys) / bandwidth).clamp(min=0)
        return (shape / shape.sum(-1, keepdim=True) @ values).square().sum().item()

    # with respect to the logarithm of the bandwidth, which is the parameter
    slope = (loss(2 * math.exp(1e-5)) - loss(2 * math.exp(-1e-5))) / 2e-5
    (parameter,) = score.parameters()
    assert parameter.grad.item() == pytest.approx(slope, rel=1e-5)


def test_custom_profile_makes_a_kernel():
    def cauchy(distance):
        return 1 / (1 + distance**2)

    computed = weights(torch.zeros(1, 1), torch.tensor([[0.0], [2.0]]), score=Kernel(cauchy, 2.0))
    torch.testing.assert_close(computed, torch.tensor([[2 / 3, 1 / 3]]))


@pytest.mark.parametrize("name", ["average", "boxcar", "triangular", "epanechnikov"])
def test_kernels_are_scores_by_name(name):
    assert isinstance(make_score(name), Kernel)


@pytest.mark.parametrize("profile", [uniform, boxcar])
def test_constant_profile_with_learnable_bandwidth_is_refused(profile):
    message = (
        f"bandwidth of a {profile.__name__} kernel cannot be learned.*triangular, epanechnikov"
    )
    with pytest.raises(RegardError, match=message):
        Kernel(profile, learnable=True)


@pytest.mark.parametrize("bandwidth", [0.0, -1.0, math.nan])
def test_bandwidth_that_is_not_above_zero_is_refused(bandwidth):
    with pytest.raises(RegardError, match=f"bandwidth must be finite.*but it is {bandwidth}"):
        Kernel(triangular, bandwidth)


def test_repr_names_the_kernel():
    assert repr(Kernel(triangular, 2.0)).startswith("Kernel(\n  triangular\n")
