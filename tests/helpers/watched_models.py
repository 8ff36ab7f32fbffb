"""Small models whose attention the tests of `regard.watch` capture."""

import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention


def sharpen(model):
    """Enlarge the parameters of a fresh model, whose weights would be nearly uniform otherwise."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.normal_(0, 0.4)
    return model


class SelfAttention(nn.Module):
    """Multi-head self-attention in a few lines, with the kernel imported by name."""

    def __init__(self, width=12, heads=3):
        super().__init__()
        self.heads, self.project = heads, nn.Linear(width, 3 * width)

    def queries_keys_values(self, rows):
        return self.project(rows).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)

    def forward(self, rows, **settings):
        return scaled_dot_product_attention(*self.queries_keys_values(rows), **settings)

    def weights(self, rows):
        queries, keys, _ = self.queries_keys_values(rows)
        return (queries @ keys.mT / queries.shape[-1] ** 0.5).softmax(-1)


def attention_by_softmax(queries, keys, values):
    return (queries @ keys.mT).softmax(-1) @ values
