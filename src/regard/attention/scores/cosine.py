"""Cosine: the angle between two vectors, whatever their lengths."""

from torch import Tensor, nn
from torch.nn.functional import normalize

from regard._support.precision import upcast
from regard.attention.scores.base import DotProductForm
from regard.attention.scores.dot import dots
from regard.attention.scores.parameter import PositiveParameter
from regard.shapes import Keys, Queries, Scores


class Cosine(nn.Module):
    """score(q, k) = cos(q, k) / temperature (Graves et al. 2014, section 3.3.1).

    A lower temperature looks more sharply. A vector of zeros has cosine 0 with every other.
    """

    widths = "equal"

    def __init__(self, temperature: float = 1.0, learnable: bool = False) -> None:
        super().__init__()
        self._temperature = PositiveParameter("temperature", temperature, learnable)

    @property
    def temperature(self) -> Tensor:
        """The number that cosines are divided by."""
        return self._temperature.value

    def forward(self, queries: Queries, keys: Keys) -> Scores:
        """Score every query against every key."""
        queries, keys = (normalize(upcast(vectors), dim=-1) for vectors in (queries, keys))
        return dots(queries, keys) / self.temperature

    def fold(self, queries: Queries, keys: Keys) -> DotProductForm:
        """Bring every vector to length one."""
        queries, keys = (normalize(upcast(vectors), dim=-1) for vectors in (queries, keys))
        if self._temperature.learnable:
            return DotProductForm(queries / self.temperature, keys)
        return DotProductForm(queries, keys, 1 / self._temperature.initial)
