"""Dot product and scaled dot product: how far two vectors point the same way, times their norms."""

from math import inf, isfinite

import torch

from regard._support.text import format_settings
from regard._support.torch_modes import no_autocast, upcast
from regard.attention.scores.base import DotProductForm, Score
from regard.errors import RegardError
from regard.shapes import Keys, Queries, Scores


def dot_products(queries: Queries, keys: Keys) -> Scores:
    """Return the dot product of every query with every key, in float32 or more."""
    with no_autocast(queries):
        return torch.einsum("...qd,...kd->...qk", upcast(queries), upcast(keys))


class Dot(Score):
    """`score(q, k) = q·k` (Luong et al. 2015, section 3.1).

    Example:
        >>> Dot()(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 4.0], [0.0, -1.0]]))
        tensor([[11., -2.]])
    """

    needs_equal_widths = True
    is_head_independent = True

    def forward(self, queries: Queries, keys: Keys) -> Scores:
        """Score every query against every key."""
        return dot_products(queries, keys)

    def fold(self, queries: Queries, keys: Keys) -> DotProductForm:
        """Return queries and keys unchanged: the score already is a dot product."""
        return DotProductForm(queries, keys)


class ScaledDot(Score):
    """`score(q, k) = q·k / √width` (Vaswani et al. 2017, section 3.2.1).

    For vectors of independent components with unit variance the dot product has variance `width`;
    the scale brings it back to one, so that softmax does not saturate as width grows.

    Args:
        scale: factor of the dot product; 1 / √width by default.
        cap: soft cap. The score becomes cap · tanh(score / cap), which stays within ±cap and is
            not a dot product, so the fused kernel cannot be used.

    Raises:
        RegardError: if `scale` is not finite, or `cap` is not above 0 and finite.

    Example:
        >>> ScaledDot()(torch.ones(1, 4), torch.ones(1, 4))
        tensor([[2.]])
        >>> ScaledDot(cap=1.0)
        ScaledDot(cap=1.0)
    """

    needs_equal_widths = True
    is_head_independent = True

    def __init__(self, scale: float | None = None, cap: float | None = None) -> None:
        super().__init__()
        if cap is not None and not 0 < cap < inf:
            raise RegardError(f"cap must be above 0 and finite, but it is {cap}; None means no cap")
        if scale is not None and not isfinite(scale):
            raise RegardError(f"scale must be finite, but it is {scale}; None means 1 / √width")
        self.scale = scale
        self.cap = cap

    def forward(self, queries: Queries, keys: Keys) -> Scores:
        """Score every query against every key."""
        scores = dot_products(upcast(queries) * self._scale(queries), keys)
        return scores if self.cap is None else self.cap * torch.tanh(scores / self.cap)

    @property
    def is_dot_product(self) -> bool:
        """Whether there is no cap: tanh cannot be folded."""
        return self.cap is None

    def fold(self, queries: Queries, keys: Keys) -> DotProductForm:
        """Leave the scaling to the kernel.

        A scale of 0 or less goes into the queries instead: the kernel's causal mask is scaled,
        too, and -inf times such a scale is inf or NaN.
        """
        scale = self._scale(queries)
        if scale > 0:
            return DotProductForm(queries, keys, scale)
        return DotProductForm(upcast(queries) * scale, upcast(keys))

    def _scale(self, queries: Queries) -> float:
        # vectors of width 0 all score 0, whatever the scale
        return float(max(queries.shape[-1], 1) ** -0.5 if self.scale is None else self.scale)

    def extra_repr(self) -> str:
        """Show the settings that differ from the default."""
        settings = {"scale": self.scale, "cap": self.cap}
        return format_settings({name: x for name, x in settings.items() if x is not None})
