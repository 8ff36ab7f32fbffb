"""How long a training will take."""

import time
from copy import deepcopy
from itertools import islice

from regard.data import batch_by_length, collate, shard
from regard.training import optim
from regard.training.distributed import Distributed
from regard.training.objective import Objective
from regard.training.setup import Prepared


def seconds_per_step(objective: Objective, prepared: Prepared, crew: Distributed) -> float:
    """Time a few steps of a copy, on batches of middling length."""
    settings = prepared.settings.train
    order = batch_by_length(prepared.train, settings.batch_tokens, settings.seed, epoch=0)
    trial = deepcopy(objective)
    moved_by = optim.build(trial.model, settings, crew)
    learning, moving = [], []
    for rows in islice(order, 4):
        start = time.perf_counter()
        mine = shard(rows, crew.rank, crew.world)
        part = collate(
            prepared.train, mine if len(mine) else rows, settings.alignment_loss_weight > 0
        )
        trial(part.to(crew.device)).learned.backward()
        learned = time.perf_counter()
        moved_by.step()
        moved_by.zero_grad(set_to_none=True)
        learning.append(learned - start)
        moving.append(time.perf_counter() - learned)
    return settings.accumulation_steps * _usual(learning) + _usual(moving)


def _usual(times: list[float]) -> float:
    """Give the mean without the first one, which warms up."""
    return sum(times[1:] or times) / len(times[1:] or times)
