import math

import numpy as np
import pytest
import torch

from regard.attention import NadarayaWatson
from regard.errors import RegardError

POINTS, QUERIES, WIDTH, OUTPUTS = 17, 5, 3, 2
KERNELS = ["average", "gaussian", "boxcar", "triangular", "epanechnikov"]
PROFILES = {
    "average": lambda u: 1.0,
    "gaussian": lambda u: math.exp(-(u**2) / 2),
    "boxcar": lambda u: float(u <= 1),
    "triangular": lambda u: max(0.0, 1 - u),
    "epanechnikov": lambda u: max(0.0, 1 - u**2),
}


def formula(kernel, x, y, query, bandwidth, exclude=None):
    """Predict one output at one point: the sum of K y over the sum of K, point by point."""
    values = [
        0.0 if index == exclude else PROFILES[kernel](math.dist(point, query) / bandwidth)
        for index, point in enumerate(x)
    ]
    total = sum(values)
    return sum(k * value for k, value in zip(values, y, strict=True)) / total if total else 0.0


def leave_one_out_error(kernel, x, y, bandwidth):
    """Return the mean squared error of predicting each point from all the others."""
    predicted = [formula(kernel, x, y, x[i], bandwidth, exclude=i) for i in range(len(x))]
    return sum((p - value) ** 2 for p, value in zip(predicted, y, strict=True)) / len(y)


def wave(points=50):
    """Draw the textbook example: a curve between 0 and 5, with noise."""
    x = torch.rand(points).mul(5).sort().values.double()
    return x, 2 * x.sin() + x**0.8 + 0.3 * torch.randn(points).double()


@pytest.mark.parametrize("kernel", KERNELS)
def test_predictions_agree_with_the_formula(kernel):
    x, y = wave(POINTS)
    queries = torch.linspace(-1, 6, QUERIES).double()
    model = NadarayaWatson(kernel, bandwidth=0.8).fit(x, y)
    expected = [
        formula(kernel, x[:, None].tolist(), y.tolist(), [at], 0.8) for at in queries.tolist()
    ]
    torch.testing.assert_close(model.predict(queries), torch.tensor(expected).double())


@pytest.mark.parametrize("kernel", KERNELS)
def test_predictions_of_several_inputs_and_outputs_agree_with_the_formula(kernel):
    x, y = torch.rand(POINTS, WIDTH).double(), torch.randn(POINTS, OUTPUTS).double()
    queries = torch.rand(QUERIES, WIDTH).double()
    predicted = NadarayaWatson(kernel, bandwidth=0.6).fit(x, y).predict(queries)
    assert predicted.shape == (QUERIES, OUTPUTS)
    for query in range(QUERIES):
        for output in range(OUTPUTS):
            values, at = y[:, output].tolist(), queries[query].tolist()
            expected = formula(kernel, x.tolist(), values, at, 0.6)
            assert predicted[query, output].item() == pytest.approx(expected)


def test_average_kernel_predicts_the_mean_everywhere():
    x, y = wave()
    predicted = NadarayaWatson("average").fit(x, y).predict([-1e6, 0.0, 2.5, 1e6])
    torch.testing.assert_close(predicted, y.mean().expand(4))


@pytest.mark.parametrize("kernel", ["boxcar", "triangular", "epanechnikov"])
def test_prediction_without_neighbours_is_exactly_zero(kernel):
    x, y = wave()
    model = NadarayaWatson(kernel, bandwidth=0.5).fit(x, y)
    assert model.predict([-1.0, 99.0]).tolist() == [0, 0]
    assert not model.weights([-1.0, 99.0]).any()


def test_gaussian_far_from_all_points_predicts_the_nearest():
    model = NadarayaWatson(bandwidth=0.1).fit([0.0, 1.0, 2.0], [5.0, 6.0, 7.0])
    assert model.predict([-50.0, 50.0]).tolist() == [5, 7]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("outputs", [(), (OUTPUTS,)], ids=["one", "several"])
def test_weights_sum_to_one_or_zero_and_give_the_prediction(kernel, outputs):
    x, y = torch.rand(POINTS, WIDTH), torch.randn(POINTS, *outputs)
    queries = torch.cat([torch.rand(QUERIES, WIDTH), torch.full((1, WIDTH), 9.0)])
    model = NadarayaWatson(kernel, bandwidth=0.5).fit(x, y)
    weights = model.weights(queries)
    assert weights.shape == (QUERIES + 1, POINTS)
    assert (weights >= 0).all()
    sums = weights.sum(-1)
    assert (sums.sub(1).abs() < 1e-6).logical_or(sums == 0).all()
    torch.testing.assert_close(weights @ y, model.predict(queries))


@pytest.mark.parametrize("origin", [0.0, 1e4, -1e4])
def test_predictions_far_from_the_origin_keep_their_precision(origin):
    x = (torch.rand(POINTS) * 5 + origin).float()
    y, queries = torch.randn(POINTS), torch.rand(QUERIES) * 5 + origin
    predicted = NadarayaWatson(bandwidth=0.5).fit(x, y).predict(queries)
    expected = [
        formula("gaussian", x[:, None].tolist(), y.tolist(), [at], 0.5) for at in queries.tolist()
    ]
    torch.testing.assert_close(predicted, torch.tensor(expected), atol=1e-5, rtol=0)


def test_predictions_of_points_thousands_of_bandwidths_apart_keep_their_precision():
    x = torch.arange(4000.0)
    y = torch.randn(4000)
    predictions = NadarayaWatson(bandwidth=0.5).fit(x, y).predict([10.25, 3990.75])
    for at, predicted in zip((10.25, 3990.75), predictions.tolist(), strict=True):
        expected = formula("gaussian", x[:, None].tolist(), y.tolist(), [at], 0.5)
        assert predicted == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("initial", [0.02, 1.0, 30.0])
def test_learned_bandwidth_is_a_minimum_of_the_leave_one_out_error(initial):
    x, y = wave()
    model = NadarayaWatson(bandwidth=initial, learnable=True).fit(x, y)
    points, values = x[:, None].tolist(), y.tolist()
    reached = leave_one_out_error("gaussian", points, values, model.bandwidth)
    for factor in (1 / 4, 1 / 2, 0.8, 0.9, 0.95, 0.98, 0.99, 1.01, 1.02, 1.05, 1.1, 1.25, 2, 4):
        other = leave_one_out_error("gaussian", points, values, model.bandwidth * factor)
        assert reached <= other + 1e-9, factor
    step = 1e-3
    slope = (
        leave_one_out_error("gaussian", points, values, model.bandwidth * math.exp(step))
        - leave_one_out_error("gaussian", points, values, model.bandwidth * math.exp(-step))
    ) / (2 * step)
    assert abs(slope) < 1e-4


@pytest.mark.parametrize("kernel", ["triangular", "epanechnikov"])
def test_bandwidth_of_finite_support_is_better_than_any_octave_of_the_initial(kernel):
    x, y = wave()
    model = NadarayaWatson(kernel, bandwidth=1.0, learnable=True).fit(x, y)
    points, values = x[:, None].tolist(), y.tolist()
    reached = leave_one_out_error(kernel, points, values, model.bandwidth)
    for octave in range(-4, 5):
        assert reached <= leave_one_out_error(kernel, points, values, 2.0**octave) + 1e-9


def test_learned_bandwidth_halves_the_error_of_average_and_poor_bandwidth():
    x, y = wave(100)
    truth = 2 * x.sin() + x**0.8

    def error(model):
        return (model.fit(x, y).predict(x) - truth).square().mean()

    learned = error(NadarayaWatson(bandwidth=3.0, learnable=True))
    assert learned < error(NadarayaWatson(bandwidth=3.0)) / 2
    assert learned < error(NadarayaWatson("average")) / 2


@pytest.mark.train
def test_bandwidth_learned_in_float32_agrees_with_float64_far_apart():
    x = torch.rand(1000).mul(1000).float()  # about two thousand bandwidths
    y = x.sin()
    single = NadarayaWatson(learnable=True).fit(x, y).bandwidth
    double = NadarayaWatson(learnable=True).fit(x.double(), y.double()).bandwidth
    assert single == pytest.approx(double, rel=1e-3)


def test_fixed_bandwidth_is_not_changed_by_fit():
    assert NadarayaWatson(bandwidth=0.3).fit(*wave()).bandwidth == pytest.approx(0.3)


def test_single_point_leaves_the_bandwidth_at_its_initial_value():
    model = NadarayaWatson(bandwidth=0.3, learnable=True).fit([1.0], [2.0])
    assert model.bandwidth == pytest.approx(0.3)
    assert model.predict([5.0]).tolist() == [2]


def test_second_fit_replaces_the_points():
    model = NadarayaWatson("average")
    assert model.fit([0.0], [1.0]) is model
    assert model.fit([0.0, 1.0], [3.0, 5.0]).predict([0.0]).tolist() == [4]


def test_integers_and_lists_are_accepted_as_points():
    model = NadarayaWatson("boxcar", bandwidth=1.5).fit(torch.arange(4), torch.tensor([0, 2, 4, 6]))
    assert model.predict(torch.tensor([1])).tolist() == [2]
    model = NadarayaWatson("average").fit([[0.0, 1.0], [2.0, 3.0]], [[1.0], [3.0]])
    assert model.predict([[0.0, 0.0]]).tolist() == [[2.0]]


def test_predictions_have_the_axes_of_y():
    x = torch.rand(POINTS)
    assert NadarayaWatson().fit(x, torch.rand(POINTS)).predict(x[:QUERIES]).shape == (QUERIES,)
    assert NadarayaWatson().fit(x, torch.rand(POINTS, 1)).predict(x[:QUERIES]).shape == (QUERIES, 1)
    assert NadarayaWatson().fit(x, torch.rand(POINTS)).predict([]).shape == (0,)


def test_predict_and_weights_require_no_grad():
    model = NadarayaWatson(learnable=True).fit(*wave(10))
    assert not model.predict([1.0]).requires_grad
    assert not model.weights([1.0]).requires_grad


@pytest.mark.parametrize("bandwidth", [0.0, -1.0, math.nan, math.inf])
@pytest.mark.parametrize("kernel", KERNELS)
def test_bandwidth_that_is_not_above_zero_is_refused(kernel, bandwidth):
    with pytest.raises(RegardError, match=f"bandwidth must be finite.*but it is {bandwidth}"):
        NadarayaWatson(kernel, bandwidth)


def test_unknown_kernel_is_refused_with_the_nearest():
    with pytest.raises(RegardError, match="no kernel is called 'gausian'. Did you mean 'gaussian'"):
        NadarayaWatson("gausian")


@pytest.mark.parametrize(
    ("kernel", "message"),
    [("average", "has no bandwidth to learn"), ("boxcar", "a boxcar kernel cannot be learned")],
)
def test_constant_kernel_with_learnable_bandwidth_is_refused(kernel, message):
    with pytest.raises(RegardError, match=message):
        NadarayaWatson(kernel, learnable=True)


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        ([1.0, 2.0], [1.0], "x and y must have equally many points, but have 2 and 1"),
        ([], [], "x and y must have one point or more, but there is none"),
        ([1.0, math.nan], [1.0, 2.0], "x must be finite"),
        ([1.0, 2.0], [1.0, math.inf], "y must be finite"),
        (torch.ones(2, 3, 4), [1.0, 2.0], r"x must be \(point,\) or.*\(2, 3, 4\)"),
        ([1.0], torch.tensor(1.0), r"y must be \(point,\) or \(point, width\).*\(\)"),
    ],
)
def test_invalid_points_are_refused(x, y, message):
    with pytest.raises(RegardError, match=message):
        NadarayaWatson().fit(x, y)


def test_predict_before_fit_is_refused():
    for method in (NadarayaWatson().predict, NadarayaWatson().weights):
        with pytest.raises(RegardError, match=r"no points yet; call fit\(x, y\) first"):
            method([1.0])


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (torch.rand(QUERIES, 4), "x must have a width of 3, as in fit, but it is 4"),
        (torch.rand(QUERIES), "x must have a width of 3, as in fit, but it is 1"),
        (torch.full((QUERIES, 3), torch.nan), "x must be finite"),
    ],
)
def test_invalid_queries_are_refused(x, message):
    model = NadarayaWatson().fit(torch.rand(POINTS, 3), torch.rand(POINTS))
    for method in (model.predict, model.weights):
        with pytest.raises(RegardError, match=message):
            method(x)


@pytest.mark.parametrize("width", [1, 64, 512])
def test_predictions_agree_with_the_weights_in_any_number_of_dimensions(width):
    near = 0.7 * torch.randn(20, width) / width**0.5
    x, y = torch.cat([near, near + 253]), torch.randn(40)
    model = NadarayaWatson().fit(x, y)
    queries = x[20:] + 0.1 * torch.randn(20, width) / width**0.5
    torch.testing.assert_close(
        model.predict(queries), model.weights(queries) @ y, rtol=0, atol=2e-3
    )


@pytest.mark.parametrize("kernel", ["gaussian", "triangular", "epanechnikov"])
@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_bandwidth_is_learned_at_any_scale_of_x(kernel, scale):
    x = torch.linspace(0, scale, 200)
    y = torch.sin(10 * x / scale)
    model = NadarayaWatson(kernel, learnable=True).fit(x, y)
    assert 1e-4 * scale < model.bandwidth < 0.3 * scale
    assert (model.predict(x) - y).square().mean() < 1e-3


def test_points_are_copied_by_fit():
    x, y = torch.arange(4.0), torch.arange(4.0)
    model = NadarayaWatson().fit(x, y)
    before = model.predict(x)
    y.zero_()
    assert torch.equal(model.predict(x), before)


def test_bandwidth_can_be_learned_in_inference_mode():
    model = NadarayaWatson(learnable=True)
    with torch.inference_mode():
        x = torch.linspace(0, 3, 20)
        model.fit(x, x.sin())
    assert model.bandwidth != 1.0


@pytest.mark.parametrize("x", [[[0.0], [1.0, 2.0]], ["a", "b"], "ab", None])
def test_points_that_are_no_table_of_numbers_are_refused(x, unchecked):
    with pytest.raises(RegardError, match="^x must be numbers, .point,. or rows of equal lengths"):
        NadarayaWatson().fit(x, [1.0, 2.0])
    with pytest.raises(RegardError, match="^y must be numbers, .point,. or rows of equal lengths"):
        NadarayaWatson().fit([1.0, 2.0], x)


def test_arrays_of_numpy_are_points():
    x, y = np.array([0.0, 1.0, 5.0]), np.array([2.0, 4.0, 9.0])
    model = NadarayaWatson("boxcar").fit(x, y)
    assert model.predict(np.array([0.5, 5.0])).tolist() == [3, 9]


def test_repr_shows_the_present_bandwidth():
    model = NadarayaWatson("gaussian", bandwidth=0.5, learnable=True)
    assert repr(model) == "NadarayaWatson('gaussian', bandwidth=0.5, learnable=True)"
    model.fit(*wave())
    assert (
        repr(model)
        == f"NadarayaWatson('gaussian', bandwidth={model.bandwidth:.4g}, learnable=True)"
    )
