"""Which maps are heads of one layer: some models have a module, or a call, for each head."""

from collections.abc import Hashable, Sequence
from dataclasses import replace

import numpy as np

from regard.capture import Sources
from regard.trace import AttentionMap


def group_heads(
    maps: Sequence[AttentionMap], rows: Sequence[str], sources: Sequence[Sources]
) -> list[list[int]]:
    """Group the maps that are heads of one layer.

    They are between the same tokens, and were computed from the same inputs and earlier maps. A map
    that no gradient connects to the inputs is a layer of its own.

    Args:
        maps: in the order of their calls.
        rows: of each map, the token list of its rows.
        sources: of each map, what it was computed from.

    Returns:
        The indices of the maps of each layer.
    """
    layers: dict[Hashable, list[int]] = {}
    for n, (m, row, source) in enumerate(zip(maps, rows, sources, strict=True)):
        key: Hashable = (row, m.keys, m.kind, source) if source.inputs else n
        layers.setdefault(key, []).append(n)
    return list(layers.values())


def merge_maps(
    maps: Sequence[AttentionMap], layers: Sequence[Sequence[int]]
) -> tuple[AttentionMap, ...]:
    """Return one map for each layer, with the heads of all of its maps."""
    return tuple(_merge([maps[n] for n in layer]) for layer in layers)


def _merge(maps: Sequence[AttentionMap]) -> AttentionMap:
    if len(maps) == 1:
        return maps[0]
    weights = np.concatenate([np.asarray(m.weights) for m in maps])
    return replace(maps[0], weights=weights, heads=tuple(range(len(weights))), value_norms=None)
