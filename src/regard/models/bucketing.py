"""Length bucketing: encode items of similar length together, with hardly any padding."""

from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Int
from torch import Tensor

MAX_PADDING = 1 / 16  # share of a bucket
MIN_BUCKET_TOKENS = 512  # enough to fill the kernels; smaller buckets would not be faster


def length_buckets(lengths: Int[Tensor, " batch"]) -> list[Tensor]:
    """Split a batch into buckets of similar length; return the rows of each, longest first.

    A bucket is closed when it has `MIN_BUCKET_TOKENS` and the next item would make more than
    `MAX_PADDING` of it padding.
    """
    order = torch.argsort(lengths, descending=True, stable=True)
    return list(order.split(list(_bucket_sizes(lengths[order].tolist()))))


def _bucket_sizes(lengths: list[int]) -> Iterator[int]:
    """Yield the number of items in each bucket, for lengths in descending order."""
    first = tokens = 0
    for row, length in enumerate(lengths):
        padded = lengths[first] * (row + 1 - first)
        if tokens >= MIN_BUCKET_TOKENS and tokens + length < (1 - MAX_PADDING) * padded:
            yield row - first
            first, tokens = row, 0
        tokens += length
    yield len(lengths) - first


def scatter_rows(parts: Sequence[Tensor], rows: Sequence[Tensor], axis: int) -> Tensor:
    """Join parts of a batch, each item at its row; parts shorter along the axis end in zeros."""
    shape = list(parts[0].shape)
    shape[0], shape[axis] = sum(map(len, parts)), max(part.shape[axis] for part in parts)
    batch = parts[0].new_empty(shape)
    for part, own_rows in zip(parts, rows, strict=True):
        length = part.shape[axis]
        batch.narrow(axis, 0, length).index_copy_(0, own_rows, part)
        batch.narrow(axis, length, shape[axis] - length).index_fill_(0, own_rows, 0)
    return batch
