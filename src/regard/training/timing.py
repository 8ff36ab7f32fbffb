"""Number of threads, and an estimate of the training time."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from functools import partial
from itertools import islice

import torch

from regard.config import RunConfig
from regard.data import batch_by_length, collate, shard
from regard.training.distributed import Distributed, launched_processes
from regard.training.objective import Objective
from regard.training.optim import build_optimizer
from regard.training.preparation import TrainingData
from regard.training.sharding import Sharding

MAX_SINGLE_THREAD_CELLS = 4096 * 256  # batch tokens × width, up to which one thread is enough
TIMED_BATCHES = 4  # the first of them is not counted


@contextmanager
def limit_threads(config: RunConfig) -> Iterator[None]:
    """Compute on `train.threads` threads or, if it is 0, on one for a small model.

    A large model of several processes shares the cores among them.

    Two threads are 1.2 times as fast as one on the small products of a small model, and ten times
    slower when another program runs: then each waits for the other to be scheduled.
    """
    before = torch.get_num_threads()
    is_small = config.train.batch_tokens * config.model.width <= MAX_SINGLE_THREAD_CELLS
    processes = 1 if launched_processes() else config.train.processes  # torchrun sets its own share
    share = max(before // max(processes, 1), 1)
    torch.set_num_threads(config.train.threads or (1 if is_small else share))
    try:
        yield
    finally:
        torch.set_num_threads(before)


def seconds_per_step(objective: Objective, data: TrainingData, group: Distributed) -> float:
    """Measure a few steps of a copy of the model; return the seconds of one step."""
    config = data.config.train
    batches = batch_by_length(data.train, config.batch_tokens, config.seed, epoch=0)
    trial = deepcopy(objective)
    optimizer = build_optimizer(trial.model, config, group)
    if config.shard and group.world_size > 1:  # the memory may not be enough for it otherwise
        build = partial(build_optimizer, config=config, group=group)
        sharding = Sharding(trial, optimizer, build, group)
        trial, optimizer = sharding.objective, sharding.optimizer
    gradient_times, update_times = [], []
    for rows in islice(batches, TIMED_BATCHES):
        start = _time_when_computed(group.device)
        own = shard(rows, group.rank, group.world_size)
        batch = collate(data.train, own if len(own) else rows, config.alignment_loss_weight > 0)
        trial(batch.to(group.device)).loss.backward()
        middle = _time_when_computed(group.device)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        gradient_times.append(middle - start)
        update_times.append(_time_when_computed(group.device) - middle)
    gradient, update = _mean_after_warmup(gradient_times), _mean_after_warmup(update_times)
    return config.accumulation_steps * gradient + update


def _time_when_computed(device: torch.device) -> float:
    """Return the time at which a device has computed what was queued; GPUs run behind Python."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def validation_seconds(step_seconds: float, data: TrainingData) -> float:
    """Estimate the duration of a validation: a forward pass is a third of a step."""
    tokens = int(data.valid.lengths[1].sum()) + len(data.valid)
    batches = max(tokens / data.config.train.batch_tokens, 1.0)
    return step_seconds * batches / 3


def _mean_after_warmup(times: list[float]) -> float:
    """Return the mean without the first value, if there are others."""
    return sum(times[1:] or times) / len(times[1:] or times)
