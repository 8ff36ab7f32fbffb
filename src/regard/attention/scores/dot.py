"""Dot and scaled dot: how far two vectors point the same way, and how long they are."""

from math import inf, isfinite

import torch
from torch import nn

from regard._support.precision import no_autocast, upcast
from regard.attention.scores.base import DotProductForm
from regard.shapes import Keys, Queries, Scores


def dots(queries: Queries, keys: Keys) -> Scores:
    """Take the dot product of every query with every key, in float32 or more."""
    with no_autocast(queries):
        return torch.einsum("...qd,...kd->...qk", upcast(queries), upcast(keys))


class Dot(nn.Module):
    """score(q, k) = q·k (Luong et al. 2015, section 3.1)."""

    widths = "equal"

    def forward(self, queries: Queries, keys: Keys) -> Scores:
        """Score every query against every key."""
        return dots(queries, keys)

    def fold(self, queries: Queries, keys: Keys) -> DotProductForm:
        """Be the dot product that it is."""
        return DotProductForm(queries, keys)


class ScaledDot(nn.Module):
    """score(q, k) = q·k / √width (Vaswani et al. 2017, section 3.2.1).

    For vectors of independent unit-variance numbers the dot product has variance `width`;
    the scale brings it back to one, so that softmax does not saturate as width grows.
    With `cap`, the score is cap · tanh(score / cap), which stays within ±cap and does not fold.
    """

    widths = "equal"

    def __init__(self, scale: float | None = None, cap: float | None = None) -> None:
        super().__init__()
        if cap is not None and not 0 < cap < inf:
            raise ValueError(f"cap must be above 0 and finite, but it is {cap}; None means no cap")
        if scale is not None and not isfinite(scale):
            raise ValueError(f"scale must be finite, but it is {scale}; None means 1 / √width")
        self.scale = scale
        self.cap = cap

    def forward(self, queries: Queries, keys: Keys) -> Scores:
        """Score every query against every key."""
        scores = dots(upcast(queries) * self._scale(queries), keys)
        return scores if self.cap is None else self.cap * torch.tanh(scores / self.cap)

    @property
    def folds(self) -> bool:
        """Whether there is no cap, because tanh cannot be folded."""
        return self.cap is None

    def fold(self, queries: Queries, keys: Keys) -> DotProductForm:
        """Leave the scaling to the kernel, unless it turns what hides keys into what shows them."""
        scale = self._scale(queries)
        return (
            DotProductForm(queries, keys, scale)
            if scale > 0
            else DotProductForm(queries * scale, keys)
        )

    def _scale(self, queries: Queries) -> float:
        # vectors without numbers all score 0, whatever the scale
        return float(max(queries.shape[-1], 1) ** -0.5 if self.scale is None else self.scale)

    def extra_repr(self) -> str:
        """Show the settings that differ from the default."""
        settings = {"scale": self.scale, "cap": self.cap}
        return ", ".join(f"{name}={value}" for name, value in settings.items() if value is not None)
