"""A number above zero, fixed or learned: temperatures and bandwidths."""

import math

import torch
from torch import Tensor, nn


class Positive(nn.Module):
    """A number that stays above zero, because what is learned is its logarithm."""

    def __init__(self, name: str, start: float, learned: bool) -> None:
        super().__init__()
        if not 0 < start < math.inf:
            raise ValueError(
                f"{name} must be a finite number above 0, but it is {start}; 1.0 is the default"
            )
        self.start = float(start)
        self.log = nn.Parameter(torch.tensor(math.log(start))) if learned else None

    @property
    def learned(self) -> bool:
        """Whether the number is learned."""
        return self.log is not None

    @property
    def number(self) -> Tensor:
        """The number as it is now."""
        # without axes, a float64 number does not widen the tensors it meets
        return torch.tensor(self.start, dtype=torch.float64) if self.log is None else self.log.exp()

    def extra_repr(self) -> str:
        """Show the number and whether it is learned."""
        return f"{self.number.item():.4g}, learned={self.learned}"
