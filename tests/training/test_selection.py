import pytest
import torch

from regard.models import build
from regard.runs import RunFolder, parameters
from regard.training import Checkpoints, TrainState, ValidationResult
from regard.training.checkpoint_averaging import select_parameters
from regard.training.objective import Objective

pytestmark = pytest.mark.usefixtures("unchecked")


@pytest.fixture
def folder(tmp_path):
    return RunFolder(tmp_path / "run")


@pytest.fixture
def data(make_data):
    return make_data()


@pytest.fixture
def objective(data):
    return Objective(build(data.config.model, data.tokenizers.vocab_sizes))


def write_checkpoints(folder, model, changes):
    """Write the model's parameters plus a change for each step; return the parameters."""
    good = {name: tensor.clone() for name, tensor in parameters.state_of(model).items()}
    for step, change in changes.items():
        changed = {name: tensor + change(tensor) for name, tensor in good.items()}
        parameters.save(Checkpoints(folder.checkpoints).parameters_path(step), changed)
    return good


def noise(sign):
    def change(tensor):
        return sign * torch.randn(tensor.shape, generator=torch.Generator().manual_seed(5))

    return change


FINISHED = TrainState(
    step=8,
    validation_history={"4": 2.0, "8": 1.0},
    best_metric=1.0,
    best_step=8,
    stop_reason="done",
)


def select(folder, data, objective):
    warnings = []
    selection = select_parameters(folder, data, objective, FINISHED, warnings.append)
    return selection, parameters.state_of(objective.model), warnings


def test_average_is_selected_where_it_validates_better(folder, data, objective):
    good = write_checkpoints(folder, objective.model, {4: noise(1.0), 8: noise(-1.0)})
    selection, selected, warnings = select(folder, data, objective)
    assert selection.name == "average of steps 4 and 8" and not warnings
    for name, tensor in selected.items():
        torch.testing.assert_close(tensor, good[name], rtol=1e-5, atol=1e-5)


def test_best_checkpoint_is_selected_where_the_average_is_worse(folder, data, objective):
    def ruin(tensor):
        return 30 * torch.ones_like(tensor) * tensor.sign()

    good = write_checkpoints(folder, objective.model, {4: ruin, 8: torch.zeros_like})
    selection, selected, _ = select(folder, data, objective)
    assert selection.name == "step 8"
    assert all(torch.equal(selected[name], good[name]) for name in selected)


@pytest.mark.parametrize("damage", ["altered", "missing"])
@pytest.mark.parametrize("step", [4, 8])
def test_damaged_checkpoint_is_left_out_with_a_warning(folder, data, objective, damage, step):
    changes = {4: noise(1.0), 6: noise(-1.0), 8: torch.zeros_like}
    good = write_checkpoints(folder, objective.model, changes)
    parameters.save(folder.model, good, {"step": 8})
    path = Checkpoints(folder.checkpoints).parameters_path(step)
    if damage == "missing":
        path.unlink()
    else:
        content = bytearray(path.read_bytes())
        content[-1] ^= 1
        path.write_bytes(content)
    selection, selected, warnings = select(folder, data, objective)
    assert any(path.name in line and line.endswith("continuing without it") for line in warnings)
    assert selection.name == "step 8"
    assert all(torch.equal(selected[name], good[name]) for name in selected)


def test_bleu_decides_where_it_is_the_metric(folder, data, objective, monkeypatch):
    write_checkpoints(folder, objective.model, {4: noise(1.0), 8: noise(-1.0)})
    # of the best checkpoint, and of the average, whose loss is lower
    results = iter([ValidationResult(3.0, 60.0), ValidationResult(2.0, 50.0)])
    monkeypatch.setattr("regard.training.checkpoint_averaging.validate", lambda *_: next(results))
    selection, _, _ = select(folder, data, objective)
    assert selection.name == "step 8" and selection.result.bleu == 60.0
