"""Rows that a model reorders without windows: edits, gradients and traces are by position."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

from regard import edit, watch
from regard.capture import watch_gradients

HEADS, WIDTH = 3, 12


class Rolled(nn.Module):
    """Self-attention whose keys and values are rolled by the number of their head, if asked."""

    def __init__(self, is_fused, is_rolled=True):
        super().__init__()
        self.is_fused, self.is_rolled = is_fused, is_rolled
        self.q, self.k, self.v = (nn.Linear(WIDTH, WIDTH) for _ in range(3))

    def forward(self, x):
        q, k, v = (
            layer(x).unflatten(-1, (HEADS, -1)).transpose(1, 2)
            for layer in (self.q, self.k, self.v)
        )
        if self.is_rolled:
            k, v = (torch.stack([t[:, n].roll(n, 1) for n in range(HEADS)], 1) for t in (k, v))
        if self.is_fused:
            context = scaled_dot_product_attention(q, k, v)
        else:
            context = (q @ k.mT).softmax(-1) @ v
        return context.transpose(1, 2).flatten(2)


def rolled_and_plain(is_fused):
    """Return two models that compute the same, of which one rolls its keys."""
    torch.manual_seed(0)
    models = [Rolled(is_fused, is_rolled) for is_rolled in (True, False)]
    models[1].load_state_dict(models[0].state_dict())
    return models


@pytest.mark.parametrize("is_fused", [True, False])
def test_edit_blocks_keys_by_their_position(is_fused):
    models, x = rolled_and_plain(is_fused), torch.randn(2, 5, WIDTH)
    edited = []
    for model in models:
        with edit(model) as edits:
            edits["Rolled"].heads([1, 2]).block(keys=[0, 3])
            edited.append(model(x))
    torch.testing.assert_close(*edited)
    assert not torch.allclose(edited[0], models[0](x))


@pytest.mark.parametrize("is_fused", [True, False])
def test_gradients_are_by_position(is_fused):
    models, x = rolled_and_plain(is_fused), torch.randn(2, 5, WIDTH)
    gradients = []
    for model in models:
        with watch_gradients(model) as capture:
            score = model(x).square().sum()
        gradients.append(capture.gradients(score)[0])
    torch.testing.assert_close(*gradients)


class ChosenByHead(nn.Module):
    """Informer: each head chooses some queries of its own."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(WIDTH, WIDTH) for _ in range(3))

    def forward(self, x):
        q, k, v = (
            layer(x).unflatten(-1, (HEADS, -1)).transpose(1, 2)
            for layer in (self.q, self.k, self.v)
        )
        self.chosen = q.square().sum(-1).topk(2, dim=-1).indices
        index = self.chosen[..., None].expand(-1, -1, -1, q.shape[-1])
        self.weights = (q.gather(2, index) @ k.mT).softmax(-1)
        context = v.mean(2, keepdim=True).expand_as(v).scatter(2, index, self.weights @ v)
        return context.transpose(1, 2).flatten(2)


@torch.no_grad()
def test_queries_that_each_head_chose_are_at_their_positions_in_a_trace():
    torch.manual_seed(0)
    model = ChosenByHead()
    with watch(model) as capture:
        model(torch.randn(2, 7, WIDTH))
    assert capture[0].weights.shape == (2, HEADS, 2, 7)
    assert "rows differ by head" in str(capture)
    shown = capture.trace(batch_index=1).maps[0]
    expected = torch.zeros(HEADS, 7, 7)
    for head, queries in enumerate(model.chosen[1]):
        expected[head, queries] = model.weights[1, head]
    assert shown.kind == "self"
    np.testing.assert_allclose(shown.weights, expected.numpy(), atol=1e-6)
