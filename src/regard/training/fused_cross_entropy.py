"""The loss: label-smoothed cross-entropy, fused with the output layer, a few rows at a time."""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

ROWS = 256  # whose scores over the vocabulary are in memory at one time


def cross_entropy(
    states: Float[Tensor, "row width"],
    output: Float[Tensor, "token width"],
    targets: Int[Tensor, " row"],
    smoothing: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """Give the sum over rows of the smoothed loss, and of the plain one, which has no gradient.

    The label of a row is its target with 1 - smoothing, and every token with smoothing /
    vocabulary. The scores of all rows over the vocabulary are never in memory at once.
    """
    if not torch.is_grad_enabled():  # which the function is not told, and would compute gradients
        states, output = states.detach(), output.detach()
    smoothed, plain = _Fused.apply(states, output, targets, smoothing)  # type: ignore[no-untyped-call]
    return smoothed, plain


class _Fused(Function):
    """Both gradients are computed on the way forward, while the scores of some rows are there.

    The exponentials are taken once. They serve the sum and both gradients, which are divided by
    the sum on their small side, row by row, and not on the side of the vocabulary.
    """

    @staticmethod
    def forward(
        ctx: Any, states: Tensor, output: Tensor, targets: Tensor, smoothing: float
    ) -> tuple[Tensor, Tensor]:
        gradients = None
        if ctx.needs_input_grad[0] or ctx.needs_input_grad[1]:
            gradients = _Gradients(torch.empty_like(states), torch.zeros_like(output))
        sums, gold = _walk(states, output, targets, gradients)
        mean = states @ output.mean(dim=0)  # of a row's scores over the vocabulary
        if gradients is not None:
            gradients.subtract_labels(states, output, targets, smoothing)
            ctx.save_for_backward(*gradients.both)
        smoothed = sums - (1 - smoothing) * gold - smoothing * mean
        plain = (sums - gold).sum()
        ctx.mark_non_differentiable(plain)
        return smoothed.sum(), plain

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, by_loss: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        by_states, by_output = ctx.saved_tensors
        return by_states * by_loss, by_output * by_loss, None, None


class _Gradients:
    """The gradients of the loss by states and by output, as they come together."""

    def __init__(self, by_states: Tensor, by_output: Tensor) -> None:
        self.both = by_states, by_output

    def add(
        self, rows: slice, states: Tensor, output: Tensor, shares: Tensor, part: Tensor
    ) -> None:
        """Add what the softmax of some rows gives: shares x part."""
        by_states, by_output = self.both
        torch.mm(shares, output, out=by_states[rows])
        by_states[rows] *= part
        by_output.addmm_(shares.t(), states * part)

    def subtract_labels(
        self, states: Tensor, output: Tensor, targets: Tensor, smoothing: float
    ) -> None:
        """Subtract the labels: the target's 1 - smoothing, and everybody's part of smoothing."""
        by_states, by_output = self.both
        by_states.sub_(output[targets], alpha=1 - smoothing)
        by_output.index_add_(0, targets, states, alpha=smoothing - 1)
        by_states.sub_(output.mean(dim=0), alpha=smoothing)
        by_output.sub_(states.sum(dim=0), alpha=smoothing / len(output))


def _walk(
    states: Tensor, output: Tensor, targets: Tensor, gradients: _Gradients | None
) -> tuple[Tensor, Tensor]:
    """Give the log of the sum of exponentials, and the target's score, of each row."""
    scores = states.new_empty(min(ROWS, len(states)), len(output))
    sums, gold = states.new_empty(len(states)), states.new_empty(len(states))
    for first in range(0, len(states), ROWS):
        rows = slice(first, min(first + ROWS, len(states)))
        shares = torch.mm(states[rows], output.t(), out=scores[: rows.stop - first])
        gold[rows] = shares.gather(1, targets[rows, None])[:, 0]
        highest = shares.amax(dim=1, keepdim=True)
        total = shares.sub_(highest).exp_().sum(dim=1, keepdim=True)
        sums[rows] = (total.log() + highest)[:, 0]
        if gradients is not None:
            gradients.add(rows, states[rows], output, shares, 1 / total)
    return sums, gold
