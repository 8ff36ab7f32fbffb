"""How long a training will take."""

import time
from copy import deepcopy
from itertools import islice

from regard import batch as batches
from regard.training.distributed import Crew
from regard.training.objective import Objective
from regard.training.prepare import Prepared


def seconds_per_step(objective: Objective, prepared: Prepared, crew: Crew) -> float:
    """Time a few steps of a copy, on batches of middling length."""
    settings = prepared.settings.train
    order = batches.plan(prepared.train, settings.tokens, settings.seed, epoch=0)
    trial = deepcopy(objective)
    times = []
    for rows in islice(order, 4):
        start = time.perf_counter()
        mine = batches.shard(rows, crew.rank, crew.world)
        part = batches.collate(prepared.train, mine if len(mine) else rows, settings.guide > 0)
        trial(part.to(crew.device)).learned.backward()
        times.append(time.perf_counter() - start)
    # the first one warms up; the optimizer takes about a tenth more
    return 1.1 * settings.accumulate * sum(times[1:] or times) / len(times[1:] or times)
