"""Gaussian: nearness, which makes attention the kernel regression of Nadaraya and Watson."""

import torch
from torch import Tensor, nn

from regard._support.functorch import in_functorch
from regard._support.precision import upcast
from regard.attention.scores.base import DotProductForm
from regard.attention.scores.parameter import PositiveParameter
from regard.shapes import Keys, Queries, Scores


class Gaussian(nn.Module):
    """score(q, k) = -|q - k|² / 2b²: softmax of it weighs each key by a Gaussian of its distance.

    Expanding the square leaves q·k / b² - |k|² / 2b² and a term in q alone, which softmax
    does not see. So it folds into a dot product and a lift for each key. The expansion subtracts
    large numbers when keys lie thousands of bandwidths apart; `backend="dense"` does not.
    """

    widths = "equal"

    def __init__(self, bandwidth: float = 1.0, learnable: bool = False) -> None:
        super().__init__()
        self._bandwidth = PositiveParameter("bandwidth", bandwidth, learnable)

    @property
    def bandwidth(self) -> Tensor:
        """The distance at which a key's weight has fallen to e^-½ of the nearest possible."""
        return self._bandwidth.value

    def forward(self, queries: Queries, keys: Keys) -> Scores:
        """Score every query against every key."""
        if _in_plain_steps():  # the square itself is smooth where a query lies on a key
            return -0.5 * _squares(queries, keys) / self.bandwidth**2
        return -0.5 * (distance(queries, keys) / self.bandwidth) ** 2

    def fold(self, queries: Queries, keys: Keys) -> DotProductForm:
        """Write the square out, around a centre: softmax does not see it and precision does."""
        queries, keys = upcast(queries), upcast(keys)
        centre = _centre(keys)
        queries, keys = queries - centre, keys - centre
        scale = self._bandwidth.initial**-2
        if self._bandwidth.learnable:
            queries, keys, scale = queries / self.bandwidth, keys / self.bandwidth, 1.0
        return DotProductForm(queries, keys, scale, -0.5 * scale * keys.square().sum(dim=-1))


def _centre(keys: Keys) -> Tensor:
    """Give the middle of some keys: unlike the mean, it does not follow one that is hidden."""
    if not keys.shape[-2]:
        return keys.new_zeros(())
    some = keys.detach()[..., :: max(keys.shape[-2] // 8, 1), :]
    return some.median(dim=-2, keepdim=True).values


def distance(queries: Queries, keys: Keys) -> Scores:
    """Measure how far each query is from each key; at no distance it has a slope of 0."""
    if _in_plain_steps():
        squares = _squares(queries, keys)
        away = squares > 0
        return torch.where(away, torch.where(away, squares, 1.0).sqrt(), 0.0)
    # through a matrix product, near points of large norm would lose their distance to rounding
    exact = "donot_use_mm_for_euclid_dist"
    return torch.cdist(upcast(queries), upcast(keys), compute_mode=exact)


def _in_plain_steps() -> bool:
    """Tell whether cdist must not be used: under transforms its derivatives fail or are wrong.

    While a function is compiled, a transform within it cannot be seen.
    """
    return in_functorch() or torch.compiler.is_compiling()


def _squares(queries: Queries, keys: Keys) -> Scores:
    apart = upcast(queries)[..., :, None, :] - upcast(keys)[..., None, :, :]
    return apart.square().sum(dim=-1)
