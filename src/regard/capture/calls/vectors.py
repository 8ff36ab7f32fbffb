"""Queries and keys behind attention weights."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn.functional import pad

from regard.errors import RegardError


@dataclass(frozen=True)
class QueryKeyVectors:
    """The queries and keys whose dot products are the scores of a call.

    score = scale · Σᵢ queryᵢ · keyᵢ, before a mask, a bias or a cap is applied to it. Vectors are
    those that the kernel receives: after rotary position embeddings, for example.

    Attributes:
        queries: (batch, head, query, width).
        keys: (batch, key head, key, width); fewer heads in grouped-query attention.
        scale: factor of the dot product.
    """

    queries: Tensor
    keys: Tensor
    scale: float

    def products(self, batch: int, head: int, query: int, key: int) -> Tensor:
        """Return the summands of one score, (width,): scale · query ⊙ key.

        Raises:
            RegardError: if there is no such batch item, head, query or key.
        """
        query_vector, key_vector = self.pair(batch, head, query, key)
        return query_vector * key_vector * self.scale

    def pair(self, batch: int, head: int, query: int, key: int) -> tuple[Tensor, Tensor]:
        """Return a query and a key, (width,) each.

        Raises:
            RegardError: if there is no such batch item, head, query or key.
        """
        sizes = {
            "batch": max(len(self.queries), len(self.keys)),
            "head": self.num_heads,
            "query": self.queries.shape[2],
            "key": self.keys.shape[2],
        }
        for (name, size), index in zip(sizes.items(), (batch, head, query, key), strict=True):
            if not 0 <= index < size:
                raise RegardError(f"{name} must be from 0 to {size - 1}, but it is {index}")
        key_head = head * self.keys.shape[1] // self.num_heads
        query_head = head if self.queries.shape[1] > 1 else 0
        return (
            self.queries[min(batch, len(self.queries) - 1), query_head, query],
            self.keys[min(batch, len(self.keys) - 1), key_head, key],
        )

    @property
    def num_heads(self) -> int:
        """Number of heads: of the queries, unless all heads share one query."""
        return max(self.queries.shape[1], self.keys.shape[1])

    def detached(self) -> "QueryKeyVectors":
        """Return a copy in float32 or float64 on the CPU, without gradients."""
        queries, keys = (_to_cpu(x) for x in (self.queries, self.keys))
        return replace(self, queries=queries, keys=keys)

    def pad_front(self, count: int) -> "QueryKeyVectors":
        """Return these vectors with zeros in place of keys that a cache has dropped."""
        return replace(self, keys=pad(self.keys, (0, 0, count, 0)))

    def append_step(self, step: "QueryKeyVectors", dropped: int = 0) -> "QueryKeyVectors":
        """Return the vectors of a generation so far and of its next step.

        The step has all keys, of which the first `dropped` are zeros that a sliding window left.
        """
        keys = torch.cat([self.keys[:, :, :dropped], step.keys[:, :, dropped:]], dim=2)
        return replace(self, queries=torch.cat([self.queries, step.queries], dim=2), keys=keys)


def _to_cpu(vectors: Tensor) -> Tensor:
    copy = vectors.detach().to("cpu", copy=True)
    return copy if copy.dtype == torch.float64 else copy.float()
