import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.testing import assert_close

from regard.config import ModelConfig, TrainConfig
from regard.models import build
from regard.training.distributed import Distributed
from regard.training.optim import build_optimizer, learning_rate, newton_schulz

SCHEDULES = ("inverse_sqrt", "cosine", "constant")
steps = st.integers(1, 3000)


def schedule_config(schedule, **changes):
    defaults = {"learning_rate": 0.5, "warmup": 40, "steps": 1000}
    return TrainConfig(schedule=schedule, **(defaults | changes))


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_warmup_is_linear_to_the_peak(schedule):
    config = schedule_config(schedule)
    assert learning_rate(1, config) == 0.5 / 40
    assert learning_rate(20, config) == 0.25
    assert learning_rate(40, config) == 0.5


@pytest.mark.parametrize("schedule", SCHEDULES)
@given(step=steps)
def test_learning_rate_is_between_zero_and_the_peak(schedule, step):
    assert 0 <= learning_rate(step, schedule_config(schedule)) <= 0.5


@pytest.mark.parametrize("schedule", SCHEDULES)
@given(step=steps)
def test_learning_rate_never_rises_after_the_peak(schedule, step):
    config, step = schedule_config(schedule), max(step, 40)
    assert learning_rate(step + 1, config) <= learning_rate(step, config)


def test_inverse_sqrt_halves_at_four_times_the_steps():
    config = schedule_config("inverse_sqrt")
    assert learning_rate(160, config) == pytest.approx(0.25)
    assert learning_rate(640, config) == pytest.approx(0.125)


def test_cosine_is_half_in_the_middle_and_zero_at_the_end():
    config = schedule_config("cosine", warmup=100, steps=900)
    assert learning_rate(500, config) == pytest.approx(0.25)
    assert learning_rate(900, config) == pytest.approx(0, abs=1e-12)
    assert learning_rate(5000, config) == pytest.approx(0, abs=1e-12)


def test_constant_stays_at_the_peak():
    assert learning_rate(10**9, schedule_config("constant")) == 0.5


def test_max_steps_moves_the_end_of_cosine_only():
    cosine = schedule_config("cosine")
    assert learning_rate(300, cosine, max_steps=300) == pytest.approx(0, abs=1e-12)
    assert learning_rate(300, cosine, max_steps=600) > 0.2
    for schedule in ("inverse_sqrt", "constant"):
        config = schedule_config(schedule)
        assert learning_rate(300, config, max_steps=300) == learning_rate(300, config)


def test_zero_max_steps_means_the_steps_of_the_settings():
    config = schedule_config("cosine")
    assert learning_rate(300, config, max_steps=0) == learning_rate(300, config)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("warmup", [0, 1])
def test_first_step_is_at_the_peak_without_warmup(schedule, warmup):
    assert learning_rate(1, schedule_config(schedule, warmup=warmup)) == 0.5


def test_max_steps_below_warmup_ends_after_the_peak():
    config = schedule_config("cosine")
    assert learning_rate(40, config, max_steps=30) == 0.5
    assert learning_rate(41, config, max_steps=30) == pytest.approx(0, abs=1e-12)


def small_model(**model):
    torch.manual_seed(0)
    config = ModelConfig(width=16, layers=1, heads=2, ffn_width=24, **model)
    return build(config, (30, 40) if model else (40, 40))


def take_steps(model, optimizer, count=4):
    """Take steps with random gradients, the same for every model; return the parameters."""
    generator = torch.Generator().manual_seed(1)
    for _ in range(count):
        for parameter in model.parameters():
            parameter.grad = torch.randn(parameter.shape, generator=generator)
        optimizer.step()
    return dict(model.named_parameters())


def optimizer_of(model, **changes):
    return build_optimizer(model, TrainConfig(**changes), Distributed())


def torch_adamw(model, weight_decay):
    return torch.optim.AdamW(
        model.parameters(),
        lr=0.01,
        betas=(0.9, 0.98),
        eps=1e-9,
        weight_decay=weight_decay,
        fused=True,
    )


def hidden_matrices(model):
    """Return the names of linear layers' weights except the output projection's."""
    return {
        f"{name}.weight"
        for name, part in model.named_modules()
        if isinstance(part, nn.Linear) and part.weight is not model.output_weight
    }


def test_adam_equals_torch_adamw_bit_for_bit():
    ours, reference = small_model(), small_model()
    optimizer = optimizer_of(ours, learning_rate=0.01, weight_decay=0.1)
    result = take_steps(ours, optimizer)
    for name, expected in take_steps(reference, torch_adamw(reference, 0.1)).items():
        assert torch.equal(result[name], expected), name


@pytest.mark.parametrize("model", [{}, {"tie_output": False}, {"kind": "recurrent"}])
def test_muon_leaves_embeddings_vectors_and_output_projection_to_adam(model):
    ours, reference = small_model(**model), small_model(**model)
    result = take_steps(ours, optimizer_of(ours, learning_rate=0.01, optimizer="muon"))
    expected = take_steps(reference, torch_adamw(reference, 0.0))
    differing = {name for name in result if not torch.equal(result[name], expected[name])}
    assert differing == hidden_matrices(ours) != set()


def test_muon_agrees_with_torch_muon():
    """torch's computes in bfloat16, so the two agree to two hundredths."""
    for shape in [(16, 16), (12, 32), (32, 12)]:
        ours = nn.Linear(*shape[::-1], bias=False)
        reference = nn.Linear(*shape[::-1], bias=False)
        reference.load_state_dict(ours.state_dict())
        initial = ours.weight.detach().clone()
        optimizer = optimizer_of(ours, learning_rate=0.01, optimizer="muon", weight_decay=0.3)
        take_steps(ours, optimizer)
        torch_muon = torch.optim.Muon(
            reference.parameters(), lr=0.01, weight_decay=0.3, adjust_lr_fn="match_rms_adamw"
        )
        take_steps(reference, torch_muon)
        change = (reference.weight - initial).norm()
        assert (ours.weight - reference.weight).norm() < 0.02 * change


@pytest.mark.parametrize("shape", [(5, 16, 16), (3, 12, 40), (3, 40, 12)])
def test_newton_schulz_keeps_singular_vectors_and_equalizes_singular_values(shape):
    torch.manual_seed(2)
    left, values, right = torch.linalg.svd(torch.randn(shape), full_matrices=False)
    result = newton_schulz(left * values[:, None] @ right)
    rotated = left.mT @ result @ right.mT
    diagonal = rotated.diagonal(dim1=-2, dim2=-1)
    assert_close(rotated, torch.diag_embed(diagonal), rtol=0, atol=1e-4)
    is_large = values > values[:, :1] / 20
    assert diagonal[is_large].min() > 0.6 and diagonal.max() < 1.3


def test_newton_schulz_of_zero_is_zero():
    assert torch.equal(newton_schulz(torch.zeros(2, 3, 4)), torch.zeros(2, 3, 4))


def test_matrix_without_gradient_is_not_updated():
    model = nn.ModuleList(nn.Linear(4, 4, bias=False) for _ in range(2))
    optimizer = optimizer_of(model, optimizer="muon")
    before = [layer.weight.detach().clone() for layer in model]
    model[1].weight.grad = torch.randn(4, 4)
    optimizer.step()
    assert torch.equal(before[0], model[0].weight)
    assert not torch.equal(before[1], model[1].weight)


def test_shared_parameter_is_updated_once():
    one, other = nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False)
    other.weight = one.weight
    unshared = nn.Linear(4, 4, bias=False)
    unshared.load_state_dict(one.state_dict())
    for model in (nn.ModuleList([one, other]), unshared):
        take_steps(model, optimizer_of(model, optimizer="muon"))
    assert torch.equal(one.weight, unshared.weight)


def test_muon_state_dict_round_trip_continues_identically():
    uninterrupted, resumed = small_model(), small_model()
    first, second = (optimizer_of(model, optimizer="muon") for model in (uninterrupted, resumed))
    take_steps(uninterrupted, first)
    take_steps(resumed, second)
    third = optimizer_of(resumed, optimizer="muon")
    third.load_state_dict(second.state_dict())
    expected = take_steps(uninterrupted, first)
    for name, parameter in take_steps(resumed, third).items():
        assert torch.equal(parameter, expected[name]), name
