import torch
from torch import nn

from regard.attention import Bilinear, attend


def test_scores_agree_with_torchs_bilinear_layer():
    score = Bilinear(12, 4)
    layer = nn.Bilinear(12, 4, 1, bias=False)
    layer.weight.data = score.matrix.data[None]
    queries, keys = torch.randn(2, 5, 12), torch.randn(2, 7, 4)
    expected = layer(
        queries[:, :, None].expand(2, 5, 7, 12).contiguous(),
        keys[:, None].expand(2, 5, 7, 4).contiguous(),
    )
    torch.testing.assert_close(score(queries, keys), expected[..., 0])


def test_identity_matrix_gives_the_dot_product():
    score = Bilinear(12)
    nn.init.eye_(score.matrix)
    queries, keys = torch.randn(2, 5, 12), torch.randn(2, 7, 12)
    expected = attend(queries, keys, score="dot")
    torch.testing.assert_close(attend(queries, keys, score=score), expected)


def test_widths_are_those_of_queries_and_keys():
    assert Bilinear(12, 4).widths == (12, 4)
    assert Bilinear(12).widths == (12, 12)
