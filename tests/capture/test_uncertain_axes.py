"""Axes of bare tensors: what is a convention rather than known is named."""

import pytest
import torch
from torch import nn

from regard import watch


class Core(nn.Module):
    """Attention of tensors that were projected elsewhere."""

    def forward(self, q, k, v):
        return (q @ k.mT).softmax(-1) @ v


class ByItems(nn.Module):
    """Each query is an item of a batch, with a copy of the same keys."""

    def forward(self, queries, keys, values):
        scores = queries.repeat_interleave(len(keys)).reshape(-1, len(keys)) - keys
        weights = (-scores.square()).softmax(1)
        values = values.repeat(len(queries), 1)
        return torch.bmm(weights.unsqueeze(1), values.unsqueeze(-1))


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((2, 3, 5, 4), {"batch", "head"}),  # or heads before the batch
        ((6, 5, 4), {"head"}),  # heads may have been folded into the batch
        ((2, 3, 2, 5, 4), {"batch", "head", "window"}),
        ((5, 4), set()),
    ],
)
def test_axes_of_bare_inputs_are_named_as_uncertain(shape, expected):
    torch.manual_seed(0)
    model, inputs = Core(), [torch.randn(shape) for _ in range(3)]
    with watch(model) as capture:
        model(*inputs)
    assert set(capture[0].uncertain) == expected


def test_queries_as_items_of_a_batch_are_named_as_uncertain():
    torch.manual_seed(0)
    model, inputs = ByItems(), [torch.randn(size) for size in (5, 7, 7)]
    with watch(model) as capture:
        model(*inputs)
    assert capture[0].weights.shape == (5, 1, 1, 7)
    assert set(capture[0].uncertain) == {"batch", "query"}
