import math

import pytest
import torch

from regard.attention import NadarayaWatson
from regard.errors import RegardError

POINTS, NEW, WIDTH, OUT = 17, 5, 3, 2
KERNELS = ["average", "gaussian", "boxcar", "triangular", "epanechnikov"]
HEIGHTS = {
    "average": lambda u: 1.0,
    "gaussian": lambda u: math.exp(-(u**2) / 2),
    "boxcar": lambda u: float(u <= 1),
    "triangular": lambda u: max(0.0, 1 - u),
    "epanechnikov": lambda u: max(0.0, 1 - u**2),
}


def by_the_formula(kernel, x, y, new, bandwidth, hide=None):
    """Predict one output at one place: the sum of K y over the sum of K, point by point."""
    heights = [
        0.0 if number == hide else HEIGHTS[kernel](math.dist(point, new) / bandwidth)
        for number, point in enumerate(x)
    ]
    total = sum(heights)
    return sum(h * value for h, value in zip(heights, y, strict=True)) / total if total else 0.0


def error_without_self(kernel, x, y, bandwidth):
    """Predict each point from all the others, and give the mean square of the error."""
    guesses = [by_the_formula(kernel, x, y, x[i], bandwidth, hide=i) for i in range(len(x))]
    return sum((guess - value) ** 2 for guess, value in zip(guesses, y, strict=True)) / len(y)


def wave(points=50):
    """The example of the textbooks: a curve between 0 and 5, with noise."""
    x = torch.rand(points).mul(5).sort().values.double()
    return x, 2 * x.sin() + x**0.8 + 0.3 * torch.randn(points).double()


@pytest.mark.parametrize("kernel", KERNELS)
def test_predictions_are_means_weighed_by_the_kernel(kernel):
    x, y = wave(POINTS)
    new = torch.linspace(-1, 6, NEW).double()
    model = NadarayaWatson(kernel, bandwidth=0.8).fit(x, y)
    want = [
        by_the_formula(kernel, x[:, None].tolist(), y.tolist(), [at], 0.8) for at in new.tolist()
    ]
    torch.testing.assert_close(model.predict(new), torch.tensor(want).double())


@pytest.mark.parametrize("kernel", KERNELS)
def test_points_may_have_several_numbers_and_several_outputs(kernel):
    x, y = torch.rand(POINTS, WIDTH).double(), torch.randn(POINTS, OUT).double()
    new = torch.rand(NEW, WIDTH).double()
    got = NadarayaWatson(kernel, bandwidth=0.6).fit(x, y).predict(new)
    assert got.shape == (NEW, OUT)
    for place in range(NEW):
        for out in range(OUT):
            values, at = y[:, out].tolist(), new[place].tolist()
            want = by_the_formula(kernel, x.tolist(), values, at, 0.6)
            assert got[place, out].item() == pytest.approx(want)


def test_the_average_is_the_mean_everywhere():
    x, y = wave()
    predicted = NadarayaWatson("average").fit(x, y).predict([-1e6, 0.0, 2.5, 1e6])
    torch.testing.assert_close(predicted, y.mean().expand(4))


@pytest.mark.parametrize("kernel", ["boxcar", "triangular", "epanechnikov"])
def test_a_place_without_neighbours_is_exactly_zero(kernel):
    x, y = wave()
    model = NadarayaWatson(kernel, bandwidth=0.5).fit(x, y)
    assert model.predict([-1.0, 99.0]).tolist() == [0, 0]
    assert not model.weights([-1.0, 99.0]).any()


def test_a_gaussian_far_from_all_points_takes_the_nearest():
    model = NadarayaWatson(bandwidth=0.1).fit([0.0, 1.0, 2.0], [5.0, 6.0, 7.0])
    assert model.predict([-50.0, 50.0]).tolist() == [5, 7]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("outputs", [(), (OUT,)], ids=["one", "several"])
def test_weights_are_rows_of_one_or_zero_that_make_the_prediction(kernel, outputs):
    x, y = torch.rand(POINTS, WIDTH), torch.randn(POINTS, *outputs)
    new = torch.cat([torch.rand(NEW, WIDTH), torch.full((1, WIDTH), 9.0)])
    model = NadarayaWatson(kernel, bandwidth=0.5).fit(x, y)
    looks = model.weights(new)
    assert looks.shape == (NEW + 1, POINTS)
    assert (looks >= 0).all()
    sums = looks.sum(-1)
    assert (sums.sub(1).abs() < 1e-6).logical_or(sums == 0).all()
    torch.testing.assert_close(looks @ y, model.predict(new))


@pytest.mark.parametrize("start", [0.0, 1e4, -1e4])
def test_far_from_the_origin_predictions_are_as_precise_as_near(start):
    x = (torch.rand(POINTS) * 5 + start).float()
    y, new = torch.randn(POINTS), torch.rand(NEW) * 5 + start
    got = NadarayaWatson(bandwidth=0.5).fit(x, y).predict(new)
    want = [
        by_the_formula("gaussian", x[:, None].tolist(), y.tolist(), [at], 0.5)
        for at in new.tolist()
    ]
    torch.testing.assert_close(got, torch.tensor(want), atol=1e-5, rtol=0)


def test_points_thousands_of_bandwidths_apart_stay_precise():
    x = torch.arange(4000.0)
    y = torch.randn(4000)
    got = NadarayaWatson(bandwidth=0.5).fit(x, y).predict([10.25, 3990.75])
    for at, predicted in zip((10.25, 3990.75), got.tolist(), strict=True):
        want = by_the_formula("gaussian", x[:, None].tolist(), y.tolist(), [at], 0.5)
        assert predicted == pytest.approx(want, abs=1e-5)


@pytest.mark.parametrize("start", [0.02, 1.0, 30.0])
def test_a_learned_bandwidth_is_the_best_around(start):
    x, y = wave()
    model = NadarayaWatson(bandwidth=start, learnable=True).fit(x, y)
    points, values = x[:, None].tolist(), y.tolist()
    reached = error_without_self("gaussian", points, values, model.bandwidth)
    for factor in (1 / 4, 1 / 2, 0.8, 0.9, 0.95, 0.98, 0.99, 1.01, 1.02, 1.05, 1.1, 1.25, 2, 4):
        there = error_without_self("gaussian", points, values, model.bandwidth * factor)
        assert reached <= there + 1e-9, factor
    step = 1e-3
    slope = (
        error_without_self("gaussian", points, values, model.bandwidth * math.exp(step))
        - error_without_self("gaussian", points, values, model.bandwidth * math.exp(-step))
    ) / (2 * step)
    assert abs(slope) < 1e-4


@pytest.mark.parametrize("kernel", ["triangular", "epanechnikov"])
def test_kernels_that_end_learn_a_bandwidth_better_than_any_octave_of_the_start(kernel):
    x, y = wave()
    model = NadarayaWatson(kernel, bandwidth=1.0, learnable=True).fit(x, y)
    points, values = x[:, None].tolist(), y.tolist()
    reached = error_without_self(kernel, points, values, model.bandwidth)
    for octave in range(-4, 5):
        assert reached <= error_without_self(kernel, points, values, 2.0**octave) + 1e-9


def test_a_learned_bandwidth_predicts_better_than_the_average_and_than_a_poor_guess():
    x, y = wave(100)
    truth = 2 * x.sin() + x**0.8

    def miss(model):
        return (model.fit(x, y).predict(x) - truth).square().mean()

    learned = miss(NadarayaWatson(bandwidth=3.0, learnable=True))
    assert learned < miss(NadarayaWatson(bandwidth=3.0)) / 2
    assert learned < miss(NadarayaWatson("average")) / 2


def test_the_bandwidth_is_learned_from_points_far_apart_as_precisely_as_near():
    x = torch.rand(1000).mul(1000).float()  # about two thousand bandwidths
    y = x.sin()
    single = NadarayaWatson(learnable=True).fit(x, y).bandwidth
    double = NadarayaWatson(learnable=True).fit(x.double(), y.double()).bandwidth
    assert single == pytest.approx(double, rel=1e-3)


def test_a_fixed_bandwidth_stays():
    assert NadarayaWatson(bandwidth=0.3).fit(*wave()).bandwidth == pytest.approx(0.3)


def test_one_point_teaches_no_bandwidth():
    model = NadarayaWatson(bandwidth=0.3, learnable=True).fit([1.0], [2.0])
    assert model.bandwidth == pytest.approx(0.3)
    assert model.predict([5.0]).tolist() == [2]


def test_fitting_again_forgets_the_points_before():
    model = NadarayaWatson("average")
    assert model.fit([0.0], [1.0]) is model
    assert model.fit([0.0, 1.0], [3.0, 5.0]).predict([0.0]).tolist() == [4]


def test_whole_numbers_and_lists_are_taken_as_numbers():
    model = NadarayaWatson("boxcar", bandwidth=1.5).fit(torch.arange(4), torch.tensor([0, 2, 4, 6]))
    assert model.predict(torch.tensor([1])).tolist() == [2]
    model = NadarayaWatson("average").fit([[0.0, 1.0], [2.0, 3.0]], [[1.0], [3.0]])
    assert model.predict([[0.0, 0.0]]).tolist() == [[2.0]]


def test_predictions_have_the_shape_of_y():
    x = torch.rand(POINTS)
    assert NadarayaWatson().fit(x, torch.rand(POINTS)).predict(x[:NEW]).shape == (NEW,)
    assert NadarayaWatson().fit(x, torch.rand(POINTS, 1)).predict(x[:NEW]).shape == (NEW, 1)
    assert NadarayaWatson().fit(x, torch.rand(POINTS)).predict([]).shape == (0,)


def test_predicting_builds_no_graph():
    model = NadarayaWatson(learnable=True).fit(*wave(10))
    assert not model.predict([1.0]).requires_grad
    assert not model.weights([1.0]).requires_grad


@pytest.mark.parametrize("bandwidth", [0.0, -1.0, math.nan, math.inf])
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_bandwidth_that_is_not_above_zero_is_refused(kernel, bandwidth):
    with pytest.raises(ValueError, match=f"bandwidth must be a finite.*but it is {bandwidth}"):
        NadarayaWatson(kernel, bandwidth)


def test_an_unknown_kernel_offers_the_nearest():
    with pytest.raises(RegardError, match="no kernel is called 'gausian'. Did you mean 'gaussian'"):
        NadarayaWatson("gausian")


@pytest.mark.parametrize(
    ("kernel", "words"),
    [("average", "has no bandwidth to learn"), ("boxcar", "a boxcar kernel cannot be learned")],
)
def test_kernels_without_a_slope_learn_no_bandwidth(kernel, words):
    with pytest.raises(ValueError, match=words):
        NadarayaWatson(kernel, learnable=True)


@pytest.mark.parametrize(
    ("x", "y", "words"),
    [
        ([1.0, 2.0], [1.0], "x and y must have as many points, but have 2, 1"),
        ([], [], "x and y must have one point or more, but there is none"),
        ([1.0, math.nan], [1.0, 2.0], "x must hold finite numbers only"),
        ([1.0, 2.0], [1.0, math.inf], "y must hold finite numbers only"),
        (torch.ones(2, 3, 4), [1.0, 2.0], r"x must be \(point,\) or.*\(2, 3, 4\)"),
        ([1.0], torch.tensor(1.0), r"y must be \(point,\) or \(point, width\).*\(\)"),
    ],
)
def test_points_that_cannot_be_fitted_are_refused(x, y, words):
    with pytest.raises(ValueError, match=words):
        NadarayaWatson().fit(x, y)


def test_nothing_can_be_predicted_before_fit():
    for ask in (NadarayaWatson().predict, NadarayaWatson().weights):
        with pytest.raises(ValueError, match=r"nothing to predict from before fit\(x, y\)"):
            ask([1.0])


@pytest.mark.parametrize(
    ("x", "words"),
    [
        (torch.rand(NEW, 4), "x must have 3 numbers a point, as in fit, but it has 4"),
        (torch.rand(NEW), "x must have 3 numbers a point, as in fit, but it has 1"),
        (torch.full((NEW, 3), torch.nan), "x must hold finite numbers only"),
    ],
)
def test_places_of_another_kind_are_refused(x, words):
    model = NadarayaWatson().fit(torch.rand(POINTS, 3), torch.rand(POINTS))
    for ask in (model.predict, model.weights):
        with pytest.raises(ValueError, match=words):
            ask(x)


@pytest.mark.parametrize("width", [1, 64, 512])
def test_predictions_are_the_weighted_mean_in_any_number_of_dimensions(width):
    near = 0.7 * torch.randn(20, width) / width**0.5
    x, y = torch.cat([near, near + 253]), torch.randn(40)
    model = NadarayaWatson().fit(x, y)
    new = x[20:] + 0.1 * torch.randn(20, width) / width**0.5
    torch.testing.assert_close(model.predict(new), model.weights(new) @ y, rtol=0, atol=2e-3)


@pytest.mark.parametrize("kernel", ["gaussian", "triangular", "epanechnikov"])
@pytest.mark.parametrize("size", [1e-6, 1e6])
def test_a_bandwidth_is_learned_whatever_the_scale_of_x(kernel, size):
    x = torch.linspace(0, size, 200)
    y = torch.sin(10 * x / size)
    model = NadarayaWatson(kernel, learnable=True).fit(x, y)
    assert 1e-4 * size < model.bandwidth < 0.3 * size
    assert (model.predict(x) - y).square().mean() < 1e-3


def test_points_are_kept_as_they_were():
    x, y = torch.arange(4.0), torch.arange(4.0)
    model = NadarayaWatson().fit(x, y)
    before = model.predict(x)
    y.zero_()
    assert torch.equal(model.predict(x), before)


def test_a_bandwidth_can_be_learned_in_inference_mode():
    model = NadarayaWatson(learnable=True)
    with torch.inference_mode():
        x = torch.linspace(0, 3, 20)
        model.fit(x, x.sin())
    assert model.bandwidth != 1.0
