"""Optimizers (AdamW, Muon) and the learning rate schedule."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from math import cos, pi, sqrt
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard._support.linear import fast_products, multiply
from regard.config import TrainConfig
from regard.training.distributed import Distributed
from regard.training.plan import TimePlan
from regard.training.sharding import full_tensor, shard_like

# Muon (Jordan et al., 2024): momentum, Newton-Schulz iterations, and the coefficients of the odd
# polynomial a x + b x³ + c x⁵ that each iteration applies to the singular values
MOMENTUM = 0.95
NS_STEPS = 5
NS_COEFFICIENTS = (3.4445, -4.7750, 2.0315)
ADAM_RMS = 0.2  # root mean square of Adam's update, in learning rates (Liu et al., 2025)


def learning_rate(
    step: int, config: TrainConfig, max_steps: int | None = None, plan: TimePlan | None = None
) -> float:
    """Return the learning rate of a step: linear warm-up to the peak, then the schedule.

    It is a function of the arguments alone; a time limit takes part in it through its plan.

    Args:
        step: counted from 1.
        config: peak, warm-up, schedule and number of steps.
        max_steps: planned number of steps, where a time limit replaces `config.steps`.
        plan: warm-up and phases of a time limit, instead of `config.warmup`.

    Example:
        >>> config = TrainConfig(learning_rate=0.5, warmup=40, schedule="inverse_sqrt")
        >>> [learning_rate(step, config) for step in (20, 40, 160)]
        [0.25, 0.5, 0.25]
    """
    plan = plan or TimePlan(warmup=max(config.warmup, 1))
    phase = plan.phase(step, max_steps or config.steps)
    if phase < 1:
        return config.learning_rate * phase
    if config.schedule == "inverse_sqrt":
        return config.learning_rate * sqrt(max(plan.warmup, 1) / step)
    if config.schedule == "cosine":
        return config.learning_rate * (1 + cos(pi * (phase - 1))) / 2
    return config.learning_rate


def build_optimizer(
    model: nn.Module, config: TrainConfig, group: Distributed
) -> torch.optim.Optimizer:
    """Return the optimizer that the settings name."""
    adam: dict[str, Any] = {
        "lr": config.learning_rate,
        "betas": config.betas,
        "eps": 1e-9,
        "weight_decay": config.weight_decay,
        "fused": True,
    }
    if config.optimizer == "muon":
        return Muon(model.parameters(), list(_hidden_matrices(model)), group, **adam)
    return torch.optim.AdamW(model.parameters(), **adam)


def _hidden_matrices(model: nn.Module) -> Iterator[nn.Parameter]:
    """Yield the weights of linear layers except the output projection, an embedding by its rows."""
    output = getattr(model, "output_weight", None)
    linear = {layer.weight for layer in model.modules() if isinstance(layer, nn.Linear)}
    for parameter in model.parameters():  # in the same order in every process
        if parameter in linear and parameter is not output:
            yield parameter


class Muon(torch.optim.AdamW):
    """AdamW, except that given matrices are updated by orthogonalized momentum (Muon).

    A gradient mostly has a few strong directions. Muon orthogonalizes the momentum of a matrix
    before it takes the step, so that weak directions are learned as fast. `torch.optim.Muon` does
    so in bfloat16 and matrix by matrix, which takes seconds a step on hardware without bfloat16;
    here, matrices of the same shape are multiplied in one batch and sharded over the processes.
    """

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        matrices: Iterable[nn.Parameter],
        group: Distributed,
        **adam: Any,
    ) -> None:
        super().__init__(parameters, **adam)
        self.group = group
        self.by_shape = defaultdict[torch.Size, list[nn.Parameter]](list)
        for matrix in matrices:
            self.by_shape[matrix.shape].append(matrix)

    @torch.no_grad()
    @fast_products()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Update the matrices, and everything else that has a gradient with AdamW."""
        assert closure is None
        for same_shape in self.by_shape.values():
            matrices = [matrix for matrix in same_shape if matrix.grad is not None]
            if matrices:
                self._update(matrices)
        super().step()

    def _update(self, matrices: list[nn.Parameter]) -> None:
        (group,) = self.param_groups
        # orthogonal are whole matrices, not their shards
        momentum = torch.stack([full_tensor(self._nesterov(matrix)) for matrix in matrices])
        directions = self.group.map_shards(newton_schulz, momentum)
        step_size = group["lr"] * ADAM_RMS * sqrt(max(matrices[0].shape))
        for matrix, direction in zip(matrices, directions, strict=True):
            if group["weight_decay"]:
                matrix.mul_(1 - group["lr"] * group["weight_decay"])
            matrix.add_(shard_like(direction, matrix), alpha=-step_size)
            matrix.grad = None

    def _nesterov(self, matrix: Tensor) -> Tensor:
        """Update the momentum of a matrix with its gradient; return Nesterov's look-ahead."""
        assert matrix.grad is not None
        state = self.state[matrix]
        if not state:
            state["momentum"] = torch.zeros_like(matrix)
            state["step"] = torch.zeros((), device=matrix.device)  # which AdamW expects of all
        momentum: Tensor = state["momentum"].lerp_(matrix.grad, 1 - MOMENTUM)
        return matrix.grad.lerp(momentum, MOMENTUM)


def newton_schulz(
    matrices: Float[Tensor, "matrix row column"],
) -> Float[Tensor, "matrix row column"]:
    """Orthogonalize matrices by Newton-Schulz iteration: all singular values end up near 1."""
    if matrices.device.type == "cpu":  # a single matrix stays in the processor's cache
        return torch.stack([_newton_schulz(matrix, multiply) for matrix in matrices])
    return _newton_schulz(matrices, torch.matmul)


def _newton_schulz(
    matrices: Float[Tensor, "*matrix row column"], multiply: Callable[[Tensor, Tensor], Tensor]
) -> Float[Tensor, "*matrix row column"]:
    if matrices.shape[-2] > matrices.shape[-1]:
        return _newton_schulz(matrices.mT, multiply).mT
    a, b, c = NS_COEFFICIENTS
    norm = torch.linalg.matrix_norm(matrices, keepdim=True)
    x: Tensor = matrices / norm.clamp(min=1e-7)
    for _ in range(NS_STEPS):
        gram = multiply(x, x.mT)
        polynomial = multiply(gram, gram).mul_(c).add_(gram, alpha=b)
        polynomial.diagonal(dim1=-2, dim2=-1).add_(a)
        x = multiply(polynomial, x)
    return x
