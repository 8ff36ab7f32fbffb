"""Block by block, for scores that do not fold: the weights of a few queries at a time."""

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from regard.attention import dense
from regard.attention.job import Job
from regard.masks.frame import Frame
from regard.shapes import Context

BLOCK = 2**21  # scores held at a time, 8 MiB in float32


def attend(job: Job, dropout: float) -> Context:
    """Gather the values with memory that grows with the keys, not with queries × keys.

    For the backward pass each block is computed again instead of being kept.
    """

    def block(queries: Tensor, frame: Frame) -> Context:
        return dense.gather(job, dense.weigh(job, dense.score(job, queries), frame), dropout)

    rows = _rows_per_block(job.frame)
    contexts = []
    for number, queries in enumerate(job.queries.split(rows, dim=-2)):
        frame = job.frame.part(number * rows, queries.shape[-2])
        if torch.is_grad_enabled():
            contexts.append(checkpoint(block, queries, frame, use_reentrant=False))
        else:
            contexts.append(block(queries, frame))
    return torch.cat(contexts, dim=-2)


def _rows_per_block(frame: Frame) -> int:
    """Count the queries whose scores fit into one block, one at least."""
    row = torch.Size(frame.batch).numel() * frame.keys
    return max(1, BLOCK // max(1, row))
