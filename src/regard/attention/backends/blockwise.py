"""Block by block, the scores of a few queries at a time: for what would not fit at once."""

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from regard._support.functorch import in_functorch
from regard._support.precision import upcast
from regard.attention.backends import dense
from regard.attention.call import AttentionCall, stack_groups
from regard.masks.shape import AttentionShape
from regard.shapes import Context, Weights

BLOCK = 2**20  # scores held at a time, 4 MiB in float32: they stay in the cache


def attend(job: AttentionCall, dropout: float) -> Context:
    """Gather the values with memory that grows with the keys, not with queries × keys.

    For the backward pass each block is computed again instead of being kept, save under
    `torch.func`, which cannot do so.
    """

    def block(queries: Tensor, frame: AttentionShape) -> Context:
        return dense.gather(job, dense.weigh(job, dense.score(job, queries), frame), dropout)

    if job.needs_grad():
        run = block if in_functorch() else partial(checkpoint, block, use_reentrant=False)
        return torch.cat([run(*part) for part in _parts(job)], dim=-2)
    # written into place: small results kept between large blocks would keep these from being reused
    context = job.values.new_empty(*job.shape.score_shape[:-1], job.values.shape[-1])
    for queries, frame in _parts(job):
        context.narrow(-2, frame.row_start, queries.shape[-2]).copy_(block(queries, frame))
    return context


def weights(job: AttentionCall) -> Weights:
    """Write the weights of all pairs, holding nothing else of that size; without gradients."""
    looks = job.queries.new_empty(job.shape.score_shape)
    if dense.is_plain(job) and _knows_no_heads(job):
        _write_plain(job, stack_groups(looks, job.groups))
    else:
        for queries, frame in _parts(job):
            rows = looks.narrow(-2, frame.row_start, queries.shape[-2])
            rows.copy_(dense.weigh(job, dense.score(job, queries), frame))
    return looks


def _knows_no_heads(job: AttentionCall) -> bool:
    """Tell whether heads may be scored in any order; a caller's score may tell them apart."""
    return type(job.score).__module__.startswith("regard.")


def _write_plain(job: AttentionCall, looks: Weights) -> None:
    """Write weights that no mask or bias touches, head by head: more rows of fewer heads."""
    everything = (looks, stack_groups(job.queries, job.groups), job.keys)
    looks, queries, keys = (x.reshape(-1, *x.shape[-2:]) for x in everything)
    rows = max(1, min(BLOCK // keys.shape[-2], queries.shape[-2]))
    heads = max(1, BLOCK // (rows * keys.shape[-2]))
    for h in range(0, len(looks), heads):
        for q in range(0, queries.shape[-2], rows):
            place = (slice(h, h + heads), slice(q, q + rows))
            scores = upcast(job.score(queries[place], keys[h : h + heads]))
            if scores.dtype == looks.dtype:
                torch.softmax(scores, dim=-1, out=looks[place])
            else:
                looks[place] = scores.softmax(dim=-1)


def _parts(job: AttentionCall) -> Iterator[tuple[Tensor, AttentionShape]]:
    """Cut the queries into blocks whose scores are few, of one query at least."""
    row = torch.Size(job.shape.batch).numel() * job.shape.keys
    rows = max(1, BLOCK // max(1, row))
    for number, queries in enumerate(job.queries.split(rows, dim=-2)):
        yield queries, job.shape.with_rows(number * rows, queries.shape[-2])
