import pytest
import torch
from torch import nn

from regard.gallery.residual_and_norm import DEPTH, batch, draw, passes


@pytest.fixture(scope="module")
def passed():
    return {way: passes(way) for way in ("plain", "post", "pre")}


def test_without_the_residual_the_gradient_vanishes_and_with_it_it_arrives(passed):
    arrived = {way: slopes[0] / slopes[-1] for way, (_, slopes) in passed.items()}
    assert arrived["plain"] < 1e-4
    assert 0.1 < arrived["post"] < arrived["pre"]
    plain = passed["plain"][1]
    assert len(plain) == DEPTH + 1 and (plain.diff() > 0).all()


def test_post_norm_keeps_rows_at_one_size_and_pre_norm_lets_them_grow(passed):
    post, pre = passed["post"][0], passed["pre"][0]
    assert torch.allclose(post[1:], post[1].expand(DEPTH), rtol=1e-3)
    assert (pre.diff() > 0).all()


def test_drawing_leaves_the_chance_of_others_alone():
    torch.manual_seed(7)
    wanted = torch.rand(3)
    torch.manual_seed(7)
    passes("plain")
    assert torch.equal(torch.rand(3), wanted)


def test_layer_norm_norms_words_and_batch_norm_norms_features():
    before, layer, batched = (
        torch.tensor(axes.images[0].get_array()).double() for axes in draw()["norms"].axes[:3]
    )
    assert torch.allclose(before, batch().double())
    for numbers, axis in ((layer, 1), (batched, 0)):
        assert torch.allclose(numbers.mean(axis), torch.zeros(1).double(), atol=1e-5)
        variance = numbers.var(axis, correction=0)
        assert torch.allclose(variance, torch.ones(1).double(), atol=1e-3)


def test_what_is_to_be_tried_is_true():
    whole, half = batch(), batch()[:3]
    with torch.no_grad():
        assert torch.allclose(nn.LayerNorm(5)(half), nn.LayerNorm(5)(whole)[:3])
        assert not torch.allclose(nn.BatchNorm1d(5)(half), nn.BatchNorm1d(5)(whole)[:3], atol=0.1)
