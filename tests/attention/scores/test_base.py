import pytest
import torch

from regard.attention import Bilinear, Cosine, Dot, Gaussian, ScaledDot


@pytest.mark.parametrize(
    "score",
    [
        Dot(),
        ScaledDot(),
        ScaledDot(0.3),
        Cosine(0.2),
        Cosine(0.2, learnable=True),
        Bilinear(12),
        Gaussian(2.0),
        Gaussian(2.0, learnable=True),
    ],
    ids=repr,
)
def test_the_folded_dot_product_has_the_softmax_of_the_score(score):
    score = score.double()
    queries, keys = torch.randn(2, 5, 12).double(), torch.randn(2, 7, 12).double()
    folded = score.fold(queries, keys)
    lift = 0 if folded.key_bias is None else folded.key_bias[:, None]
    dot = folded.scale * folded.queries @ folded.keys.mT + lift
    torch.testing.assert_close(dot.softmax(-1), score(queries, keys).softmax(-1))
    whole = folded.absorb_key_bias()
    assert whole.key_bias is None
    dot = whole.scale * whole.queries @ whole.keys.mT
    torch.testing.assert_close(dot.softmax(-1), score(queries, keys).softmax(-1))
