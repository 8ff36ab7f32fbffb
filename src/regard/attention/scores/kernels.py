"""Kernels by height: average, and boxcar, triangular and Epanechnikov, which end somewhere."""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from regard.attention.scores.gaussian import distance
from regard.attention.scores.parameter import PositiveParameter
from regard.shapes import Keys, Queries, Scores


def uniform(apart: Tensor) -> Tensor:
    """Weigh all keys alike, however far."""
    return torch.ones_like(apart)


def boxcar(apart: Tensor) -> Tensor:
    """Weigh all neighbours alike."""
    return (apart <= 1).to(apart.dtype)


def triangular(apart: Tensor) -> Tensor:
    """Let the weight fall to 0 in a straight line."""
    return 1 - apart


def epanechnikov(apart: Tensor) -> Tensor:
    """Let the weight fall to 0 in a parabola."""
    return 1 - apart**2


class Kernel(nn.Module):
    """score(q, k) = log height(|q - k| / b): softmax of it weighs each key by the kernel's height.

    Where the height is not above 0 the key is not seen; a query with no neighbour sees nothing.
    """

    widths = "equal"

    def __init__(
        self, height: Callable[[Tensor], Tensor], bandwidth: float = 1.0, learnable: bool = False
    ) -> None:
        super().__init__()
        if learnable and height in (uniform, boxcar):
            raise ValueError(
                f"the bandwidth of a {height.__name__} kernel cannot be learned, as its height "
                "does not change with distance; triangular, epanechnikov and gaussian can"
            )
        self.height = height
        self._bandwidth = PositiveParameter("bandwidth", bandwidth, learnable)

    @property
    def bandwidth(self) -> Tensor:
        """The distance beyond which no key is seen."""
        return self._bandwidth.value

    def forward(self, queries: Queries, keys: Keys) -> Scores:
        """Score every query against every key."""
        height = self.height(distance(queries, keys) / self.bandwidth)
        seen = height > 0
        # the inner where keeps the infinite slope of log at 0 out of the gradient
        return torch.where(seen, torch.where(seen, height, 1.0).log(), -math.inf)

    def extra_repr(self) -> str:
        """Name the kernel."""
        return getattr(self.height, "__name__", repr(self.height))
