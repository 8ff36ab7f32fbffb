"""Gaussian: squared distance, which makes attention Nadaraya-Watson kernel regression."""

import math
import sys

import torch
from torch import Tensor

from regard._support.torch_modes import (
    can_read_values,
    has_float64,
    in_functorch,
    max_squarable,
    to_float64,
    upcast,
)
from regard.attention.scores.base import DotProductForm, PositiveParameter, Score
from regard.shapes import Keys, Queries, Scores

MAX_FLOAT32_BANDWIDTHS = 2.0**6  # between points: squares up to 2**12 have an ulp of 2**-11


class Gaussian(Score):
    """`score(q, k) = -|q - k|² / 2b²`: softmax weighs each key by a Gaussian of its distance.

    Expanding the square leaves `q·k / b² - |k|² / 2b²` and a term in q alone, which softmax drops.
    So the score folds into a dot product and a key bias. The expansion subtracts large numbers
    when keys are far apart: backends shift queries and keys to a centre of the visible keys first,
    and compute the distances themselves, in float64, where points are more than 64 bandwidths
    away from it. On a device without float64 the CPU computes these distances, and they are
    rounded to float32.

    Args:
        bandwidth: b, the distance at which a weight has fallen to e^-½; where learning starts,
            if learnable.
        learnable: whether the bandwidth is a parameter.

    Raises:
        RegardError: if `bandwidth` is not finite and above 0.

    Example:
        >>> Gaussian()(torch.tensor([[0.0]]), torch.tensor([[0.0], [2.0]]))
        tensor([[-0., -2.]])
    """

    needs_equal_widths = True
    is_head_independent = True
    is_translation_invariant = True

    def __init__(self, bandwidth: float = 1.0, learnable: bool = False) -> None:
        super().__init__()
        self._bandwidth = PositiveParameter(bandwidth, learnable, "bandwidth")

    @property
    def bandwidth(self) -> Tensor:
        """The distance at which a key's weight has fallen to e^-½ of the largest possible."""
        return self._bandwidth.value

    def forward(self, queries: Queries, keys: Keys) -> Scores:
        """Score every query against every key."""
        if _needs_plain_ops():  # the square itself is smooth where a query equals a key
            return -0.5 * _squared_distances(queries, keys, self._bandwidth.operand)
        bandwidth = self._bandwidth.operand
        return -0.5 * distances(queries, keys, bandwidth, MAX_FLOAT32_BANDWIDTHS) ** 2

    def fold(self, queries: Queries, keys: Keys) -> DotProductForm:
        """Expand the square; near the origin it is the most precise."""
        queries, keys = upcast(queries), upcast(keys)
        scale = self._bandwidth.initial**-2
        if self._bandwidth.learnable:
            queries, keys, scale = queries / self.bandwidth, keys / self.bandwidth, 1.0
        return DotProductForm(queries, keys, scale, -0.5 * scale * _squared_norms(keys))


def distances(
    queries: Queries, keys: Keys, unit: Tensor | float = 1.0, max_float32: float = math.inf
) -> Scores:
    """Return the Euclidean distance of every query and key; at distance 0 the gradient is 0.

    The distances and their squares are finite.

    Args:
        queries: `(*batch, query, width)`.
        keys: `(*batch, key, width)`.
        unit: what the distances are divided by.
        max_float32: in units. Distances are float32 or more, and float64 if points may be
            farther apart, or too far for float32, and the device has it.
    """
    if _needs_plain_ops():
        squares = _squared_distances(queries, keys, unit)
        is_apart = squares > 0
        return torch.where(is_apart, torch.where(is_apart, squares, 1.0).sqrt(), 0.0)
    queries, keys = upcast(queries), upcast(keys)
    if not can_read_values(queries):
        return _cdist(queries, keys) / unit
    extent, size = _extent(queries, keys), unit.item() if isinstance(unit, Tensor) else unit
    limit = max_squarable(queries.dtype) * min(size, 1.0)
    if queries.dtype == torch.float32 and not extent <= min(limit, max_float32 * size):
        return _distances_in_float64(queries, keys, unit)
    if extent <= limit:
        return _cdist(queries, keys) / unit
    # a power of two scales without rounding; what is too far even for float64 is equally far
    shrink = 2.0 ** (480 - math.frexp(min(extent, sys.float_info.max))[1])
    scaled = _cdist(queries * shrink, keys * shrink) / unit
    return (scaled / shrink).clamp(max=max_squarable(queries.dtype))


def _distances_in_float64(queries: Queries, keys: Keys, unit: Tensor | float) -> Scores:
    """Return distances in float64, or rounded to float32 on a device that has no other."""
    unit = to_float64(unit) if isinstance(unit, Tensor) else unit
    computed = distances(to_float64(queries), to_float64(keys), unit)
    if has_float64(queries.device):
        return computed
    return computed.clamp(max=max_squarable(torch.float32)).float().to(queries.device)


def _squared_norms(vectors: Keys) -> Tensor:
    if vectors.requires_grad or _needs_plain_ops():
        return vectors.square().sum(dim=-1)  # smooth at 0, where the norm is not
    norms: Tensor = torch.linalg.vector_norm(vectors, dim=-1)  # in one pass
    return norms.square()


def _cdist(queries: Queries, keys: Keys) -> Scores:
    # through a matrix product, near points of large norm would lose their distance to rounding
    return torch.cdist(queries, keys, compute_mode="donot_use_mm_for_euclid_dist")


@torch.no_grad()
def _extent(queries: Queries, keys: Keys) -> float:
    """Return an upper bound of all distances: the diagonal of a cube around the points."""
    if not (queries.numel() and keys.numel()):
        return 0.0
    (low, high), (key_low, key_high) = queries.aminmax(dim=-2), keys.aminmax(dim=-2)
    sides = torch.maximum(high, key_high) - torch.minimum(low, key_low)
    return sides.amax().item() * math.sqrt(sides.shape[-1])


def _needs_plain_ops() -> bool:
    """Return whether to avoid cdist, whose derivatives fail or are wrong under torch.func.

    While a function is compiled, a transform within it cannot be detected.
    """
    return in_functorch() or torch.compiler.is_compiling()


def _squared_distances(queries: Queries, keys: Keys, unit: Tensor | float) -> Scores:
    """Return the squared distances in units, from differences that are limited to finite squares.

    The values may not be read here, to choose float64 where they are large.
    """
    difference = (upcast(queries)[..., :, None, :] - upcast(keys)[..., None, :, :]) / unit
    limit = max_squarable(difference.dtype)
    return difference.clamp(-limit, limit).square().sum(dim=-1)
