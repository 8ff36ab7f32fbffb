import pytest
import torch
from torch import nn

from regard.runs import parameters
from regard.training import StepResult, TrainState, ValidationResult
from regard.training.callbacks import BestParameters, Callback, Snapshots

RESULT = StepResult(1.0, 10, 0.1)


def test_base_callback_ignores_every_event():
    callback, state = Callback(), TrainState()
    callback.on_start(state)
    callback.on_step(state, RESULT)
    callback.on_validation(state, ValidationResult(1.0))
    callback.on_checkpoint(state)
    callback.on_end(state)
    assert state == TrainState()


def test_best_parameters_are_written_after_an_improvement_only(tmp_path):
    model, path, state = nn.Linear(2, 3), tmp_path / "model.safetensors", TrainState()
    callback = BestParameters(path, model)
    for step, loss in ((1, 3.0), (2, 2.0), (3, 4.0)):
        state.step = step
        state.record_validation(loss, patience=0)
        torch.nn.init.constant_(model.weight, float(step))
        callback.on_validation(state, ValidationResult(loss))
    tensors, about = parameters.load(path)
    assert about == {"step": 2}
    assert torch.equal(tensors["weight"], torch.full((3, 2), 2.0))


@pytest.mark.parametrize(("first", "steps"), [(3, [0, 3, 6, 12, 24]), (10, [0, 10, 20])])
def test_snapshots_are_taken_at_doubling_steps(tmp_path, first, steps):
    callback = Snapshots(lambda step: tmp_path / str(step), nn.Linear(2, 3), first)
    state = TrainState()
    callback.on_start(state)
    for step in range(1, 31):
        state.step = step
        callback.on_step(state, RESULT)
    assert sorted(int(path.name) for path in tmp_path.iterdir()) == steps


def test_resumed_run_takes_no_initial_snapshot(tmp_path):
    Snapshots(lambda step: tmp_path / str(step), nn.Linear(2, 3)).on_start(TrainState(step=4))
    assert not list(tmp_path.iterdir())
