"""Cosine similarity: the angle between two vectors, whatever their norms."""

from torch import Tensor
from torch.nn.functional import normalize

from regard._support.precision import upcast
from regard.attention.scores.base import DotProductForm, PositiveParameter, Score
from regard.attention.scores.dot import dot_products
from regard.shapes import Keys, Queries, Scores


class Cosine(Score):
    """score(q, k) = cos(q, k) / temperature (Graves et al. 2014, section 3.3.1).

    A lower temperature gives sharper weights. A vector of zeros has cosine 0 with every other.

    Args:
        temperature: what cosines are divided by; where learning starts, if learnable.
        learnable: whether the temperature is a parameter.

    Raises:
        RegardError: `temperature` is not finite and above 0.

    Example:
        >>> import torch
        >>> Cosine(temperature=0.5)(torch.tensor([[2.0, 0.0]]), torch.tensor([[3.0, 0.0]]))
        tensor([[2.]])
    """

    needs_equal_widths = True
    is_head_independent = True

    def __init__(self, temperature: float = 1.0, learnable: bool = False) -> None:
        super().__init__()
        self._temperature = PositiveParameter(temperature, learnable, "temperature")

    @property
    def temperature(self) -> Tensor:
        """What cosines are divided by."""
        return self._temperature.value

    def forward(self, queries: Queries, keys: Keys) -> Scores:
        """Score every query against every key."""
        queries, keys = (normalize(upcast(vectors), dim=-1) for vectors in (queries, keys))
        return dot_products(queries, keys) / self.temperature

    def fold(self, queries: Queries, keys: Keys) -> DotProductForm:
        """Normalise every vector to length one; the temperature becomes the scale."""
        queries, keys = (normalize(upcast(vectors), dim=-1) for vectors in (queries, keys))
        if self._temperature.learnable:
            return DotProductForm(queries / self.temperature, keys)
        return DotProductForm(queries, keys, 1 / self._temperature.initial)
