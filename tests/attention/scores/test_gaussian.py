import math

import pytest
import torch

from helpers import no_float64
from regard.attention import Cosine, Gaussian, Kernel, attend, weights
from regard.attention.scores.gaussian import distances
from regard.attention.scores.kernels import triangular
from regard.errors import RegardError
from regard.masks import lengths

BATCH, HEADS, QUERIES, KEYS, WIDTH = 2, 3, 5, 7, 12


def expected_weights(queries, keys, bandwidth):
    """Weigh each key by a Gaussian of its distance, pair by pair in float64."""
    difference = (queries.double()[..., :, None, :] - keys.double()[..., None, :, :]) / bandwidth
    scores = -difference.square().sum(-1) / 2
    exponentials = (scores - scores.amax(-1, keepdim=True)).exp()
    return exponentials / exponentials.sum(-1, keepdim=True)


def test_score_is_minus_half_the_squared_distance_in_bandwidths():
    queries, keys = torch.tensor([[0.0, 0.0], [3.0, 4.0]]), torch.tensor([[0.0, 0.0], [0.0, 4.0]])
    # distances 0 and 4, 5 and 3; with a bandwidth of 2 that is 0, 2, 2.5 and 1.5
    expected = -0.5 * torch.tensor([[0.0, 4.0], [6.25, 2.25]])
    torch.testing.assert_close(Gaussian(2.0)(queries, keys), expected)


def test_weight_one_bandwidth_away_is_smaller_by_the_root_of_e():
    computed = weights(torch.zeros(1, 1), torch.tensor([[0.0], [0.5]]), score=Gaussian(0.5))
    assert (computed[0, 1] / computed[0, 0]).item() == pytest.approx(math.exp(-0.5))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16])
@pytest.mark.parametrize("bandwidth", [0.7, 4.0])
def test_dot_product_form_agrees_with_the_formula(dtype, bandwidth):
    queries = torch.randn(BATCH, HEADS, QUERIES, WIDTH).to(dtype)
    keys = torch.randn(BATCH, HEADS, KEYS, WIDTH).to(dtype)
    form = Gaussian(bandwidth).to(dtype).fold(queries, keys).absorb_key_bias()
    scores = form.scale * form.queries @ form.keys.mT
    expected = expected_weights(queries, keys, bandwidth)
    tolerance = 1e-12 if dtype == torch.float64 else 1e-5
    torch.testing.assert_close(scores.softmax(-1).double(), expected, atol=tolerance, rtol=0)


@pytest.mark.parametrize("backend", [None, "fused", "dense", "blockwise"])
def test_points_far_from_the_origin_keep_their_precision(backend):
    points = torch.rand(QUERIES + KEYS, 2) * 3 + 1e4  # where float32 has steps of 0.001
    queries, keys, values = points[:QUERIES], points[QUERIES:], torch.randn(KEYS, 6)
    computed = attend(queries, keys, values, score=Gaussian(0.5), backend=backend)
    expected = expected_weights(queries, keys, 0.5) @ values.double()
    torch.testing.assert_close(computed.double(), expected, atol=1e-5, rtol=0)


def test_weights_are_invariant_to_translation():
    queries, keys = torch.randn(QUERIES, WIDTH).double(), torch.randn(KEYS, WIDTH).double()
    for shift in (queries.new_tensor(3.0), torch.randn(WIDTH).double()):
        shifted = weights(queries + shift, keys + shift, score="gaussian")
        torch.testing.assert_close(shifted, weights(queries, keys, score="gaussian"))
        form = Gaussian().fold(queries + shift, keys + shift).absorb_key_bias()
        torch.testing.assert_close(
            (form.queries @ form.keys.mT).softmax(-1), expected_weights(queries, keys, 1.0)
        )


def test_no_keys_give_no_scores_and_zero_context():
    form = Gaussian().fold(torch.randn(QUERIES, WIDTH), torch.zeros(0, WIDTH))
    assert (form.queries @ form.keys.mT).shape == (QUERIES, 0)
    assert attend(torch.randn(5, 12), torch.zeros(0, 12), score="gaussian").equal(
        torch.zeros(5, 12)
    )


@pytest.mark.parametrize("backend", ["fused", "dense"])
def test_gradient_of_the_bandwidth_agrees_with_finite_differences(backend):
    queries, keys = torch.randn(QUERIES, WIDTH).double(), torch.randn(KEYS, WIDTH).double()
    values = torch.randn(KEYS, 6).double()
    score = Gaussian(3.0, learnable=True).double()
    attend(queries, keys, values, score=score, backend=backend).square().sum().backward()

    def loss(log):
        return (expected_weights(queries, keys, math.exp(log)) @ values).square().sum().item()

    step, start = 1e-5, math.log(3.0)
    slope = (loss(start + step) - loss(start - step)) / (2 * step)
    (parameter,) = score.parameters()
    assert parameter.grad.item() == pytest.approx(slope, rel=1e-6)


def test_fixed_bandwidth_is_no_parameter():
    assert not list(Gaussian(2.0).parameters())


def test_coinciding_points_have_a_finite_gradient():
    points = torch.zeros(4, 2, requires_grad=True)
    attend(points, score=Gaussian(), backend="dense").sum().backward()
    assert points.grad.isfinite().all()


def test_distance_of_near_points_with_large_norms_is_exact():
    points = torch.tensor([[8192.0, 0.0], [8192.0, 0.25]])
    assert distances(points, points).tolist() == [[0.0, 0.25], [0.25, 0.0]]


def test_distances_of_half_precision_are_computed_in_float32():
    computed = distances(torch.full((1, 2), 300.0).half(), torch.zeros(1, 2).half())
    assert computed.dtype == torch.float32
    assert computed.item() == pytest.approx(300 * math.sqrt(2))  # the square would overflow float16


@pytest.mark.parametrize("bandwidth", [0.0, -1.0, math.nan, math.inf])
def test_bandwidth_that_is_not_above_zero_is_refused(bandwidth):
    with pytest.raises(RegardError, match=f"bandwidth must be finite.*but it is {bandwidth}"):
        Gaussian(bandwidth)


@pytest.mark.parametrize("outlier", [1e3, 1e6, 1e12])
def test_masked_outliers_do_not_reduce_precision(outlier):
    words = torch.randn(2, 9, 4)
    keys, mask = words.clone(), lengths([9, 6])
    keys[1, 6:] = outlier
    expected = attend(words, words, words, score="gaussian", mask=mask)
    computed = attend(words, keys, words, score="gaussian", mask=mask)
    torch.testing.assert_close(computed, expected)


@pytest.mark.parametrize(
    "score",
    [Gaussian(0.5), Gaussian(0.5, learnable=True), Kernel(triangular, 1e4), Cosine(0.5)],
    ids=["gaussian", "learnable", "triangular", "cosine"],
)
@pytest.mark.parametrize("extent", [1.0, 1e3, 1e15])
def test_devices_without_float64_give_the_context_of_the_cpu(score, extent):
    inputs = extent * torch.rand(QUERIES, 2), extent * torch.rand(KEYS, 2), torch.randn(KEYS, 6)
    expected = attend(*inputs, score=score, backend="dense")
    with no_float64.SimulatedDevice():
        moved = [tensor.to(no_float64.DEVICE) for tensor in inputs]
        computed = attend(*moved, score=no_float64.copy_of(score), backend="dense")
        assert computed.device == no_float64.DEVICE
        computed = computed.cpu()
    torch.testing.assert_close(computed, expected)
