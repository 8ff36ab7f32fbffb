"""How a score folds: into queries and keys whose dot product has the same softmax."""

from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor


class Folded(NamedTuple):
    """Queries and keys such that softmax(score) = softmax(scale · queries·keys)."""

    queries: Tensor
    keys: Tensor
    scale: float = 1.0


def folds(score: Callable[[Tensor, Tensor], Tensor]) -> bool:
    """Tell whether a score says how to fold it, and can be folded with its settings."""
    return hasattr(score, "fold") and getattr(score, "folds", True)
