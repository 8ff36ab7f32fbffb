"""A number above zero, fixed or learned: temperatures and bandwidths."""

import math

import torch
from torch import Tensor, nn


class PositiveParameter(nn.Module):
    """A number that stays above zero, because what is learned is its logarithm."""

    def __init__(self, name: str, initial: float, learnable: bool) -> None:
        super().__init__()
        if not 0 < initial < math.inf:
            raise ValueError(
                f"{name} must be a finite number above 0, but it is {initial}; 1.0 is the default"
            )
        self.initial = float(initial)
        self.log = nn.Parameter(torch.tensor(math.log(initial))) if learnable else None

    @property
    def learnable(self) -> bool:
        """Whether the number is learned."""
        return self.log is not None

    @property
    def value(self) -> Tensor:
        """The number as it is now."""
        # without axes, a float64 number does not widen the tensors it meets
        return (
            torch.tensor(self.initial, dtype=torch.float64) if self.log is None else self.log.exp()
        )

    def extra_repr(self) -> str:
        """Show the number and whether it is learned."""
        return f"{self.value.item():.4g}, learnable={self.learnable}"
