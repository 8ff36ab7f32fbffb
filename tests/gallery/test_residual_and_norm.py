import pytest
import torch
from torch import nn

from regard.gallery.residual_and_norm import DEPTH, batch, draw, norms_by_depth


@pytest.fixture(scope="module")
def passed():
    return {way: norms_by_depth(way) for way in ("plain", "post", "pre")}


def test_gradient_vanishes_without_residual(passed):
    arrived = {way: slopes[0] / slopes[-1] for way, (_, slopes) in passed.items()}
    assert arrived["plain"] < 1e-4
    assert 0.1 < arrived["post"] < arrived["pre"]
    plain = passed["plain"][1]
    assert len(plain) == DEPTH + 1 and (plain.diff() > 0).all()


def test_activations_are_constant_with_post_norm_and_grow_with_pre_norm(passed):
    post, pre = passed["post"][0], passed["pre"][0]
    assert torch.allclose(post[1:], post[1].expand(DEPTH), rtol=1e-3)
    assert (pre.diff() > 0).all()


def test_drawing_leaves_the_global_rng_unchanged():
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    norms_by_depth("plain")
    assert torch.equal(torch.rand(3), expected)


def test_layer_norm_normalises_words_and_batch_norm_features():
    before, layer, batched = (
        torch.tensor(axes.images[0].get_array()).double() for axes in draw()["norms"].axes[:3]
    )
    assert torch.allclose(before, batch().double())
    for numbers, axis in ((layer, 1), (batched, 0)):
        assert torch.allclose(numbers.mean(axis), torch.zeros(1).double(), atol=1e-5)
        variance = numbers.var(axis, correction=0)
        assert torch.allclose(variance, torch.ones(1).double(), atol=1e-3)


def test_suggested_experiments_hold():
    whole, half = batch(), batch()[:3]
    with torch.no_grad():
        assert torch.allclose(nn.LayerNorm(5)(half), nn.LayerNorm(5)(whole)[:3])
        assert not torch.allclose(nn.BatchNorm1d(5)(half), nn.BatchNorm1d(5)(whole)[:3], atol=0.1)
