"""How a score folds: into queries and keys whose dot product has the same softmax."""

from typing import NamedTuple

from torch import Tensor


class Folded(NamedTuple):
    """Queries and keys such that softmax(score) = softmax(scale · queries·keys)."""

    queries: Tensor
    keys: Tensor
    scale: float = 1.0
