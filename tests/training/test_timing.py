from itertools import accumulate
from types import SimpleNamespace

import pytest
import torch

from regard.config import RunConfig
from regard.models import build
from regard.training import timing
from regard.training.distributed import Distributed
from regard.training.objective import Objective


@pytest.mark.parametrize(
    ("updates", "expected"),
    [({}, 1), ({"train": {"threads": 3}}, 3), ({"model": {"width": 512}}, 2)],
    ids=["small model", "set explicitly", "large model"],
)
def test_thread_limit_depends_on_size_and_is_restored(updates, expected):
    torch.set_num_threads(2)
    try:
        with timing.limit_threads(RunConfig.from_dict(updates)):
            assert torch.get_num_threads() == expected
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)  # as in the other tests


def test_estimate_is_the_mean_of_all_batches_but_the_first(make_data, monkeypatch):
    """By this clock, gradients took 100, 1, 2 and 3 seconds, and updates 50, 4, 4 and 4."""
    data = make_data({"train": {"accumulation_steps": 3}})
    clock = accumulate(map(float, [0, 100, 50, 5, 1, 4, 5, 2, 4, 5, 3, 4]))
    monkeypatch.setattr(timing, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    objective = Objective(build(data.config.model, data.tokenizers.vocab_sizes))
    seconds = timing.seconds_per_step(objective, data, Distributed())
    assert seconds == pytest.approx(3 * 2 + 4)  # three batches a step, and the update
    assert all(parameter.grad is None for parameter in objective.parameters())
