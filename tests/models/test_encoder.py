import torch
from torch import nn

from regard.attention import MultiHeadAttention
from regard.masks import padding
from regard.models import Encoder, FeedForward, Layer

BATCH, LENGTH, WIDTH = 2, 5, 12


def make(norm=None):
    layers = [Layer(MultiHeadAttention(WIDTH, 3), FeedForward(WIDTH, 20)) for _ in range(2)]
    return Encoder(layers, norm).eval()


def test_layers_follow_each_other_and_the_norm_comes_last():
    norm = nn.LayerNorm(WIDTH)
    nn.init.normal_(norm.weight)
    encoder, rows = make(norm), torch.randn(BATCH, LENGTH, WIDTH)
    first, second = encoder.layers
    assert torch.equal(encoder(rows), norm(second(first(rows))))


def test_every_position_sees_all_that_are_kept_and_no_other():
    encoder = make()
    rows = torch.randn(BATCH, LENGTH, WIDTH, requires_grad=True)
    keep = torch.arange(LENGTH) < torch.tensor([[LENGTH], [3]])
    states = encoder(rows, padding(keep))
    (seen,) = torch.autograd.grad(states[:, 0].pow(2).sum(), rows)
    assert torch.equal(seen.abs().sum(-1) > 0, keep)
