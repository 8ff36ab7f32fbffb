from itertools import accumulate
from types import SimpleNamespace

import pytest
import torch

from regard.config import RunConfig
from regard.data import Batch
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


def test_estimate_waits_for_what_a_gpu_has_queued(make_data, monkeypatch):
    """A forward pass queues 5 seconds of work; Python's own time is none."""
    clock = SimpleNamespace(now=0.0, queued=0.0)

    def synchronize(device):
        clock.now, clock.queued = clock.now + clock.queued, 0.0

    def queue_work(*arguments):
        clock.queued += 5.0

    data = make_data({})
    monkeypatch.setattr(timing, "time", SimpleNamespace(perf_counter=lambda: clock.now))
    monkeypatch.setattr(torch.cuda, "synchronize", synchronize)
    monkeypatch.setattr(Batch, "to", lambda self, device: self)
    objective = Objective(build(data.config.model, data.tokenizers.vocab_sizes))
    objective.register_forward_hook(queue_work)
    group = Distributed(device=torch.device("cuda"))
    assert timing.seconds_per_step(objective, data, group) == 5.0
