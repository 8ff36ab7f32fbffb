"""Rows that a model brought to another order, as by a shift of its own in each head."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from regard.capture.layout.call_axes import WindowPositions


@dataclass(frozen=True, slots=True)
class RowOrder:
    """How the queries and keys of a call without windows are brought to the order of their rows.

    Attributes:
        queries: (batch, head, query), the index of each row among the queries; None if they stay.
        keys: (batch, head, key), likewise.
    """

    queries: Tensor | None
    keys: Tensor | None

    def sort(self, weights: Tensor) -> Tensor:
        """Return weights (batch, head, query, key) in the order of the rows."""
        weights = self.sort_queries(weights)
        return weights if self.keys is None else _sort_rows(weights.mT, self.keys).mT

    def sort_positions(self, positions: WindowPositions) -> WindowPositions:
        """Return the positions of rows that were brought to their order."""
        queries, keys = positions.queries, positions.keys
        if self.queries is not None:
            queries = torch.arange(positions.num_queries, device="cpu")[None]
        if self.keys is not None:
            keys = torch.arange(positions.num_keys, device="cpu")[None]
        return replace(positions, queries=queries, keys=keys)

    def sort_queries(self, rows: Tensor) -> Tensor:
        """Return (batch, head, query, …) in the order of the queries' rows."""
        return rows if self.queries is None else _sort_rows(rows, self.queries)

    def sort_keys(self, vectors: Tensor, num_heads: int) -> Tensor:
        """Return vectors (batch, key head, key, width) of all heads in the order of the rows."""
        if self.keys is None:
            return vectors
        if self.keys.shape[1] > 1:
            vectors = vectors.repeat_interleave(num_heads // vectors.shape[1], dim=1)
        return _sort_rows(vectors, self.keys)


def row_order(positions: WindowPositions) -> RowOrder | None:
    """Return how rows are brought to their order; None if they stay as they are.

    Queries and keys that are the same rows in the same order stay, even if it is not the order in
    which they came: every layer of a model that reads backwards has them like that. So do some of
    the rows, that a model chose.
    """
    queries, keys = (_by_head(x) for x in (positions.queries, positions.keys))
    if positions.num_extra:
        return None
    if positions.is_over_same_rows and not positions.differ_by_head and torch.equal(queries, keys):
        return None
    order = RowOrder(_inverse(queries, positions.num_queries), _inverse(keys, positions.num_keys))
    return None if order.queries is None and order.keys is None else order


def _by_head(positions: Tensor) -> Tensor:
    """Return positions (batch, head, row) of a single window."""
    return positions[None] if positions.ndim == 2 else positions[:, 0]


def _inverse(positions: Tensor, count: int) -> Tensor | None:
    """Return where each row is; None if they are in order, or not all of them."""
    ordered = torch.arange(count, device="cpu").expand(*positions.shape[:2], -1)
    if positions.shape[2] != count or torch.equal(positions, ordered):
        return None
    rows, inverse = positions.sort(dim=-1)
    return inverse if torch.equal(rows, ordered) else None


def _sort_rows(rows: Tensor, order: Tensor) -> Tensor:
    """Return (batch, head, row, width) in another order of rows."""
    shape = torch.broadcast_shapes(rows.shape[:2], order.shape[:2])
    index = order.to(rows.device)[..., None].expand(*shape, -1, rows.shape[3])
    return rows.expand(*shape, -1, -1).gather(2, index)
