"""The encoder: every position of a text sees all others."""

from collections.abc import Sequence

from torch import Tensor, nn

from regard.masks import Mask
from regard.models.layer import Layer, Notes


class Encoder(nn.Module):
    """Layers of self-attention over a whole text, and a final norm if there is one."""

    def __init__(self, layers: Sequence[Layer], norm: nn.Module | None = None) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.norm = norm

    def forward(self, rows: Tensor, mask: Mask | None = None, notes: Notes = None) -> Tensor:
        """Change rows (batch, position, width), all positions at once."""
        for layer in self.layers:
            rows = layer(rows, mask, notes=(notes, None))
        return rows if self.norm is None else self.norm(rows)
