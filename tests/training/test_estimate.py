from itertools import accumulate
from types import SimpleNamespace

import pytest

from helpers.tiny_corpus import SMALL, corpus
from regard.models import build
from regard.runs import RunFolder
from regard.training import estimate, setup
from regard.training.distributed import gathered
from regard.training.objective import Objective


@pytest.fixture
def prepared(tmp_path):
    folder = RunFolder(tmp_path / "run")
    settings, count = setup.settle(corpus(), [*SMALL, {"train": {"accumulation_steps": 3}}])
    setup.prepare(folder, settings, corpus(), None, count)
    return setup.opened(folder, settings)


def test_a_step_takes_what_some_batches_take_but_for_the_first(prepared, monkeypatch):
    """The clock says that batches took 100, 1, 2 and 3 seconds, the optimizer 50, 4, 4 and 4."""
    said = accumulate(map(float, [0, 100, 50, 5, 1, 4, 5, 2, 4, 5, 3, 4]))
    monkeypatch.setattr(estimate, "time", SimpleNamespace(perf_counter=lambda: next(said)))
    objective = Objective(build(prepared.settings.model, prepared.tokenizers.vocab_sizes))
    with gathered() as crew:
        seconds = estimate.seconds_per_step(objective, prepared, crew)
    assert seconds == pytest.approx(3 * 2 + 4)  # three batches in a step, and the optimizer
    assert all(weight.grad is None for weight in objective.parameters())
