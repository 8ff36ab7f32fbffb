import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from regard.attention import Dot, ScaledDot, attend
from regard.errors import RegardError


def test_scores_worked_by_hand():
    queries, keys = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[5.0, 6.0], [7.0, 8.0]])
    assert torch.equal(Dot()(queries, keys), torch.tensor([[17.0, 23.0], [39.0, 53.0]]))
    assert torch.equal(ScaledDot(scale=0.5)(queries, keys), Dot()(queries, keys) / 2)


def test_scale_keeps_the_variance_of_scores_as_width_grows():
    for width in (16, 1024):
        scores = ScaledDot()(torch.randn(300, width), torch.randn(300, width))
        assert scores.std().item() == pytest.approx(1.0, abs=0.03)
        assert Dot()(torch.randn(300, width), torch.randn(300, width)).std().item() == (
            pytest.approx(width**0.5, rel=0.03)
        )


def test_cap_bounds_scores_and_keeps_their_order():
    queries, keys = 30 * torch.randn(5, 12), torch.randn(7, 12)
    plain, capped = ScaledDot()(queries, keys), ScaledDot(cap=3.0)(queries, keys)
    assert capped.abs().max() <= 3.0 < plain.abs().max()
    assert torch.equal(capped.argsort(), plain.argsort())
    barely_capped = ScaledDot(cap=1e4)(queries, keys)
    torch.testing.assert_close(barely_capped, plain, rtol=1e-3, atol=1e-4)


def test_cap_that_is_not_above_zero_is_refused():
    for cap in (0.0, -1.0, float("nan")):
        with pytest.raises(RegardError, match=r"cap must be above 0.*None means no cap"):
            ScaledDot(cap=cap)


def test_dot_product_attention_agrees_with_torch():
    queries, keys, values = (
        torch.randn(2, 3, 5, 12),
        torch.randn(2, 3, 7, 12),
        torch.randn(2, 3, 7, 6),
    )
    expected = scaled_dot_product_attention(queries, keys, values)
    torch.testing.assert_close(attend(queries, keys, values), expected)
    expected = scaled_dot_product_attention(queries, keys, values, scale=1.0)
    torch.testing.assert_close(attend(queries, keys, values, score="dot"), expected)


def test_large_scores_of_half_precision_are_not_rounded():
    queries = torch.full((1, 64), 8.0, dtype=torch.float16)
    keys = torch.stack([torch.full((64,), 8.0), torch.full((64,), 8.0)]).half()
    keys[1, 0] = 7.9375  # moves the dot product from 4096 by 0.5, half of a float16 step there
    scores = Dot()(queries, keys)
    assert (scores[0, 0] - scores[0, 1]).item() == pytest.approx(0.5)


def test_repr_shows_the_settings():
    assert repr(ScaledDot(scale=2.0, cap=30.0)) == "ScaledDot(scale=2.0, cap=30.0)"
    assert repr(ScaledDot()) == "ScaledDot()"
