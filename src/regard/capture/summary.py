"""Weights too many to keep, reduced as they are computed: the strongest, a picture, and sums."""

from typing import NamedTuple, TypedDict

import torch
from torch import Tensor

from regard.capture.calls.base import Asked
from regard.trace import MAX_TILES, TOP_KEYS


class _Settings(TypedDict):
    dtype: torch.dtype
    device: str


BLOCK = 2**18  # weights held at a time, 1 MiB in float32: they stay in the cache
GROUP = 64  # the strongest keys are sought in the groups with the strongest members

# what is kept follows neither the default device nor the default precision of the user
_HERE: _Settings = {"dtype": torch.float32, "device": "cpu"}


class Rows(NamedTuple):
    """What is kept of some rows: see `regard.trace` for the axes; a batch comes before them."""

    top_keys: Tensor
    top_weights: Tensor
    remainder: Tensor
    tiles: Tensor
    entropy: Tensor
    received: Tensor
    distance: Tensor


def reduce(asked: Asked, heads: list[int], first: int) -> Rows:
    """Reduce a call block by block: memory grows with queries and keys, not with their product.

    Distances are counted from `first`, the key that has the same number as the first query.
    """
    batch, _, queries, keys = asked.sizes
    rows = _blank(batch, len(heads), queries, keys)
    together = _heads_together(asked, len(heads))
    for sentences in [slice(b, b + 1) for b in range(batch)] if asked.apart else [slice(None)]:
        for h in range(0, len(heads), together):
            # sentences and heads are counted through: each has its own rows
            part = (numbers[sentences, h : h + together].flatten(0, 1) for numbers in rows)
            _reduce_heads(asked, sentences, heads[h : h + together], first, Rows(*part))
    return rows


def _blank(batch: int, heads: int, queries: int, keys: int) -> Rows:
    top, tiles = min(TOP_KEYS, keys), (min(queries, MAX_TILES), min(keys, MAX_TILES))
    row = torch.zeros(batch, heads, queries, **_HERE)
    return Rows(
        top_keys=torch.zeros(batch, heads, queries, top, dtype=torch.int32, device="cpu"),
        top_weights=torch.zeros(batch, heads, queries, top, **_HERE),
        remainder=row,
        tiles=torch.zeros(batch, heads, *tiles, **_HERE),
        entropy=row.clone(),
        received=torch.zeros(batch, heads, keys, **_HERE),
        distance=row.clone(),
    )


def _heads_together(asked: Asked, heads: int) -> int:
    """Choose as many heads as fit a block with a good number of rows."""
    _, _, queries, keys = asked.sizes
    fit = BLOCK // max(1, min(queries, GROUP) * keys)
    return max(1, min(fit, heads) if asked.apart else heads)


def _reduce_heads(asked: Asked, batch: slice, heads: list[int], first: int, into: Rows) -> None:
    _, _, queries, keys = asked.sizes
    sums = torch.zeros(*into.tiles.shape[:2], keys, **_HERE)  # of the rows of each row of tiles
    count = max(1, BLOCK // max(1, len(sums) * keys))
    bounds = edges(queries)
    for start in range(0, queries, count):
        place = slice(start, min(start + count, queries))
        weights = asked.weigh(batch, heads, place).flatten(0, 1).float().cpu()
        _reduce_rows(weights, Rows(*_rows_of(into, place)), first + start)
        inside = _belongs(bounds, place)
        low, high = int(inside.any(1).nonzero()[0]), int(inside.any(1).nonzero()[-1]) + 1
        sums[:, low:high, : weights.shape[-1]] += inside[low:high].float() @ weights
    _write_sums(sums, bounds, into)


def _rows_of(into: Rows, place: slice) -> list[Tensor]:
    """Cut what is counted by rows; the rest is written at the end."""
    whole = {"tiles", "received"}
    return [n if name in whole else n[:, place] for name, n in into._asdict().items()]


def _reduce_rows(weights: Tensor, into: Rows, first: int) -> None:
    count, keys = weights.shape[-2:]
    strongest, places = top(weights, into.top_keys.shape[-1])
    found = strongest.shape[-1]
    into.top_weights[..., :found], into.top_keys[..., :found] = strongest, places.int()
    torch.sub(weights.sum(dim=-1), strongest.sum(dim=-1), out=into.remainder).clamp_min_(0)
    logs = weights.clamp_min(torch.finfo(weights.dtype).tiny).log_()
    into.entropy.copy_(logs.mul_(weights).sum(dim=-1).neg_())
    positions = torch.arange(first, first + count, **_HERE)[:, None]
    away = torch.arange(keys, **_HERE).sub(positions).abs_()
    into.distance.copy_(torch.mul(weights, away, out=logs).sum(dim=-1))


def top(weights: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Find the heaviest keys of each row, and where they are; of fewer, all.

    Of long rows only the groups with the heaviest members are searched: what is among the
    `count` heaviest has at most `count - 1` groups before its own.
    """
    keys = weights.shape[-1]
    groups = keys // GROUP
    if groups <= 2 * count:
        found = weights.topk(min(count, keys), dim=-1)
        return found.values, found.indices
    grouped = weights[..., : groups * GROUP].unflatten(-1, (groups, GROUP))
    best = grouped.amax(dim=-1).topk(count, dim=-1).indices
    members = (best[..., None] * GROUP + _places(0, GROUP)).flatten(-2)
    rest = _places(groups * GROUP, keys).expand(*members.shape[:-1], -1)
    members = torch.cat([members, rest], dim=-1)
    found = weights.gather(-1, members).topk(count, dim=-1)
    return found.values, members.gather(-1, found.indices)


def _places(first: int, end: int) -> Tensor:
    return torch.arange(first, end, device="cpu")


def edges(count: int) -> Tensor:
    """Cut so many positions into tiles: where each begins, and the end."""
    tiles = max(1, min(count, MAX_TILES))
    return _places(0, tiles + 1) * count // tiles


def _belongs(bounds: Tensor, rows: slice) -> Tensor:
    """Tell which rows lie in which row of tiles."""
    positions = _places(rows.start, rows.stop)
    return (positions >= bounds[:-1, None]) & (positions < bounds[1:, None])


def _write_sums(sums: Tensor, bounds: Tensor, into: Rows) -> None:
    looking = (into.top_weights[..., 0] > 0).sum(dim=-1).clamp_min(1)
    into.received.copy_(sums.sum(dim=1) / looking[:, None])
    columns = edges(sums.shape[-1])
    before = torch.nn.functional.pad(sums.double().cumsum(dim=-1), (1, 0))
    area = bounds.diff()[:, None] * columns.diff()
    into.tiles.copy_(before[..., columns].diff(dim=-1) / area)


def join(parts: list[Rows], keys: int) -> Rows:
    """Put the rows of steps below each other, over as many keys as the last one has.

    The picture of steps is drawn anew from the strongest keys of each row; the weight that was
    left out is spread evenly over the keys that the row could see.
    """
    if len(parts) == 1 and parts[0].received.shape[-1] == keys:
        return parts[0]
    ranks = max(part.top_keys.shape[-1] for part in parts)
    cut = [part.received.shape[-1] for part in parts]
    # where a row has nothing, its place may be one that a cache never filled
    tops = [_widened(part.top_keys * (part.top_weights > 0), ranks) for part in parts]
    top_weights = torch.cat([_widened(part.top_weights, ranks) for part in parts], dim=2)
    remainder = torch.cat([part.remainder for part in parts], dim=2)
    return Rows(
        top_keys=torch.cat(tops, dim=2),
        top_weights=top_weights,
        remainder=remainder,
        tiles=_drawn(torch.cat(tops, dim=2), top_weights, remainder, _seen(parts, cut, keys), keys),
        entropy=torch.cat([part.entropy for part in parts], dim=2),
        received=_received(parts, keys),
        distance=torch.cat([part.distance for part in parts], dim=2),
    )


def _widened(numbers: Tensor, width: int) -> Tensor:
    return torch.nn.functional.pad(numbers, (0, max(0, width - numbers.shape[-1])))[..., :width]


def _seen(parts: list[Rows], cut: list[int], keys: int) -> Tensor:
    """Tell how many keys each row could see."""
    counts = [[min(k, keys)] * part.top_keys.shape[2] for part, k in zip(parts, cut, strict=True)]
    return torch.tensor([count for part in counts for count in part], device="cpu")


def _received(parts: list[Rows], keys: int) -> Tensor:
    looking = [(part.top_weights[..., 0] > 0).sum(dim=-1, keepdim=True) for part in parts]
    sums = [_widened(p.received, keys) * n for p, n in zip(parts, looking, strict=True)]
    return torch.stack(sums).sum(dim=0) / torch.stack(looking).sum(dim=0).clamp_min(1)


def _drawn(top: Tensor, weights: Tensor, remainder: Tensor, seen: Tensor, keys: int) -> Tensor:
    rows, columns = edges(top.shape[2]), edges(keys)
    column_of = torch.bucketize(_places(0, keys), columns[1:], right=True)
    width = columns.diff()
    inside = (seen[:, None] - columns[:-1]).clamp_min(0).minimum(width)  # (query, column)
    drawn = remainder[..., None] * inside / seen[:, None].clamp_min(1)
    drawn.scatter_add_(-1, column_of[top.long()], weights)
    before = torch.nn.functional.pad(drawn.cumsum(dim=-2), (0, 0, 1, 0))
    return before[..., rows, :].diff(dim=-2) / (rows.diff()[:, None] * width)
