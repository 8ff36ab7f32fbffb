import pytest
import torch
from torch import nn

from regard.training.checkpoint import Checkpoints
from regard.training.state import Progress


@pytest.fixture
def made():
    model = nn.Sequential(nn.Linear(3, 5), nn.Linear(5, 2))
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    return model, optimizer


def learn(model, optimizer):
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()


def quiet(line):
    raise AssertionError(line)


def test_a_state_brings_weights_momenta_and_counters_back(made, tmp_path):
    model, optimizer = made
    checkpoints = Checkpoints(tmp_path)
    learn(model, optimizer)
    progress = Progress(step=7, epoch=2, place=3, best=1.5, judged={"7": 1.5}, lost=0.1 + 0.2)
    checkpoints.save(model, optimizer, progress)
    learn(model, optimizer)
    later = [weight.clone() for weight in model.parameters()]

    again = nn.Sequential(nn.Linear(3, 5), nn.Linear(5, 2))
    other = torch.optim.AdamW(again.parameters(), fused=True)
    assert checkpoints.resume(again, other, quiet) == progress
    learn(again, other)
    for weight, wanted in zip(again.parameters(), later, strict=True):
        assert torch.equal(weight, wanted)


def test_without_a_state_there_is_nothing_to_go_on_from(made, tmp_path):
    assert Checkpoints(tmp_path / "new").resume(*made, quiet) is None


def test_two_states_are_kept_and_the_weights_that_are_asked_for(made, tmp_path):
    checkpoints = Checkpoints(tmp_path)
    for step in (1, 2, 3, 11):
        checkpoints.save(*made, Progress(step=step))
    assert checkpoints.state_steps() == [3, 11]
    checkpoints.keep_parameters({2})
    assert checkpoints.parameter_steps() == [2, 3, 11]


def test_a_state_without_its_weights_is_passed_over_with_a_warning(made, tmp_path):
    checkpoints, told = Checkpoints(tmp_path), []
    for step in (1, 2):
        checkpoints.save(*made, Progress(step=step))
    checkpoints.parameters_path(2).unlink()
    assert checkpoints.resume(*made, told.append).step == 1
    assert len(told) == 1 and "there are no weights at" in told[0]


def test_a_draft_that_a_killed_process_left_is_swept_away(made, tmp_path):
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(*made, Progress(step=1))
    draft = tmp_path / ".state-2.safetensors.99.tmp"
    draft.write_bytes(b"half")
    assert checkpoints.resume(*made, quiet).step == 1
    assert not draft.exists()
