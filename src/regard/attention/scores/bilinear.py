"""Bilinear: a learned matrix between query and key, which may differ in width."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard._support.precision import no_autocast, upcast
from regard.attention.scores.base import DotProductForm
from regard.attention.scores.dot import dots
from regard.shapes import Keys, Scores


class Bilinear(nn.Module):
    """score(q, k) = q W k (Luong et al. 2015, section 3.1, there called general)."""

    def __init__(self, query_width: int, key_width: int | None = None) -> None:
        super().__init__()
        self.matrix = nn.Parameter(torch.empty(query_width, key_width or query_width))
        nn.init.xavier_uniform_(self.matrix)

    @property
    def widths(self) -> tuple[int, int]:
        """The widths of queries and keys that this score was made for."""
        return self.matrix.shape[0], self.matrix.shape[1]

    def forward(self, queries: Float[Tensor, "*batch query from"], keys: Keys) -> Scores:
        """Score every query against every key."""
        with no_autocast(queries):
            turned = upcast(queries) @ upcast(self.matrix)
        return dots(turned, keys)

    def fold(self, queries: Float[Tensor, "*batch query from"], keys: Keys) -> DotProductForm:
        """Turn the queries into the keys' space once."""
        return DotProductForm(queries @ self.matrix.to(queries.dtype), keys)
