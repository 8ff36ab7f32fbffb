"""Dropout drawn from random bytes."""

import pytest
import torch

from regard.config import ModelConfig
from regard.models import build
from regard.models.layers import DROPOUT_LEVELS, dropout

RATES = (0.1, 0.25, 0.5, 0.9)


def keep_probability(rate):
    """Return the probability of an element to stay: rates are rounded to 1/256."""
    return 1 - round(rate * DROPOUT_LEVELS) / DROPOUT_LEVELS


@pytest.mark.parametrize("rate", RATES)
def test_share_of_kept_elements_is_within_five_standard_deviations(rate):
    count = 300_007
    count_kept = dropout(torch.ones(count), rate, True).count_nonzero().item()
    expected = keep_probability(rate)
    assert abs(count_kept - count * expected) < 5 * (count * expected * (1 - expected)) ** 0.5


@pytest.mark.parametrize("rate", RATES)
def test_kept_elements_are_scaled_exactly(rate):
    states = torch.randn(7, 11, dtype=torch.float64)
    output = dropout(states, rate, True)
    is_kept = output != 0
    assert is_kept.any()
    assert not is_kept.all()
    assert output[is_kept].equal(states[is_kept] * (1 / keep_probability(rate)))


def test_mean_is_preserved():
    assert dropout(torch.ones(1_000_000), 0.3, True).mean().item() == pytest.approx(1, abs=5e-3)


def test_neighbours_are_dropped_independently():
    is_kept = (dropout(torch.ones(400_001), 0.5, True) != 0).float()
    for distance in (1, 2, 8, 64):
        both = (is_kept[:-distance] * is_kept[distance:]).mean().item()
        assert both == pytest.approx(0.25, abs=0.005), distance


@pytest.mark.parametrize("rate", [*RATES, 1.0])
def test_gradient_flows_through_kept_elements_only(rate):
    states = torch.randn(5, 13, requires_grad=True)
    output = dropout(states, rate, True)
    gradient = torch.randn(5, 13)
    output.backward(gradient)
    is_kept = output.detach() != 0
    assert states.grad[~is_kept].count_nonzero() == 0
    scale = 0.0 if rate == 1.0 else 1 / keep_probability(rate)
    assert torch.allclose(states.grad[is_kept], gradient[is_kept] * scale)


def test_gradient_agrees_with_finite_differences():
    states = torch.randn(3, 5, dtype=torch.float64, requires_grad=True)

    def same_mask(states):
        torch.manual_seed(7)
        return dropout(states, 0.4, True)

    assert torch.autograd.gradcheck(same_mask, states)


def test_same_seed_gives_the_same_mask_and_another_seed_another():
    def mask(seed):
        torch.manual_seed(seed)
        return dropout(torch.ones(97), 0.5, True)

    assert mask(3).equal(mask(3))
    assert not mask(3).equal(mask(4))


def test_each_call_draws_a_new_mask():
    states = torch.ones(97)
    assert not dropout(states, 0.5, True).equal(dropout(states, 0.5, True))


@pytest.mark.parametrize(("rate", "training"), [(0.5, False), (0.0, True), (1.0, False)])
def test_evaluation_and_rate_0_return_the_input_and_leave_the_generator(rate, training):
    states = torch.randn(2, 3)
    before = torch.get_rng_state()
    assert dropout(states, rate, training) is states
    assert torch.get_rng_state().equal(before)


@pytest.mark.parametrize("shape", [(), (1,), (7,), (9,), (3, 5), (2, 3, 5, 7), (0,), (4, 0, 3)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_shape_and_dtype_are_preserved(shape, dtype):
    states = torch.ones(shape, dtype=dtype)
    output = dropout(states, 0.5, True)
    assert (output.shape, output.dtype) == (states.shape, dtype)
    assert set(output.flatten().tolist()) <= {0.0, 2.0}


def test_non_contiguous_input_is_dropped_as_a_contiguous_one():
    states = torch.randn(5, 3).t()
    torch.manual_seed(3)
    transposed = dropout(states, 0.5, True)
    torch.manual_seed(3)
    assert transposed.equal(dropout(states.contiguous(), 0.5, True))


def test_rate_1_drops_everything():
    assert dropout(torch.randn(17), 1.0, True).count_nonzero() == 0


def test_tiny_rate_still_drops_some_elements():
    dropped = (dropout(torch.ones(100_000), 1e-9, True) == 0).sum().item()
    assert 0 < dropped < 100_000 / 128


def test_input_is_not_modified():
    states = torch.ones(50)
    dropout(states, 0.5, True)
    assert states.equal(torch.ones(50))


def test_compiled_code_uses_torchs_dropout(monkeypatch):
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    output = dropout(torch.ones(10_000), 0.3, True)
    # exactly 1 / 0.7, which the rate rounded to 1/256 would miss
    assert output.max().item() == pytest.approx(1 / 0.7, rel=1e-6)


def test_gradient_of_dropout_can_be_differentiated():
    x = torch.randn(9, 7, requires_grad=True)
    (gradient,) = torch.autograd.grad(dropout(x, 0.5, True).square().sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(gradient.sum(), x)
    is_kept = gradient != 0
    assert 0 < is_kept.sum() < x.numel()
    assert torch.equal(second, 2 * 2.0**2 * is_kept)  # of (2x)², with the scale 1 / (1 - 0.5)


def test_dropout_works_under_transforms():
    x = torch.randn(9, 7)
    gradient = torch.func.grad(lambda x: dropout(x, 0.5, True).sum())(x)
    assert set(gradient.unique().tolist()) == {0.0, 2.0}


def test_training_model_has_gradients_under_transforms():
    config = ModelConfig(width=8, layers=1, heads=2, dropout=0.5, inner_dropout=0.5)
    model = build(config, 20).train()
    source, lengths = torch.tensor([[4, 5, 6], [7, 8, 0]]), torch.tensor([3, 2])

    def loss(parameters):
        return torch.func.functional_call(model, parameters, (source, lengths, source)).sum()

    gradients = torch.func.grad(loss)(dict(model.named_parameters()))
    assert all(gradient.isfinite().all() for gradient in gradients.values())
