import torch
from torch import nn

from regard.attention import Bilinear, attend


def test_scores_are_those_of_torchs_bilinear_layer():
    score = Bilinear(12, 4)
    theirs = nn.Bilinear(12, 4, 1, bias=False)
    theirs.weight.data = score.matrix.data[None]
    queries, keys = torch.randn(2, 5, 12), torch.randn(2, 7, 4)
    pairs = theirs(
        queries[:, :, None].expand(2, 5, 7, 12).contiguous(),
        keys[:, None].expand(2, 5, 7, 4).contiguous(),
    )
    torch.testing.assert_close(score(queries, keys), pairs[..., 0])


def test_the_identity_matrix_makes_it_the_dot_product():
    score = Bilinear(12)
    nn.init.eye_(score.matrix)
    queries, keys = torch.randn(2, 5, 12), torch.randn(2, 7, 12)
    dot = attend(queries, keys, score="dot")
    torch.testing.assert_close(attend(queries, keys, score=score), dot)


def test_widths_tell_what_it_was_made_for():
    assert Bilinear(12, 4).widths == (12, 4)
    assert Bilinear(12).widths == (12, 12)
