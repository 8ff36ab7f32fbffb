"""Summaries of attention maps: the heaviest keys of each row, a coarse picture, and sums."""

from dataclasses import replace

import numpy as np

from regard.trace.quantization import Array
from regard.trace.record import AttentionMap, AttentionSummary, Trace

TOP_KEYS = 8  # keys kept of each row
MAX_TILES = 64  # rows and columns of the coarse picture


def summarize(trace: Trace, top: int = TOP_KEYS) -> Trace:
    """Replace the weights of all maps by summaries, so that long inputs make small files.

    Args:
        trace: maps that are summaries already stay as they are.
        top: keys kept of each row. 12 layers of 12 heads over 512 tokens are 4.5 MiB of JSON with
            8 keys, and 3.8 MiB with 6.

    Returns:
        A new trace.
    """
    return replace(trace, maps=tuple(_summarize_map(m, top) for m in trace.maps))


def _summarize_map(attention_map: AttentionMap, top: int) -> AttentionMap:
    if attention_map.weights is None:
        return attention_map
    summary = summarize_weights(attention_map.weights, top)
    return replace(attention_map, weights=None, summary=summary)


def summarize_weights(weights: Array, top: int = TOP_KEYS) -> AttentionSummary:
    """Summarize weights (head, query, key)."""
    queries, keys = weights.shape[-2:]
    top_keys = np.argsort(-weights, axis=-1, kind="stable")[..., :top]
    top_weights = np.take_along_axis(weights, top_keys, axis=-1)
    distances = np.abs(np.arange(keys) - np.arange(queries)[:, None])
    logs = np.log(np.where(weights > 0, weights, 1))
    attending_queries = np.maximum(1, weights.any(-1).sum(-1, keepdims=True))
    return AttentionSummary(
        top_keys=top_keys,
        top_weights=top_weights,
        remainder=np.maximum(0, weights.sum(-1) - top_weights.sum(-1)),
        tiles=_tiles(weights),
        entropy=np.abs((weights * logs).sum(-1)),
        received=weights.sum(-2) / attending_queries,
        distance=(weights * distances).sum(-1),
    )


def _tiles(weights: Array) -> Array:
    """Return the mean weight of each tile."""
    rows, columns = (_tile_edges(count) for count in weights.shape[-2:])
    sums = np.add.reduceat(np.add.reduceat(weights, rows[:-1], axis=1), columns[:-1], axis=2)
    return np.asarray(sums / (np.diff(rows)[:, None] * np.diff(columns)), dtype=np.float32)


def _tile_edges(count: int) -> Array:
    """Return the first position of each tile, and the number of positions at the end."""
    tiles = min(count, MAX_TILES)
    return np.arange(tiles + 1) * count // tiles
