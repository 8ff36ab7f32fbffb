"""The summary of attention weights by its plain formulas, in numpy."""

import numpy as np

from regard.trace import MAX_TILES, TOP_KEYS, AttentionSummary


def summarize_by_formula(weights):
    """Summarize weights (head, query, key)."""
    queries, keys = weights.shape[-2:]
    top_keys = np.argsort(-weights, axis=-1, kind="stable")[..., :TOP_KEYS]
    top_weights = np.take_along_axis(weights, top_keys, axis=-1)
    distances = np.abs(np.arange(keys) - np.arange(queries)[:, None])
    logs = np.log(np.where(weights > 0, weights, 1))
    attending_queries = np.maximum(1, weights.any(-1).sum(-1, keepdims=True))
    return AttentionSummary(
        top_keys=top_keys,
        top_weights=top_weights,
        remainder=np.maximum(0, weights.sum(-1) - top_weights.sum(-1)),
        tiles=mean_of_tiles(weights),
        entropy=np.abs((weights * logs).sum(-1)),
        received=weights.sum(-2) / attending_queries,
        distance=(weights * distances).sum(-1),
    )


def mean_of_tiles(weights):
    rows, columns = (_tile_edges(count) for count in weights.shape[-2:])
    sums = np.add.reduceat(np.add.reduceat(weights, rows[:-1], axis=1), columns[:-1], axis=2)
    return sums / (np.diff(rows)[:, None] * np.diff(columns))


def _tile_edges(count):
    tiles = min(count, MAX_TILES)
    return np.arange(tiles + 1) * count // tiles
