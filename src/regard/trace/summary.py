"""Looks reduced to what a picture needs: the strongest of each row, tiles, and sums."""

from dataclasses import replace

import numpy as np

from regard.trace.quantize import Array
from regard.trace.record import Look, Reduced, Trace

TOP = 8  # keys that are kept of each row
TILES = 64  # on each side of the coarse picture


def reduced(trace: Trace, top: int = TOP) -> Trace:
    """Reduce all whole weights of a trace, so that long texts make a small file.

    `top` keys are kept of each row: 12 × 12 heads over 512 tokens make 4.5 MiB of JSON with 8,
    and 3.8 with 6.
    """
    return replace(trace, looks=tuple(_reduced(look, top) for look in trace.looks))


def _reduced(look: Look, top: int) -> Look:
    if look.weights is None:
        return look
    return replace(look, weights=None, reduced=reduce(look.weights, top))


def reduce(weights: Array, ranks: int = TOP) -> Reduced:
    """Reduce weights (head, query, key)."""
    queries, keys = weights.shape[-2:]
    top = np.argsort(-weights, axis=-1, kind="stable")[..., :ranks]
    top_weights = np.take_along_axis(weights, top, axis=-1)
    away = np.abs(np.arange(keys) - np.arange(queries)[:, None])
    logs = np.log(np.where(weights > 0, weights, 1))
    looking = np.maximum(1, weights.any(-1).sum(-1, keepdims=True))
    return Reduced(
        top=top,
        top_weights=top_weights,
        left_out=np.maximum(0, weights.sum(-1) - top_weights.sum(-1)),
        tiles=_tiles(weights),
        entropy=np.abs((weights * logs).sum(-1)),
        received=weights.sum(-2) / looking,
        distance=(weights * away).sum(-1),
    )


def _tiles(weights: Array) -> Array:
    rows, columns = (_edges(count) for count in weights.shape[-2:])
    sums = np.add.reduceat(np.add.reduceat(weights, rows[:-1], axis=1), columns[:-1], axis=2)
    return np.asarray(sums / (np.diff(rows)[:, None] * np.diff(columns)), dtype=np.float32)


def _edges(count: int) -> Array:
    """Cut so many positions into tiles: where each begins, and the end."""
    tiles = min(count, TILES)
    return np.arange(tiles + 1) * count // tiles
