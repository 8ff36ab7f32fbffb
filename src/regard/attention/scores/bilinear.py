"""Bilinear: a learned matrix between query and key, which may differ in width."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard._support.arguments import check_positive
from regard._support.torch_modes import no_autocast, upcast
from regard.attention.scores.base import DotProductForm, Score
from regard.attention.scores.dot import dot_products
from regard.shapes import Keys, Scores


class Bilinear(Score):
    """`score(q, k) = qᵀ W k` (Luong et al. 2015, section 3.1, where it is called *general*).

    Args:
        query_width: width of the queries.
        key_width: width of the keys; as the queries by default.

    Raises:
        RegardError: if a width is below 1.

    Example:
        >>> score = Bilinear(12, 4)
        >>> score(torch.randn(5, 12), torch.randn(7, 4)).shape
        torch.Size([5, 7])
    """

    is_head_independent = True

    def __init__(self, query_width: int, key_width: int | None = None) -> None:
        super().__init__()
        key_width = query_width if key_width is None else key_width
        check_positive(query_width=query_width, key_width=key_width)
        self.matrix = nn.Parameter(torch.empty(query_width, key_width))
        nn.init.xavier_uniform_(self.matrix)

    @property
    def widths(self) -> tuple[int, int]:
        """The widths of queries and keys that the matrix was made for."""
        return self.matrix.shape[0], self.matrix.shape[1]

    def forward(self, queries: Float[Tensor, "*batch query from"], keys: Keys) -> Scores:
        """Score every query against every key."""
        return dot_products(self._map(queries), keys)

    def fold(self, queries: Float[Tensor, "*batch query from"], keys: Keys) -> DotProductForm:
        """Map the queries to the keys' space, once, and keep the product in float32 or more."""
        return DotProductForm(self._map(queries), upcast(keys))

    def _map(self, queries: Float[Tensor, "*batch query from"]) -> Float[Tensor, "*batch query to"]:
        with no_autocast(queries):
            return upcast(queries) @ upcast(self.matrix).to(upcast(queries).dtype)
