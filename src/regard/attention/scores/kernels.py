"""Kernels of regression: uniform (the average), boxcar, triangular and Epanechnikov."""

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType

import torch
from torch import Tensor

from regard.attention.scores.base import PositiveParameter, Score
from regard.attention.scores.gaussian import distances
from regard.errors import RegardError
from regard.shapes import Keys, Queries, Scores


def uniform(distance: Tensor) -> Tensor:
    """Weigh all keys alike, at any distance."""
    return torch.ones_like(distance)


def boxcar(distance: Tensor) -> Tensor:
    """Weigh all keys within a distance of 1 alike."""
    return (distance <= 1).to(distance.dtype)


def triangular(distance: Tensor) -> Tensor:
    """Decrease linearly, to 0 at a distance of 1."""
    return 1 - distance


def epanechnikov(distance: Tensor) -> Tensor:
    """Decrease as a parabola, to 0 at a distance of 1."""
    return 1 - distance**2


KERNEL_PROFILES: Mapping[str, Callable[[Tensor], Tensor]] = MappingProxyType(
    {"boxcar": boxcar, "triangular": triangular, "epanechnikov": epanechnikov}
)
"""Profiles of finite support, by name."""


class Kernel(Score):
    """`score(q, k) = log profile(|q - k| / b)`: softmax weighs each key by the profile.

    Keys where the profile is not above 0 are masked; a query with no other gets zeros.

    Args:
        profile: the kernel as a function of distance / bandwidth: `boxcar`, `triangular`,
            `epanechnikov` or `uniform` of this module, or your own.
        bandwidth: b, the unit of distance; where learning starts, if learnable.
        learnable: whether the bandwidth is a parameter.

    Raises:
        RegardError: if `bandwidth` is not finite and above 0, or is to be learned although the
            profile is constant.

    Example:
        >>> Kernel(triangular, bandwidth=2.0)(torch.tensor([[0.0]]), torch.tensor([[0.0], [3.0]]))
        tensor([[0., -inf]])
    """

    needs_equal_widths = True
    is_head_independent = True

    def __init__(
        self, profile: Callable[[Tensor], Tensor], bandwidth: float = 1.0, learnable: bool = False
    ) -> None:
        super().__init__()
        if learnable and profile in (uniform, boxcar):
            raise RegardError(
                f"the bandwidth of a {profile.__name__} kernel cannot be learned, as its profile "
                "is constant; triangular, epanechnikov and gaussian can"
            )
        self.profile = profile
        self._bandwidth = PositiveParameter(bandwidth, learnable, "bandwidth")

    @property
    def bandwidth(self) -> Tensor:
        """The unit of distance: the kernels of this module but `uniform` end there."""
        return self._bandwidth.value

    def forward(self, queries: Queries, keys: Keys) -> Scores:
        """Score every query against every key."""
        values = self.profile(distances(queries, keys, self._bandwidth.operand))
        is_positive = values > 0
        # the inner where keeps the infinite slope of log at 0 out of the gradient
        return torch.where(is_positive, torch.where(is_positive, values, 1.0).log(), -math.inf)

    def extra_repr(self) -> str:
        """Show the name of the kernel."""
        return getattr(self.profile, "__name__", repr(self.profile))
