"""Calls whose weights belong to the edges of a graph."""

from torch import Tensor

from regard._support.torch_modes import upcast
from regard.capture.calls.base import Shape
from regard.capture.calls.vectors import QueryKeyVectors


class EdgeWeights:
    """Attention over the edges of a graph, whose weights are summed by index.

    Rows are queries, columns keys: the weight of a pair is that of the edges between them, and 0
    where there is none.

    Args:
        weights: (batch, head, edge), as the model computed them, before dropout.
        queries: (edge,), the query that each edge leads to.
        keys: (edge,), the key that it comes from.
        num_queries: number of rows, with or without edges.
        num_keys: number of columns.
    """

    heads_independent = True
    is_causal = False  # an order of the nodes means nothing
    offset = 0
    extra_keys = 0
    raw_keys: Tensor | None = None
    values: Tensor | None = None  # they belong to edges, too

    def __init__(
        self, weights: Tensor, queries: Tensor, keys: Tensor, num_queries: int, num_keys: int
    ) -> None:
        self._weights, self.queries, self.keys = weights, queries, keys
        self.shape: Shape = (*weights.shape[:2], num_queries, num_keys)

    def visible_keys(self, stop: int) -> int:
        """Return the number of keys: any of them may have an edge to any query."""
        return self.shape[3]

    def weights(self, batch: slice, heads: list[int], rows: slice) -> Tensor:
        """Return weights (batch, head, row, key)."""
        return self.dense(upcast(self._weights[batch][:, heads]), rows)

    def dense(self, per_edge: Tensor, rows: slice) -> Tensor:
        """Return values (batch, head, edge) of edges as a matrix (batch, head, row, key)."""
        start, stop, _ = rows.indices(self.shape[2])
        chosen = (self.queries >= start) & (self.queries < stop)
        cells = (self.queries[chosen] - start) * self.shape[3] + self.keys[chosen]
        empty = per_edge.new_zeros(*per_edge.shape[:2], (stop - start) * self.shape[3])
        filled = empty.index_add(2, cells, per_edge[:, :, chosen])
        return filled.view(*per_edge.shape[:2], stop - start, self.shape[3])

    def fully_masked_keys(self) -> Tensor | None:
        """Return None: a key without an edge is not masked."""
        return None

    def vectors(self) -> QueryKeyVectors | None:
        """Return None: scores of edges are no product of all queries and keys."""
        return None
