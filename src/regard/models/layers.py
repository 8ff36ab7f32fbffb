"""What attention is wrapped in: embedding, feed-forward, residual and norm."""

from collections.abc import Callable
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import embedding, gelu, relu

from regard.models.dropout import dropout

Rows = Float[Tensor, "*batch width"]
Activation = Literal["relu", "gelu"]
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": relu, "gelu": gelu}


class FeedForward(nn.Module):
    """Two linear layers at each position (Vaswani et al. 2017, section 3.3)."""

    def __init__(
        self,
        width: int,
        hidden: int,
        dropout: float = 0.0,
        activation: str = "relu",
    ) -> None:
        super().__init__()
        self.widen = nn.Linear(width, hidden)
        self.narrow = nn.Linear(hidden, width)
        self.dropout = dropout
        self.activation = activation
        for layer in (self.widen, self.narrow):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, rows: Rows) -> Rows:
        """Change each row by itself."""
        hidden = ACTIVATIONS[self.activation](self.widen(rows))
        hidden = dropout(hidden, self.dropout, self.training)
        narrowed: Tensor = self.narrow(hidden)
        return narrowed


class Residual(nn.Module):
    """Adds what a layer changes to what came in, and norms: after, as in the paper, or before.

    post: norm(x + layer(x)); pre: x + layer(norm(x)), which learns more calmly when deep
    (Xiong et al. 2020).
    """

    def __init__(self, width: int, dropout: float = 0.0, pre: bool = False) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.dropout = dropout
        self.pre = pre

    def forward(self, rows: Rows, layer: Callable[[Tensor], Tensor]) -> Rows:
        """Let the layer change the rows, and add."""
        changed = layer(self.norm(rows) if self.pre else rows)
        added = rows + dropout(changed, self.dropout, self.training)
        summed: Tensor = added if self.pre else self.norm(added)
        return summed


class Embedding(nn.Module):
    """A vector per token, times √width, with its position added if there is a table of them."""

    def __init__(
        self,
        vocabulary: int,
        width: int,
        positions: nn.Module | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.vocabulary, self.width = vocabulary, width
        self.weight = nn.Parameter(torch.empty(vocabulary, width))
        nn.init.normal_(self.weight, std=width**-0.5)
        self.positions = positions
        self.dropout = dropout

    @property
    def longest(self) -> int | None:
        """How many tokens of a text have a position; None if any number has."""
        longest: int | None = getattr(self.positions, "longest", None)
        return longest

    def forward(self, tokens: Tensor, offset: int = 0) -> Tensor:
        """Look up tokens (batch, position), the first of which stands at `offset`."""
        rows = embedding(tokens, self.weight) * self.width**0.5
        if self.positions is not None:
            rows = self.positions(rows, offset)
        return dropout(rows, self.dropout, self.training)

    def at(self, tokens: Tensor, position: int) -> Tensor:
        """Look up tokens (sentence, beam) that all stand at one position."""
        return self(tokens.flatten()[:, None], position).view(*tokens.shape, self.width)  # type: ignore[no-any-return]
