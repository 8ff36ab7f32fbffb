"""How a score folds: into queries and keys whose dot product has the same softmax."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad


class DotProductForm(NamedTuple):
    """Queries and keys such that softmax(score) = softmax(scale · queries·keys + lift)."""

    queries: Tensor
    keys: Tensor
    scale: float = 1.0
    key_bias: Tensor | None = None  # (*batch, key): what a key scores with every query

    def absorb_key_bias(self) -> "DotProductForm":
        """Write the lift as one more column of the keys, which meets ones in the queries."""
        if self.key_bias is None:
            return self
        column = (self.key_bias / self.scale)[..., None]
        queries = pad(self.queries, (0, 1), value=1.0)
        return DotProductForm(queries, torch.cat([self.keys, column], dim=-1), self.scale)


def folds(score: Callable[[Tensor, Tensor], Tensor]) -> bool:
    """Tell whether a score says how to fold it, and can be folded with its settings."""
    return hasattr(score, "fold") and getattr(score, "folds", True)
