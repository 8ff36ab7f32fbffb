import pytest
import torch
from torch import nn

from regard.training import Checkpoints, TrainState


def make_model():
    model = nn.Sequential(nn.Linear(3, 5), nn.Linear(5, 2))
    return model, torch.optim.AdamW(model.parameters(), fused=True)


@pytest.fixture
def model_and_optimizer():
    return make_model()


def step(model, optimizer):
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()


def no_warning(line):
    raise AssertionError(line)


def test_resume_restores_parameters_optimizer_and_counters(model_and_optimizer, tmp_path):
    model, optimizer = model_and_optimizer
    checkpoints = Checkpoints(tmp_path)
    step(model, optimizer)
    state = TrainState(
        step=7,
        epoch=2,
        batch_index=3,
        best_metric=1.5,
        validation_history={"7": 1.5},
        loss_sum=0.1 + 0.2,
    )
    checkpoints.save(model, optimizer, state)
    step(model, optimizer)

    resumed, resumed_optimizer = make_model()
    assert checkpoints.resume(resumed, resumed_optimizer, no_warning) == state
    step(resumed, resumed_optimizer)
    for parameter, expected in zip(resumed.parameters(), model.parameters(), strict=True):
        assert torch.equal(parameter, expected)


def test_resume_without_a_checkpoint_returns_none(model_and_optimizer, tmp_path):
    assert Checkpoints(tmp_path / "new").resume(*model_and_optimizer, no_warning) is None


def test_two_states_and_requested_parameters_are_kept(model_and_optimizer, tmp_path):
    checkpoints = Checkpoints(tmp_path)
    for number in (1, 2, 3, 11):
        checkpoints.save(*model_and_optimizer, TrainState(step=number))
    assert checkpoints.state_steps() == [3, 11]
    checkpoints.keep_parameters({2})
    assert checkpoints.parameter_steps() == [2, 3, 11]


def test_state_without_parameters_is_skipped_with_a_warning(model_and_optimizer, tmp_path):
    checkpoints, warnings = Checkpoints(tmp_path), []
    for number in (1, 2):
        checkpoints.save(*model_and_optimizer, TrainState(step=number))
    checkpoints.parameters_path(2).unlink()
    assert checkpoints.resume(*model_and_optimizer, warnings.append).step == 1
    assert len(warnings) == 1
    assert warnings[0].endswith("; resuming from the checkpoint before it")


def test_temporary_file_of_a_killed_process_is_removed(model_and_optimizer, tmp_path):
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(*model_and_optimizer, TrainState(step=1))
    temporary = tmp_path / ".state-2.safetensors.99.tmp"
    temporary.write_bytes(b"half")
    assert checkpoints.resume(*model_and_optimizer, no_warning).step == 1
    assert not temporary.exists()
