import pytest
import torch
from torch.autograd.functional import jacobian

from regard.gallery.scores import KEYS, QUERY, WIDTHS, draw, scores, softmax_jacobian_norm


@pytest.fixture(scope="module")
def pictures():
    return draw()


def test_weights_match_the_formulas(pictures):
    query, additive = QUERY[0], scores()["additive"]
    hidden = additive.project_queries(QUERY) + additive.project_keys(KEYS)
    expected = [
        KEYS @ query,
        KEYS @ query / 2**0.5,
        KEYS @ query / (KEYS.norm(dim=-1) * query.norm()),
        KEYS @ torch.tensor([-query[1], query[0]]),  # a quarter turn to the left
        hidden.tanh() @ additive.pairwise.v,
        -(KEYS - query).square().sum(-1) / 2,
    ]
    drawn = torch.tensor(pictures["weights"].axes[0].images[0].get_array())
    assert torch.allclose(drawn, torch.stack(expected).softmax(-1).to(drawn.dtype), atol=1e-5)


def lines(pictures, panel):
    return {line.get_label(): line.get_ydata() for line in pictures["width"].axes[panel].lines}


def test_dot_product_deviation_grows_with_sqrt_width_unless_scaled(pictures):
    spread = lines(pictures, 0)
    for width, dot, scaled in zip(WIDTHS, spread["dot"], spread["scaled dot"], strict=True):
        assert dot == pytest.approx(width**0.5, rel=0.1)
        assert scaled == pytest.approx(1, abs=0.1)


def test_unscaled_softmax_saturates_with_width(pictures):
    (dot, scaled), (dot_gradient, scaled_gradient) = (
        [line.get_ydata() for line in pictures["width"].axes[panel].lines] for panel in (1, 2)
    )
    assert dot[-1] > 0.9 > 0.3 > scaled[-1]
    assert dot_gradient[-1] < 0.25 * dot_gradient[0]
    assert scaled_gradient[-1] >= scaled_gradient[0]


def test_jacobian_norm_matches_autograd():
    row = torch.randn(7)
    expected = jacobian(lambda scores: scores.softmax(-1), row).norm()
    assert softmax_jacobian_norm(row.softmax(-1)[None]) == pytest.approx(expected.item(), rel=1e-5)
