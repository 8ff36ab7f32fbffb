import pytest
import torch

from regard.gallery import figure_page
from regard.gallery.kernel_regression import draw, fitted_models, points, truth


@pytest.fixture(scope="module")
def pictures():
    return draw()


def test_weights_are_gaussian_in_distance(pictures):
    x, (centres, _) = torch.linspace(0, 6, 61), points()
    drawn = [torch.tensor(axes.images[0].get_array()) for axes in pictures["weights"].axes[:3]]
    assert torch.allclose(drawn[0], torch.tensor(1 / 60, dtype=drawn[0].dtype))
    for matrix, model in zip(drawn[1:], list(fitted_models().values())[1:], strict=True):
        heights = torch.exp(-((x[:, None] - centres) ** 2) / (2 * model.bandwidth**2))
        expected = heights / heights.sum(-1, keepdim=True)
        assert torch.allclose(matrix, expected.to(matrix.dtype), atol=1e-5)


def test_learned_bandwidth_has_the_lowest_error_and_matches_the_text():
    x = torch.linspace(0, 6, 200)
    models = fitted_models()
    errors = [(model.predict(x) - truth(x)).square().mean().item() for model in models.values()]
    assert errors == sorted(errors, reverse=True)
    expected = (models["learned"].bandwidth, errors[1], errors[2])
    for text in figure_page.load_page("kernel_regression").texts.values():
        assert all(f"{number:.2f}" in " ".join(text.notice) for number in expected)


def test_average_is_constant_and_kernels_vanish_beyond_the_bandwidth(pictures):
    fits, kernels = pictures["fits"], pictures["kernels"]
    average = points()[1].mean().item()
    assert fits.axes[0].lines[1].get_ydata() == pytest.approx([average] * 200, abs=1e-5)
    heights = {line.get_label(): line for line in kernels.axes[0].lines}
    for name in ("boxcar", "triangular", "epanechnikov"):
        apart, height = heights[name].get_data()
        assert (height[abs(apart) > 1.001] == 0).all()
        assert (height[abs(apart) < 0.99] > 0).all()
    assert (heights["gaussian"].get_ydata() > 0).all()


def test_every_picture_has_a_caption(pictures):
    for text in figure_page.load_page("kernel_regression").texts.values():
        assert list(text.captions) == list(pictures)
