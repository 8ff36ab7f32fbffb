import math

import pytest
import torch

from regard.attention import Gaussian, attend, weights
from regard.attention.scores.gaussian import distance
from regard.masks import lengths

BATCH, HEADS, QUERIES, KEYS, WIDTH = 2, 3, 5, 7, 12


def by_the_formula(queries, keys, bandwidth):
    """Weigh each key by a Gaussian of its distance, pair by pair in float64."""
    apart = (queries.double()[..., :, None, :] - keys.double()[..., None, :, :]) / bandwidth
    scores = -apart.square().sum(-1) / 2
    heights = (scores - scores.amax(-1, keepdim=True)).exp()
    return heights / heights.sum(-1, keepdim=True)


def test_the_score_is_minus_half_the_square_of_the_distance_in_bandwidths():
    queries, keys = torch.tensor([[0.0, 0.0], [3.0, 4.0]]), torch.tensor([[0.0, 0.0], [0.0, 4.0]])
    # distances 0 and 4, 5 and 3; with a bandwidth of 2 that is 0, 2, 2.5 and 1.5
    want = -0.5 * torch.tensor([[0.0, 4.0], [6.25, 2.25]])
    torch.testing.assert_close(Gaussian(2.0)(queries, keys), want)


def test_one_bandwidth_away_the_weight_has_fallen_to_the_root_of_one_over_e():
    looks = weights(torch.zeros(1, 1), torch.tensor([[0.0], [0.5]]), score=Gaussian(0.5))
    assert (looks[0, 1] / looks[0, 0]).item() == pytest.approx(math.exp(-0.5))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16])
@pytest.mark.parametrize("bandwidth", [0.7, 4.0])
def test_folded_it_weighs_as_the_formula_does(dtype, bandwidth):
    queries = torch.randn(BATCH, HEADS, QUERIES, WIDTH).to(dtype)
    keys = torch.randn(BATCH, HEADS, KEYS, WIDTH).to(dtype)
    folded = Gaussian(bandwidth).to(dtype).fold(queries, keys).absorb_key_bias()
    scores = folded.scale * folded.queries @ folded.keys.mT
    want = by_the_formula(queries, keys, bandwidth)
    tolerance = 1e-12 if dtype == torch.float64 else 1e-5
    torch.testing.assert_close(scores.softmax(-1).double(), want, atol=tolerance, rtol=0)


@pytest.mark.parametrize("backend", [None, "fused", "dense", "blockwise"])
def test_far_from_the_origin_it_is_as_precise_as_near(backend):
    near = torch.rand(QUERIES + KEYS, 2) * 3
    points = near + 1e4  # where float32 has steps of 0.001
    queries, keys, values = points[:QUERIES], points[QUERIES:], torch.randn(KEYS, 6)
    got = attend(queries, keys, values, score=Gaussian(0.5), backend=backend)
    want = by_the_formula(queries, keys, 0.5) @ values.double()
    torch.testing.assert_close(got.double(), want, atol=1e-5, rtol=0)


def test_moving_everything_changes_nothing():
    queries, keys = torch.randn(QUERIES, WIDTH).double(), torch.randn(KEYS, WIDTH).double()
    for move in (queries.new_tensor(3.0), torch.randn(WIDTH).double()):
        looks = weights(queries + move, keys + move, score="gaussian")
        torch.testing.assert_close(looks, weights(queries, keys, score="gaussian"))
        folded = Gaussian().fold(queries + move, keys + move).absorb_key_bias()
        torch.testing.assert_close(
            (folded.queries @ folded.keys.mT).softmax(-1), by_the_formula(queries, keys, 1.0)
        )


def test_no_keys_fold_into_no_scores():
    folded = Gaussian().fold(torch.randn(QUERIES, WIDTH), torch.zeros(0, WIDTH))
    assert (folded.queries @ folded.keys.mT).shape == (QUERIES, 0)
    assert attend(torch.randn(5, 12), torch.zeros(0, 12), score="gaussian").equal(
        torch.zeros(5, 12)
    )


@pytest.mark.parametrize("backend", ["fused", "dense"])
def test_the_bandwidth_learns_by_its_true_slope(backend):
    queries, keys = torch.randn(QUERIES, WIDTH).double(), torch.randn(KEYS, WIDTH).double()
    values = torch.randn(KEYS, 6).double()
    score = Gaussian(3.0, learnable=True).double()
    attend(queries, keys, values, score=score, backend=backend).square().sum().backward()

    def loss(log):
        return (by_the_formula(queries, keys, math.exp(log)) @ values).square().sum().item()

    step, start = 1e-5, math.log(3.0)
    slope = (loss(start + step) - loss(start - step)) / (2 * step)
    (parameter,) = score.parameters()
    assert parameter.grad.item() == pytest.approx(slope, rel=1e-6)


def test_a_fixed_bandwidth_has_nothing_to_learn():
    assert not list(Gaussian(2.0).parameters())


def test_points_that_are_the_same_give_no_nan():
    points = torch.zeros(4, 2, requires_grad=True)
    attend(points, score=Gaussian(), backend="dense").sum().backward()
    assert points.grad.isfinite().all()


def test_the_distance_of_near_points_with_large_norms_is_exact():
    points = torch.tensor([[8192.0, 0.0], [8192.0, 0.25]])
    assert distance(points, points).tolist() == [[0.0, 0.25], [0.25, 0.0]]


def test_distances_of_half_precision_are_measured_in_float32():
    near = distance(torch.full((1, 2), 300.0).half(), torch.zeros(1, 2).half())
    assert near.dtype == torch.float32
    assert near.item() == pytest.approx(300 * math.sqrt(2))  # the square would overflow float16


@pytest.mark.parametrize("bandwidth", [0.0, -1.0, math.nan, math.inf])
def test_a_bandwidth_that_is_not_above_zero_is_refused(bandwidth):
    with pytest.raises(ValueError, match=f"bandwidth must be a finite.*but it is {bandwidth}"):
        Gaussian(bandwidth)


@pytest.mark.parametrize("far", [1e3, 1e6, 1e12])
def test_hidden_keys_cost_no_digits(far):
    words = torch.randn(2, 9, 4)
    astray, mask = words.clone(), lengths([9, 6])
    astray[1, 6:] = far
    seen = attend(words, words, words, score="gaussian", mask=mask)
    torch.testing.assert_close(seen, attend(words, astray, words, score="gaussian", mask=mask))
