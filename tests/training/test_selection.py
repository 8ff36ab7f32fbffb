from dataclasses import replace

import pytest
import torch

from helpers.tiny_corpus import SMALL, corpus
from regard.config import RunConfig
from regard.models import build
from regard.runs import RunFolder, parameters
from regard.training.checkpoint import Checkpoints
from regard.training.objective import Objective
from regard.training.selection import finish
from regard.training.setup import prepare
from regard.training.state import Progress

pytestmark = pytest.mark.usefixtures("unchecked")


@pytest.fixture
def made(tmp_path):
    """A run with three checkpoints: good weights plus or minus noise, and rubbish between."""
    folder = RunFolder(tmp_path / "run")
    settings = RunConfig.from_dict(SMALL[0])
    origin = {"texts": ["small"], "fingerprints": ["f"], "pairs": 225}
    folder.write_settings(settings, origin)
    prepared = prepare(folder, settings, corpus(), None, 225)
    model = build(settings.model, prepared.tokenizers.vocab_sizes)
    return folder, prepared, model


def write(folder, model, change_by):
    checkpoints = Checkpoints(folder.checkpoints)
    good = {name: tensor.clone() for name, tensor in parameters.state_of(model).items()}
    for step, by in change_by.items():
        changed = {name: tensor + by(tensor) for name, tensor in good.items()}
        parameters.save(checkpoints.parameters_path(step), changed)
    return good


def noise(sign):
    def by(tensor):
        return sign * torch.randn(tensor.shape, generator=torch.Generator().manual_seed(5))

    return by


def ended(best):
    return Progress(step=8, judged={"4": 2.0, "8": 1.0}, best=1.0, best_step=best, finished="done")


def test_the_mean_is_taken_where_it_validates_better(made):
    folder, prepared, model = made
    good = write(folder, model, {4: noise(1.0), 8: noise(-1.0)})
    told = []
    finish(folder, prepared, Objective(model), ended(8), told.append)
    kept, about = parameters.load(folder.model)
    assert about == {"taken": "the mean of steps 4 and 8"}
    for name, tensor in kept.items():
        torch.testing.assert_close(tensor, good[name], rtol=1e-5, atol=1e-5)
    assert "the mean of steps 4 and 8" in told[-1] and folder.model_card.exists()


@pytest.mark.parametrize("damage", ["altered", "missing"])
@pytest.mark.parametrize("step", [4, 8])
def test_weights_that_are_damaged_are_left_out_with_a_warning(made, damage, step):
    folder, prepared, model = made
    good = write(folder, model, {4: noise(1.0), 6: noise(-1.0), 8: torch.zeros_like})
    parameters.save(folder.model, good, {"step": 8})
    path = Checkpoints(folder.checkpoints).parameters_path(step)
    if damage == "missing":
        path.unlink()
    else:
        content = bytearray(path.read_bytes())
        content[-1] ^= 1
        path.write_bytes(content)
    told = []
    finish(folder, prepared, Objective(model), ended(8), told.append)
    assert any(path.name in line and line.endswith("going on without it") for line in told)
    kept, about = parameters.load(folder.model)
    assert about == {"taken": "those of step 8"}
    assert all(torch.equal(kept[name], good[name]) for name in kept)
    assert folder.model_card.exists()


def test_bleu_decides_where_it_is_the_judge(made, monkeypatch):
    folder, prepared, model = made
    write(folder, model, {4: noise(1.0), 8: noise(-1.0)})
    bleu = iter([60.0, 50.0])  # of the best, and of the mean, whose loss is lower
    monkeypatch.setattr("regard.training.selection.validation_bleu", lambda *_: next(bleu))
    settings = prepared.settings.update({"train": {"validation_metric": "bleu"}})
    prepared = replace(prepared, settings=settings)
    finish(folder, prepared, Objective(model), ended(8), lambda line: None)
    assert parameters.load(folder.model)[1] == {"taken": "those of step 8"}


def test_the_best_single_one_is_taken_where_the_mean_is_worse(made):
    folder, prepared, model = made
    good = write(
        folder,
        model,
        {4: lambda tensor: 30 * torch.ones_like(tensor) * tensor.sign(), 8: torch.zeros_like},
    )
    finish(folder, prepared, Objective(model), ended(8), lambda line: None)
    kept, about = parameters.load(folder.model)
    assert about == {"taken": "those of step 8"}
    assert all(torch.equal(kept[name], good[name]) for name in kept)
