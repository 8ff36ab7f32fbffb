"""Axes that a caller left out, of a single query or a single sentence: put in, and taken away."""

from typing import NamedTuple

from torch import Tensor

from regard.attention.kv_cache import KeyValues


class Axes(NamedTuple):
    """Which axes the caller's queries lack: the query's, the batch's."""

    single: bool = False
    unbatched: bool = False

    @classmethod
    def of(cls, queries: Tensor, keys: Tensor | KeyValues | None) -> "Axes":
        """Find out by comparing queries with keys; None for queries that look at themselves."""
        if keys is None:
            axes = queries.ndim
        else:
            axes = keys.keys.ndim - 1 if isinstance(keys, KeyValues) else keys.ndim
        if axes < 2 or queries.ndim not in (axes, axes - 1):
            raise ValueError(
                "queries must be (batch, query, width), with one axis fewer for a single query, "
                f"but their shape is {tuple(queries.shape)} and the keys have {axes} axes"
            )
        return cls(single=queries.ndim == axes - 1, unbatched=axes == 2)

    def add(self, queries: Tensor) -> Tensor:
        """Give queries both axes."""
        return self.batched(queries.unsqueeze(-2) if self.single else queries)

    def batched(self, rows: Tensor) -> Tensor:
        """Give keys or values the batch's axis."""
        return rows[None] if self.unbatched else rows

    def drop(self, rows: Tensor) -> Tensor:
        """Take the axes away again that were added."""
        rows = rows.squeeze(-2) if self.single else rows
        return rows[0] if self.unbatched else rows
