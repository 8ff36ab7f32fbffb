"""The summary of attention weights, computed with torch in blocks of rows.

This is the only implementation: `regard.trace.summarize_weights` runs it over an array, and
`regard.capture` over weights that are recomputed block by block and never held in full. It is
imported on first use, so that reading, writing and drawing a trace do not load torch.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from regard.trace.summary import MAX_TILES, TOP_KEYS

BLOCK_WEIGHTS = 2**18  # weights computed at a time: 1 MiB in float32, which stays in the cache
GROUP_KEYS = 64  # keys per group in the two-stage search for the heaviest keys


class TensorSummary(NamedTuple):
    """The fields of `regard.trace.AttentionSummary` as tensors, with any leading axes."""

    top_keys: Tensor
    top_weights: Tensor
    remainder: Tensor
    tiles: Tensor
    entropy: Tensor
    received: Tensor
    distance: Tensor


def allocate_summary(
    leading: tuple[int, ...],
    queries: int,
    keys: int,
    top: int = TOP_KEYS,
    dtype: torch.dtype = torch.float32,
) -> TensorSummary:
    """Return an all-zero summary; device and dtype do not follow the user's defaults."""

    def zeros(*sizes: int, dtype: torch.dtype = dtype) -> Tensor:
        return torch.zeros(*leading, *sizes, dtype=dtype, device="cpu")

    ranks = min(top, keys)
    return TensorSummary(
        top_keys=zeros(queries, ranks, dtype=torch.int32),
        top_weights=zeros(queries, ranks),
        remainder=zeros(queries),
        tiles=zeros(min(queries, MAX_TILES), min(keys, MAX_TILES)),
        entropy=zeros(queries),
        received=zeros(keys),
        distance=zeros(queries),
    )


def summarize_blocks(
    compute_rows: Callable[[slice], Tensor],
    into: TensorSummary,
    first: int = 0,
    stable: bool = False,
    block_weights: int = BLOCK_WEIGHTS,
) -> None:
    """Summarize weights block by block, so that memory grows linearly with queries and keys.

    Args:
        compute_rows: returns the weights (head, row, key) of a slice of rows; trailing keys that
            none of these rows can see may be missing.
        into: the summary to fill, with one leading axis (head).
        first: position of the first query among the keys, from which distances are measured.
        stable: break ties between equally heavy keys in favour of the lower position. That sorts
            whole rows; `topk`, which is several times faster, breaks ties arbitrarily.
        block_weights: weights to compute at a time.
    """
    heads, queries, keys = *into.entropy.shape, into.received.shape[-1]
    edges = tile_edges(queries)
    # sums over the queries of each row of tiles
    sums = torch.zeros(*into.tiles.shape[:2], keys, dtype=into.entropy.dtype, device="cpu")
    block = max(1, block_weights // max(1, heads * keys))
    for start in range(0, queries, block):
        rows = slice(start, min(start + block, queries))
        weights = compute_rows(rows)
        _summarize_rows(weights, _slice_rows(into, rows), first + start, stable)
        positions = _arange(rows.start, rows.stop)
        inside = (positions >= edges[:-1, None]) & (positions < edges[1:, None])
        tile_rows = inside.any(1).nonzero()
        low, high = int(tile_rows[0]), int(tile_rows[-1]) + 1
        sums[:, low:high, : weights.shape[-1]] += inside[low:high].to(weights.dtype) @ weights
    _write_sums(sums, edges, into)


def _slice_rows(into: TensorSummary, rows: slice) -> TensorSummary:
    """Slice the fields that have a query axis; the others are written at the end."""
    without_queries = {"tiles", "received"}
    return TensorSummary(
        *(x if name in without_queries else x[:, rows] for name, x in into._asdict().items())
    )


def _summarize_rows(weights: Tensor, into: TensorSummary, first: int, stable: bool) -> None:
    rows, keys = weights.shape[-2:]
    heaviest, indices = heaviest_keys(weights, into.top_keys.shape[-1], stable)
    ranks = heaviest.shape[-1]
    into.top_weights[..., :ranks], into.top_keys[..., :ranks] = heaviest, indices.int()
    torch.sub(weights.sum(dim=-1), heaviest.sum(dim=-1), out=into.remainder).clamp_min_(0)
    logs = weights.clamp_min(torch.finfo(weights.dtype).tiny).log_()
    # a weight that rounding left above 1 must not give a negative entropy
    into.entropy.copy_(logs.mul_(weights).sum(dim=-1).abs_())
    positions = torch.arange(first, first + rows, dtype=weights.dtype, device="cpu")[:, None]
    distances = torch.arange(keys, dtype=weights.dtype, device="cpu").sub(positions).abs_()
    into.distance.copy_(torch.mul(weights, distances, out=logs).sum(dim=-1))


def heaviest_keys(weights: Tensor, count: int, stable: bool = False) -> tuple[Tensor, Tensor]:
    """Return the `count` largest weights of each row and their keys; all, if there are fewer.

    Long rows are searched in two stages: a key among the `count` heaviest lies in one of the
    `count` groups with the largest maxima, so only those groups are searched.
    """
    keys = weights.shape[-1]
    if stable:
        values, indices = weights.sort(dim=-1, descending=True, stable=True)
        return values[..., :count], indices[..., :count]
    groups = keys // GROUP_KEYS
    if groups <= 2 * count:
        best = weights.topk(min(count, keys), dim=-1)
        return best.values, best.indices
    grouped = weights[..., : groups * GROUP_KEYS].unflatten(-1, (groups, GROUP_KEYS))
    best_groups = grouped.amax(dim=-1).topk(count, dim=-1).indices
    members = (best_groups[..., None] * GROUP_KEYS + _arange(0, GROUP_KEYS)).flatten(-2)
    ungrouped = _arange(groups * GROUP_KEYS, keys).expand(*members.shape[:-1], -1)
    members = torch.cat([members, ungrouped], dim=-1)
    best = weights.gather(-1, members).topk(count, dim=-1)
    return best.values, members.gather(-1, best.indices)


def _write_sums(sums: Tensor, row_edges: Tensor, into: TensorSummary) -> None:
    attending_queries = (into.top_weights[..., :1] > 0).any(dim=-1).sum(dim=-1).clamp_min(1)
    into.received.copy_(sums.sum(dim=1) / attending_queries[:, None])
    column_edges = tile_edges(sums.shape[-1])
    cumulative = pad(sums.double().cumsum(dim=-1), (1, 0))
    area = row_edges.diff()[:, None] * column_edges.diff()
    into.tiles.copy_(cumulative[..., column_edges].diff(dim=-1) / area)


def tile_edges(count: int) -> Tensor:
    """Return the first position of each tile, and the number of positions at the end."""
    tiles = max(1, min(count, MAX_TILES))
    return _arange(0, tiles + 1) * count // tiles


def _arange(start: int, stop: int) -> Tensor:
    return torch.arange(start, stop, device="cpu")
