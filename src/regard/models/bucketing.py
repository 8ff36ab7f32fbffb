"""Portions of like length: sentences that are read together with hardly any padding."""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

WASTE = 1 / 16  # of a portion, that may be padding
LEAST = 512  # tokens that fill the kernels; fewer are read with longer ones, and padded


def portions(lengths: Tensor) -> list[Tensor]:
    """Part sentences by their lengths: the rows of each portion, longest first."""
    order = torch.argsort(lengths, descending=True, stable=True)
    sizes = list(_sizes(lengths[order].tolist()))
    return list(order.split(sizes))


def _sizes(lengths: list[int]) -> Iterator[int]:
    """Say how many of the falling lengths go together, again and again."""
    first = tokens = 0
    for place, length in enumerate(lengths):
        cells = lengths[first] * (place + 1 - first)
        if tokens >= LEAST and tokens + length < (1 - WASTE) * cells:
            yield place - first
            first, tokens = place, 0
        tokens += length
    yield len(lengths) - first


def placed(parts: Sequence[Tensor], rows: Sequence[Tensor], axis: int) -> Tensor:
    """Put each part's sentences to their rows; what is shorter along the axis ends in zeros."""
    shape = list(parts[0].shape)
    shape[0], shape[axis] = sum(map(len, parts)), max(part.shape[axis] for part in parts)
    whole = parts[0].new_empty(shape)
    for part, places in zip(parts, rows, strict=True):
        length = part.shape[axis]
        whole.narrow(axis, 0, length).index_copy_(0, places, part)
        whole.narrow(axis, length, shape[axis] - length).index_fill_(0, places, 0)
    return whole
