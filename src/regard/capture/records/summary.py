"""Summaries of captured weights: computed per call, and joined over the steps of a generation."""

from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import pad

from regard.capture.calls import CapturedCall
from regard.trace.block_summary import (
    BLOCK_WEIGHTS,
    TensorSummary,
    allocate_summary,
    summarize_blocks,
    tile_edges,
)

MIN_BLOCK_ROWS = 64  # rows that a block of several heads should have, if there are as many


def summarize_call(
    call: CapturedCall, heads: list[int], first: int, block_weights: int = BLOCK_WEIGHTS
) -> TensorSummary:
    """Summarize the weights (batch, head, query, key) of a call without holding all of them.

    Distances are measured from `first`, the position of the first query among the keys.
    """
    batch, _, queries, keys = call.shape
    summary = allocate_summary((batch, len(heads)), queries, keys)
    items = [slice(b, b + 1) for b in range(batch)] if call.heads_independent else [slice(None)]
    step = _heads_per_block(call, len(heads), block_weights)
    for item in items:
        for h in range(0, len(heads), step):
            selected = heads[h : h + step]
            # one axis for batch items and heads: each has rows of its own
            part = TensorSummary(*(field[item, h : h + step].flatten(0, 1) for field in summary))
            summarize_blocks(
                partial(_compute_rows, call, item, selected),
                part,
                first,
                block_weights=block_weights,
            )
    return summary


def _compute_rows(call: CapturedCall, item: slice, heads: list[int], rows: slice) -> Tensor:
    return call.weights(item, heads, rows).flatten(0, 1).float().cpu()


def _heads_per_block(call: CapturedCall, num_heads: int, block_weights: int) -> int:
    """Return how many heads fit into a block that still has a good number of rows."""
    if not call.heads_independent:
        return max(1, num_heads)
    _, _, queries, keys = call.shape
    fitting = block_weights // max(1, min(queries, MIN_BLOCK_ROWS) * keys)
    return max(1, min(fitting, num_heads))


def join_summaries(parts: list[TensorSummary], keys: int) -> TensorSummary:
    """Concatenate the summaries of successive steps along the queries, over `keys` keys.

    All fields are exact but the tiles, which are redrawn from the heaviest keys of each row; the
    remainder is spread evenly over the keys that the row could see.
    """
    if len(parts) == 1 and parts[0].received.shape[-1] == keys:
        return parts[0]
    ranks = max(part.top_keys.shape[-1] for part in parts)
    # a key of weight 0 may lie in a part of a static cache that was never filled: use key 0
    top_keys = torch.cat(
        [_resize(part.top_keys * (part.top_weights > 0), ranks) for part in parts], dim=2
    )
    top_weights = torch.cat([_resize(part.top_weights, ranks) for part in parts], dim=2)
    remainder = torch.cat([part.remainder for part in parts], dim=2)
    return TensorSummary(
        top_keys=top_keys,
        top_weights=top_weights,
        remainder=remainder,
        tiles=_draw_tiles(top_keys, top_weights, remainder, _num_visible(parts, keys), keys),
        entropy=torch.cat([part.entropy for part in parts], dim=2),
        received=_join_received(parts, keys),
        distance=torch.cat([part.distance for part in parts], dim=2),
    )


def _resize(tensor: Tensor, width: int) -> Tensor:
    """Pad or cut the last axis."""
    return pad(tensor, (0, max(0, width - tensor.shape[-1])))[..., :width]


def _num_visible(parts: list[TensorSummary], keys: int) -> Tensor:
    """Return for each row the number of keys that it could see."""
    counts = [
        count
        for part in parts
        for count in [min(part.received.shape[-1], keys)] * part.top_keys.shape[2]
    ]
    return torch.tensor(counts, device="cpu")


def _join_received(parts: list[TensorSummary], keys: int) -> Tensor:
    """Average over the queries of all parts, which are means over those of each part."""
    counts = [(part.top_weights[..., 0] > 0).sum(dim=-1, keepdim=True) for part in parts]
    sums = [_resize(part.received, keys) * n for part, n in zip(parts, counts, strict=True)]
    return torch.stack(sums).sum(dim=0) / torch.stack(counts).sum(dim=0).clamp_min(1)


def _draw_tiles(
    top_keys: Tensor, top_weights: Tensor, remainder: Tensor, num_visible: Tensor, keys: int
) -> Tensor:
    row_edges, column_edges = tile_edges(top_keys.shape[2]), tile_edges(keys)
    positions = torch.arange(keys, device="cpu")
    column_of_key = torch.bucketize(positions, column_edges[1:], right=True)
    widths = column_edges.diff()
    visible = (num_visible[:, None] - column_edges[:-1]).clamp_min(0).minimum(widths)
    rows = remainder[..., None] * visible / num_visible[:, None].clamp_min(1)  # (…, query, column)
    rows.scatter_add_(-1, column_of_key[top_keys.long()], top_weights)
    cumulative = pad(rows.cumsum(dim=-2), (0, 0, 1, 0))
    return cumulative[..., row_edges, :].diff(dim=-2) / (row_edges.diff()[:, None] * widths)
