"""Cosine similarity: the angle between two vectors, whatever their norms."""

import torch
from torch import Tensor

from regard._support.torch_modes import can_read_values, upcast
from regard.attention.scores.base import DotProductForm, PositiveParameter, Score
from regard.attention.scores.dot import dot_products
from regard.shapes import Keys, Queries, Scores


class Cosine(Score):
    """`score(q, k) = cos(q, k) / temperature` (Graves et al. 2014, section 3.3.1).

    A lower temperature gives sharper weights. A vector of zeros has cosine 0 with every other.
    Vectors are divided by max(norm, ε), so that the slope at a vector of zeros is at most
    1 / (ε · temperature): ε is 1e-8, as in `torch.nn.functional.cosine_similarity`, and 1e-3 in
    float16, which could not hold the gradient otherwise.

    Args:
        temperature: what cosines are divided by; where learning starts, if learnable.
        learnable: whether the temperature is a parameter.

    Raises:
        RegardError: if `temperature` is not finite and above 0.

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
        return dot_products(_normalize(queries), _normalize(keys)) / self._temperature.operand

    def fold(self, queries: Queries, keys: Keys) -> DotProductForm:
        """Normalise every vector to length one; the temperature becomes the scale."""
        queries, keys = _normalize(queries), _normalize(keys)
        if self._temperature.learnable:
            return DotProductForm(queries / self.temperature, keys)
        return DotProductForm(queries, keys, 1 / self._temperature.initial)


def _min_norm(dtype: torch.dtype) -> float:
    """Return ε; components of float16 vectors that are shorter than 1e-3 are mostly subnormal."""
    return 1e-3 if dtype == torch.float16 else 1e-8


def _normalize(vectors: Tensor) -> Tensor:
    """Divide each vector by its norm, in float32 or more."""
    min_norm, vectors = _min_norm(vectors.dtype), upcast(vectors)
    norms: Tensor = torch.linalg.vector_norm(vectors, dim=-1, keepdim=True)
    if norms.numel() and not (can_read_values(norms) and norms.amax() < torch.inf):
        # squares of large components overflow, and a positive factor leaves the direction alone
        largest = torch.linalg.vector_norm(vectors.detach(), torch.inf, dim=-1, keepdim=True)
        vectors = vectors / largest.clamp(min=1.0)
        norms = torch.linalg.vector_norm(vectors, dim=-1, keepdim=True)
    return vectors / norms.clamp(min=min_norm)
