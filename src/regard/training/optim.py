"""The optimizer: Adam, or Muon for the weights of linear layers and Adam for everything else."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from math import sqrt
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.config import TrainConfig
from regard.training.distributed import Distributed

# of Muon (Jordan et al., 2024): how long a gradient is remembered, rounds towards an orthogonal
# matrix, and the odd polynomial that each round applies to the singular values
MEMORY = 0.95
ROUNDS = 5
FIRST, THIRD, FIFTH = 3.4445, -4.7750, 2.0315
ADAMS_STRIDE = 0.2  # how far Adam moves a weight in one step, in rates (Liu et al., 2025)


def build(model: nn.Module, settings: TrainConfig, crew: Distributed) -> torch.optim.Optimizer:
    """Make the optimizer that the settings name."""
    adams: dict[str, Any] = {
        "lr": settings.learning_rate,
        "betas": settings.betas,
        "eps": 1e-9,
        "weight_decay": settings.weight_decay,
        "fused": True,
    }
    if settings.optimizer == "muon":
        return Muon(model.parameters(), list(_matrices(model)), crew, **adams)
    return torch.optim.AdamW(model.parameters(), **adams)


def _matrices(model: nn.Module) -> Iterator[nn.Parameter]:
    """Give the weights of linear layers but the last, whose rows are tokens as in an embedding."""
    output = getattr(model, "output_weight", None)
    linear = {layer.weight for layer in model.modules() if isinstance(layer, nn.Linear)}
    for weight in model.parameters():  # in an order that all processes agree on
        if weight in linear and weight is not output:
            yield weight


class Muon(torch.optim.AdamW):
    """Adam, except that the given matrices move alike in all directions.

    A gradient mostly has a few strong directions. Muon makes the remembered gradient of a matrix
    orthogonal before it takes the step, so that weak directions are learned as fast. torch.optim's
    own does so in bfloat16 and one by one, which takes seconds a step where there is no hardware
    for it; here, matrices of one shape are multiplied together, and shared out among processes.
    """

    def __init__(
        self,
        weights: Iterable[nn.Parameter],
        matrices: Iterable[nn.Parameter],
        crew: Distributed,
        **adams: Any,
    ) -> None:
        super().__init__(weights, **adams)
        self.crew = crew
        self.by_shape = defaultdict[torch.Size, list[nn.Parameter]](list)
        for matrix in matrices:
            self.by_shape[matrix.shape].append(matrix)

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Move the matrices, and have Adam move what still has a gradient."""
        assert closure is None
        for alike in self.by_shape.values():
            moving = [matrix for matrix in alike if matrix.grad is not None]
            if moving:
                self._move(moving)
        super().step()

    def _move(self, matrices: list[nn.Parameter]) -> None:
        (group,) = self.param_groups
        ahead = torch.stack([self._ahead(matrix) for matrix in matrices])
        directions = self.crew.share_out(orthogonal, ahead)
        stride = group["lr"] * ADAMS_STRIDE * sqrt(max(matrices[0].shape))
        for matrix, direction in zip(matrices, directions, strict=True):
            matrix.mul_(1 - group["lr"] * group["weight_decay"]).add_(direction, alpha=-stride)
            matrix.grad = None

    def _ahead(self, matrix: Tensor) -> Tensor:
        """Remember a gradient, and give what is remembered, one step ahead (Nesterov)."""
        assert matrix.grad is not None
        state = self.state[matrix]
        if not state:
            state["momentum"] = torch.zeros_like(matrix)
            state["step"] = torch.zeros((), device=matrix.device)  # which Adam expects of all
        remembered: Tensor = state["momentum"].lerp_(matrix.grad, 1 - MEMORY)
        return matrix.grad.lerp(remembered, MEMORY)


def orthogonal(matrices: Float[Tensor, "matrix row column"]) -> Float[Tensor, "matrix row column"]:
    """Bring all singular values near 1, by Newton and Schulz: with products alone."""
    if matrices.shape[-2] > matrices.shape[-1]:
        flipped: Tensor = orthogonal(matrices.mT)
        return flipped.mT
    strength = torch.linalg.matrix_norm(matrices, keepdim=True)
    turned: Tensor = matrices / strength.clamp(min=1e-7)
    for _ in range(ROUNDS):
        square = turned @ turned.mT
        mixed = torch.baddbmm(square, square, square, beta=THIRD, alpha=FIFTH)
        turned = torch.baddbmm(turned, mixed, turned, beta=FIRST)
    return turned
