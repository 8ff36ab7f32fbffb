"""How many threads a training computes on."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from regard.config import RunConfig

SMALL = 4096 * 256  # tokens of a batch x width, up to which one thread is enough


@contextmanager
def threads(settings: RunConfig) -> Iterator[None]:
    """Compute on as many threads as the settings say.

    Two threads share the small products of a small model 1.2 times as fast as one computes them,
    and ten times as slowly when another program runs: then each waits for the other's turn.
    """
    before = torch.get_num_threads()
    small = settings.train.batch_tokens * settings.model.width <= SMALL
    torch.set_num_threads(settings.train.threads or (1 if small else before))
    try:
        yield
    finally:
        torch.set_num_threads(before)
