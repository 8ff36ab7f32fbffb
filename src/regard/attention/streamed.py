"""Block by block, the scores of a few queries at a time: for what would not fit at once."""

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from regard.attention import dense
from regard.attention.job import Job
from regard.masks.frame import Frame
from regard.shapes import Context, Weights

BLOCK = 2**19  # scores held at a time, 2 MiB in float32: they stay in the cache


def attend(job: Job, dropout: float) -> Context:
    """Gather the values with memory that grows with the keys, not with queries × keys.

    For the backward pass each block is computed again instead of being kept.
    """

    def block(queries: Tensor, frame: Frame) -> Context:
        return dense.gather(job, dense.weigh(job, dense.score(job, queries), frame), dropout)

    if job.differentiated():
        contexts = [checkpoint(block, *part, use_reentrant=False) for part in _parts(job)]
    else:
        contexts = [block(*part) for part in _parts(job)]
    return torch.cat(contexts, dim=-2)


def weights(job: Job) -> Weights:
    """Write the weights of all pairs, holding nothing else of that size; without gradients."""
    looks = job.queries.new_empty(job.frame.shape)
    for queries, frame in _parts(job):
        rows = looks.narrow(-2, frame.first, queries.shape[-2])
        rows.copy_(dense.weigh(job, dense.score(job, queries), frame))
    return looks


def _parts(job: Job) -> Iterator[tuple[Tensor, Frame]]:
    """Cut the queries into blocks whose scores are few, of one query at least."""
    row = torch.Size(job.frame.batch).numel() * job.frame.keys
    rows = max(1, BLOCK // max(1, row))
    for number, queries in enumerate(job.queries.split(rows, dim=-2)):
        yield queries, job.frame.part(number * rows, queries.shape[-2])
