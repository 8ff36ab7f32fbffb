"""Weights that are normalised after the product with values: gradients, buffers, edits."""

import pytest
import torch
from torch import nn

from regard import edit, watch
from regard.capture import watch_gradients


class Early(nn.Module):
    """Exponentials divided by their sum, then multiplied with values."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.q, self.k, self.v = (nn.Linear(12, 12) for _ in range(3))

    def forward(self, x):
        q, k, v = (
            layer(x).unflatten(-1, (3, 4)).transpose(1, 2) for layer in (self.q, self.k, self.v)
        )
        return self.attend((q @ k.mT).exp(), v).transpose(1, 2).flatten(2)

    def attend(self, weights, values):
        return (weights / weights.sum(-1, keepdim=True)) @ values


class Late(Early):
    """The same, divided after the product and a change of layout."""

    def attend(self, weights, values):
        context, total = weights @ values, weights.sum(-1)
        return (context.transpose(1, 2) / total.transpose(1, 2)[..., None]).transpose(1, 2)


class Cleared(Late):
    """Exponentials are overwritten before the division."""

    def attend(self, weights, values):
        context, total = weights @ values, weights.sum(-1, keepdim=True)
        weights.zero_()
        return context / total


class Undivided(Late):
    """Exponentials that nothing divides."""

    def attend(self, weights, values):
        return weights @ values


@pytest.fixture
def x():
    torch.manual_seed(1)
    return torch.randn(2, 5, 12)


def test_gradient_of_late_weights_is_that_of_early_ones(x):
    found = []
    for model in (Early(), Late()):
        with watch_gradients(model) as seen:
            scalar = model(x).square().sum()
        found.append(seen.gradients(scalar)[0])
    torch.testing.assert_close(*found)


def test_edit_of_late_weights_gives_what_it_gives_of_early_ones(x):
    found = []
    for model in (Early(), Late()):
        with edit(model) as edits:
            edits["*"].heads([1]).block(queries=[4], keys=[0, 1])
            found.append(model(x))
    torch.testing.assert_close(*found)
    assert not torch.allclose(found[0], Early()(x))


def test_output_is_bit_identical(x):
    model = Late()
    with watch(model):
        watched = model(x)
    assert torch.equal(watched, model(x))


@pytest.mark.parametrize("model", [Cleared(), Undivided()])
def test_exponentials_without_a_sure_division_are_listed(model, x):
    with torch.no_grad(), watch(model) as capture:
        model(x)
    assert len(capture) == 0
    assert capture.values_not_found[0].startswith(type(model).__name__)


def test_context_of_an_edited_model_is_recorded_with_its_edited_weights(x):
    model = Late()
    with edit(model) as edits, watch(model, keep="all") as capture:
        edits["*"].heads([1]).block(queries=[4], keys=[0, 1])
        model(x)
    assert capture[0].weights[:, 1, 4, :2].abs().max() == 0
    torch.testing.assert_close(capture[0].weights.sum(-1), torch.ones(2, 3, 5))
