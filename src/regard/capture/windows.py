"""Attention within windows, or over other rows in each head, put back to positions."""

from collections.abc import Sequence

import torch
from torch import Tensor

from regard.capture.layout import WindowPositions
from regard.capture.records import CapturedAttention
from regard.errors import RegardError


class UnknownPositionsError(RegardError):
    """Windows of attention cannot be put back to positions."""


def find_unplaced(record: CapturedAttention, batch_index: int) -> UnknownPositionsError | None:
    """Return why the windows of a record cannot be put back to positions; None if they can."""
    weights = record.weights
    if not record.axes.needs_positions or weights is None:
        return None
    item = min(batch_index, len(weights) - 1)
    try:
        _of_item(record, item, (record.num_windows, *weights.shape[-3:]))
    except UnknownPositionsError as error:
        return error
    return None


def without_windows(record: CapturedAttention, batch_index: int) -> CapturedAttention:
    """Return the record of one item with its windows put back to their positions.

    Raises:
        UnknownPositionsError: if these are not known.
        RegardError: if the weights were summarized.
    """
    if not record.axes.needs_positions:
        return record
    flat = record.flat_weights
    if flat is None:
        raise RegardError(
            f"the weights of {record.name} are summarized window by window, which cannot be put "
            "back to positions; watch with keep='all'"
        )
    weights: Tensor = flat.unflatten(0, (-1, record.num_windows))
    batch_size = len(weights)
    item = min(batch_index, batch_size - 1)
    whole = windows_to_positions(record, weights[item], item)
    norms = _norms_at_positions(record, item)
    return record.with_weights(
        whole[None].expand(batch_size, -1, -1, -1),
        value_norms=None if norms is None else norms[None].expand(batch_size, -1, -1),
        extra_keys=_positions(record).num_extra,
    )


def windows_to_positions(record: CapturedAttention, item: Tensor, batch_index: int = 0) -> Tensor:
    """Put the windows of one item back to positions.

    Args:
        record: of attention within windows.
        item: (window, head, query, key), weights or gradients of one item of the batch.
        batch_index: which item of the batch it is.

    Returns:
        A tensor (head, position, position). Keys that are no positions, as summaries of the text
        are, come after all others.

    Raises:
        UnknownPositionsError: if the positions are not known.
    """
    queries, keys, num_queries, num_keys = _of_item(record, batch_index, item.shape)
    whole = item.new_zeros(item.shape[1], num_queries + 1, num_keys + 1)  # the last is padding
    heads = torch.arange(item.shape[1], device=item.device).view(-1, 1, 1)
    for own, own_queries, own_keys in zip(item, queries, keys, strict=True):
        index = heads, own_queries[:, :, None], own_keys[:, None]
        whole.index_put_(index, own, accumulate=True)
    return whole[:, :-1, :-1]


def _positions(record: CapturedAttention) -> WindowPositions:
    known = record.axes.positions
    if known is None:
        raise UnknownPositionsError(
            f"the positions of the {record.num_windows} windows of {record.name} are not known, so "
            "that they cannot be put back; capture.weights has them window by window"
        )
    return known


def _of_item(
    record: CapturedAttention, batch_index: int, shape: Sequence[int]
) -> tuple[Tensor, Tensor, int, int]:
    """Return positions (window, head, row) of queries and keys, and how many there are."""
    known = _positions(record)
    windows, heads, *_ = shape
    queries, keys = (
        _select(x, batch_index, record.heads).expand(windows, heads, -1)
        for x in (known.queries, known.keys)
    )
    num_keys = known.num_keys + known.num_extra
    if not _have_repetitions(queries):
        return queries, keys, known.num_queries, num_keys
    if not torch.equal(queries, queries[:1].expand_as(queries)):
        raise UnknownPositionsError(
            f"several windows of {record.name} have the same queries, whose weights it combines "
            "later, so that they cannot be put back to positions; capture.weights has them window "
            "by window"
        )
    # each window has the same queries, and a context of its own for each of them
    if record.kind != "cross" and queries.shape == keys.shape:
        return keys, keys, num_keys, num_keys
    count = windows * queries.shape[2]
    queries = torch.arange(count, device="cpu").view(windows, 1, -1).expand(windows, heads, -1)
    return queries, keys, count, num_keys


def _select(positions: Tensor, batch_index: int, heads: list[int]) -> Tensor:
    """Return the positions (window, head, row) of one item and the heads that were kept."""
    if positions.ndim == 2:
        return positions[:, None]
    return positions[batch_index][:, heads]


def _have_repetitions(queries: Tensor) -> bool:
    """Return whether any query is in two windows of a head."""
    rows = queries.transpose(0, 1).flatten(1)
    return any(len(x.unique()) < len(x) for x in (own[own >= 0] for own in rows))


def _norms_at_positions(record: CapturedAttention, index: int) -> Tensor | None:
    """Return the norms (head, key) of one item's values; None if windows differ in them."""
    if record.value_norms is None:
        return None
    item: Tensor = record.value_norms.unflatten(0, (-1, record.num_windows))[index]
    _, keys, _, num_keys = _of_item(record, index, item[:, :, None].shape)
    whole = item.new_zeros(item.shape[1], num_keys + 1)  # the last is padding
    heads = torch.arange(item.shape[1], device=item.device)[:, None]
    for own_keys, norms in zip(keys, item, strict=True):
        whole[heads, own_keys] = norms
    is_real = keys >= 0
    again = torch.stack([whole[heads, own_keys] for own_keys in keys])
    return whole[:, :-1] if torch.allclose(again[is_real], item[is_real]) else None
