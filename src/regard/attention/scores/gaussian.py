"""Gaussian: squared distance, which makes attention Nadaraya-Watson kernel regression."""

import torch
from torch import Tensor

from regard._support.functorch import in_functorch
from regard._support.precision import upcast
from regard.attention.scores.base import DotProductForm, PositiveParameter, Score
from regard.shapes import Keys, Queries, Scores


class Gaussian(Score):
    """score(q, k) = -|q - k|² / 2b²: its softmax weighs each key by a Gaussian of its distance.

    Expanding the square leaves q·k / b² - |k|² / 2b² and a term in q alone, which softmax drops.
    So the score folds into a dot product and a key bias. The expansion subtracts large numbers
    when keys are thousands of bandwidths apart, and loses digits; `backend="dense"` does not.

    Args:
        bandwidth: b, the distance at which a weight has fallen to e^-½; where learning starts,
            if learnable.
        learnable: whether the bandwidth is a parameter.

    Raises:
        RegardError: `bandwidth` is not finite and above 0.

    Example:
        >>> Gaussian()(torch.tensor([[0.0]]), torch.tensor([[0.0], [2.0]]))
        tensor([[-0., -2.]])
    """

    needs_equal_widths = True
    is_head_independent = True

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
            return -0.5 * _squared_distances(queries, keys) / self.bandwidth**2
        return -0.5 * (distances(queries, keys) / self.bandwidth) ** 2

    def fold(self, queries: Queries, keys: Keys) -> DotProductForm:
        """Expand the square around a centre of the keys.

        Softmax does not change when both sides are shifted; the precision of the squares does.
        """
        queries, keys = upcast(queries), upcast(keys)
        centre = _centre(keys)
        queries, keys = queries - centre, keys - centre
        scale = self._bandwidth.initial**-2
        if self._bandwidth.learnable:
            queries, keys, scale = queries / self.bandwidth, keys / self.bandwidth, 1.0
        return DotProductForm(queries, keys, scale, -0.5 * scale * keys.square().sum(dim=-1))


def distances(queries: Queries, keys: Keys) -> Scores:
    """Return the Euclidean distance of every query and key; at distance 0 the gradient is 0."""
    if _needs_plain_ops():
        squares = _squared_distances(queries, keys)
        is_apart = squares > 0
        return torch.where(is_apart, torch.where(is_apart, squares, 1.0).sqrt(), 0.0)
    # through a matrix product, near points of large norm would lose their distance to rounding
    exact = "donot_use_mm_for_euclid_dist"
    return torch.cdist(upcast(queries), upcast(keys), compute_mode=exact)


def _centre(keys: Keys) -> Tensor:
    """Return the median of about eight keys: unlike a mean, a masked outlier does not move it."""
    if not keys.shape[-2]:
        return keys.new_zeros(())
    sample = keys.detach()[..., :: max(keys.shape[-2] // 8, 1), :]
    return sample.median(dim=-2, keepdim=True).values


def _needs_plain_ops() -> bool:
    """Return whether to avoid cdist, whose derivatives fail or are wrong under torch.func.

    While a function is compiled, a transform within it cannot be detected.
    """
    return in_functorch() or torch.compiler.is_compiling()


def _squared_distances(queries: Queries, keys: Keys) -> Scores:
    difference = upcast(queries)[..., :, None, :] - upcast(keys)[..., None, :, :]
    return difference.square().sum(dim=-1)
