import math

import pytest
import torch

from regard.attention import Kernel, attend, make_score, weights
from regard.attention.scores.kernels import boxcar, epanechnikov, triangular, uniform

QUERIES, KEYS, WIDTH = 5, 7, 12
ENDING = [boxcar, triangular, epanechnikov]


@pytest.mark.parametrize(
    ("height", "want"),
    [
        (uniform, [1, 1, 1, 1]),
        (boxcar, [1, 1, 1, 0]),
        (triangular, [1, 1 / 2, 0, -1]),
        (epanechnikov, [1, 3 / 4, 0, -3]),
    ],
)
def test_heights_by_hand(height, want):
    assert height(torch.tensor([0.0, 0.5, 1.0, 2.0])).tolist() == want


@pytest.mark.parametrize(
    ("height", "want"),
    [
        # keys 0, 1 and 3 away from the query are at 0, ½ and 1½ bandwidths of 2
        (uniform, [1 / 3, 1 / 3, 1 / 3]),
        (boxcar, [1 / 2, 1 / 2, 0]),
        (triangular, [2 / 3, 1 / 3, 0]),
        (epanechnikov, [4 / 7, 3 / 7, 0]),
    ],
)
def test_weights_are_shares_of_the_heights(height, want):
    keys = torch.tensor([[5.0], [6.0], [8.0]])
    looks = weights(torch.tensor([[5.0]]), keys, score=Kernel(height, bandwidth=2.0))
    torch.testing.assert_close(looks, torch.tensor([want]))
    assert all(look == 0 for look, share in zip(looks[0], want, strict=True) if share == 0)


@pytest.mark.parametrize("height", ENDING)
def test_scores_are_logarithms_of_heights(height):
    queries, keys = torch.randn(2, 3, QUERIES, WIDTH), torch.randn(2, 3, KEYS, WIDTH)
    scores = Kernel(height, bandwidth=5.0)(queries, keys)
    apart = (queries[..., :, None, :] - keys[..., None, :, :]).norm(dim=-1) / 5.0
    torch.testing.assert_close(scores.exp(), height(apart).clamp(min=0))
    assert (scores == -math.inf).any()
    assert (scores > -math.inf).any()


@pytest.mark.parametrize("backend", ["dense", "blockwise"])
@pytest.mark.parametrize("height", ENDING)
def test_a_query_without_neighbours_sees_nothing_and_learns_nothing(height, backend):
    queries = torch.tensor([[0.0, 0.0], [99.0, 0.0]], requires_grad=True)
    keys = torch.rand(KEYS, 2).div(4).requires_grad_()
    values = torch.randn(KEYS, 3, requires_grad=True)
    score = Kernel(height, bandwidth=1.0, learnable=height is not boxcar)
    context = attend(queries, keys, values, score=score, backend=backend)
    assert context[1].tolist() == [0, 0, 0]
    assert weights(queries, keys, score=score)[1].tolist() == [0] * KEYS
    inputs = [queries, keys, values, *score.parameters()]
    (context * torch.randn(2, 3)).sum().backward()
    assert all(numbers.grad is None or numbers.grad.isfinite().all() for numbers in inputs)
    assert queries.grad is None or queries.grad[1].tolist() == [0, 0]
    assert values.grad.abs().sum() > 0


@pytest.mark.parametrize("height", [triangular, epanechnikov])
def test_a_key_exactly_one_bandwidth_away_gives_no_nan(height):
    queries = torch.zeros(1, 1, requires_grad=True)
    keys = torch.tensor([[0.5], [2.0]], requires_grad=True)  # log has an infinite slope at 2
    score = Kernel(height, bandwidth=2.0)
    assert weights(queries, keys, score=score).tolist() == [[1, 0]]
    attend(queries, keys, torch.tensor([[3.0], [5.0]]), score=score).sum().backward()
    assert queries.grad.isfinite().all()
    assert keys.grad.isfinite().all()


@pytest.mark.parametrize("height", [triangular, epanechnikov])
def test_the_bandwidth_learns_by_its_true_slope(height):
    queries, keys = torch.rand(QUERIES, 2).double(), torch.rand(KEYS, 2).double()
    values = torch.randn(KEYS, 3).double()
    score = Kernel(height, bandwidth=2.0, learnable=True).double()
    attend(queries, keys, values, score=score).square().sum().backward()

    def loss(bandwidth):
        tall = height(torch.cdist(queries, keys) / bandwidth).clamp(min=0)
        return (tall / tall.sum(-1, keepdim=True) @ values).square().sum().item()

    # by the logarithm of the bandwidth, which is what is learned
    slope = (loss(2 * math.exp(1e-5)) - loss(2 * math.exp(-1e-5))) / 2e-5
    (parameter,) = score.parameters()
    assert parameter.grad.item() == pytest.approx(slope, rel=1e-5)


def test_any_height_makes_a_kernel():
    def cauchy(apart):
        return 1 / (1 + apart**2)

    looks = weights(torch.zeros(1, 1), torch.tensor([[0.0], [2.0]]), score=Kernel(cauchy, 2.0))
    torch.testing.assert_close(looks, torch.tensor([[2 / 3, 1 / 3]]))


@pytest.mark.parametrize("name", ["average", "boxcar", "triangular", "epanechnikov"])
def test_kernels_are_scores_by_name(name):
    assert isinstance(make_score(name), Kernel)


@pytest.mark.parametrize("height", [uniform, boxcar])
def test_a_height_that_does_not_change_has_no_bandwidth_to_learn(height):
    words = f"bandwidth of a {height.__name__} kernel cannot be learned.*triangular, epanechnikov"
    with pytest.raises(ValueError, match=words):
        Kernel(height, learnable=True)


@pytest.mark.parametrize("bandwidth", [0.0, -1.0, math.nan])
def test_a_bandwidth_that_is_not_above_zero_is_refused(bandwidth):
    with pytest.raises(ValueError, match=f"bandwidth must be a finite.*but it is {bandwidth}"):
        Kernel(triangular, bandwidth)


def test_the_repr_names_the_kernel():
    assert repr(Kernel(triangular, 2.0)).startswith("Kernel(\n  triangular\n")
