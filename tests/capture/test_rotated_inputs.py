"""Adapters that rotate what a projection reads, as orthogonal fine-tuning (OFT) does."""

import pytest
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

import regard

HEADS, WIDTH, BLOCK = 3, 12, 4


class RotatedProjection(nn.Module):
    """A projection of rows whose blocks are rotated by matrices computed from parameters."""

    def __init__(self, style):
        super().__init__()
        self.style, self.projection = style, nn.Linear(WIDTH, WIDTH)
        self.angles = nn.Parameter(0.3 * torch.randn(WIDTH // BLOCK, BLOCK, BLOCK))

    def forward(self, x):
        rotations = torch.matrix_exp(self.angles - self.angles.mT)
        blocks = x.unflatten(-1, (-1, BLOCK))
        if self.style == "einsum":
            rotated = torch.einsum("...rk,rkc->...rc", blocks, rotations)
        else:
            rotated = (blocks.unsqueeze(-2) @ rotations).squeeze(-2)
        return self.projection(rotated.flatten(-2))


class Model(nn.Module):
    def __init__(self, style):
        super().__init__()
        torch.manual_seed(4)
        self.to_q = RotatedProjection(style)
        self.to_k, self.to_v = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x, memory=None, cache=None):
        rows = x if memory is None else memory
        q, k, v = (
            layer(y).unflatten(-1, (HEADS, -1)).transpose(1, 2)
            for layer, y in ((self.to_q, x), (self.to_k, rows), (self.to_v, rows))
        )
        if cache is not None:
            k, v = (torch.cat(pair, dim=2) for pair in zip(cache, (k, v), strict=True))
        is_causal = memory is None and q.shape[2] > 1
        return scaled_dot_product_attention(q, k, v, is_causal=is_causal), (k, v)


@pytest.mark.parametrize("style", ["einsum", "matmul"])
def test_rotated_queries_are_of_the_same_rows_as_keys(style):
    model, x, memory = Model(style), torch.randn(2, 5, WIDTH), torch.randn(2, 5, WIDTH)
    with regard.watch(model) as capture:
        model(x)
        model(x, memory)
    assert [record.kind for record in capture] == ["causal", "cross"]


def test_edits_of_steps_of_rotated_queries_have_positions():
    model, x = Model("einsum"), torch.randn(2, 5, WIDTH)
    with regard.edit(model) as edits:
        edits["*"].heads(0).block(queries=[3, 4], keys=[1])
        full, _ = model(x)
        first, cache = model(x[:, :3])
        second, cache = model(x[:, 3:4], cache=cache)
        third, _ = model(x[:, 4:], cache=cache)
    torch.testing.assert_close(torch.cat([first, second, third], dim=2), full)
