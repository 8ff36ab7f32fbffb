"""Label-smoothed cross-entropy, fused with the output projection and chunked over rows.

Also known as fused or chunked linear cross-entropy (Liger, torchtune): the logits of all rows over
the vocabulary, by far the largest tensor of a small model, are never in memory at once.
"""

from math import e, log2
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from regard._support.linear import multiply

CHUNK_ROWS = 256  # rows whose logits are in memory at a time
LOG2_E = log2(e)  # exp(x) = exp2(x * LOG2_E); torch's exp2 takes a quarter of the time of its exp


def linear_cross_entropy(
    states: Float[Tensor, "row width"],
    output_weight: Float[Tensor, "token width"],
    targets: Int[Tensor, " row"],
    label_smoothing: float = 0.0,
    chunk_rows: int = CHUNK_ROWS,
) -> tuple[Tensor, Tensor]:
    """Return the label-smoothed cross-entropy and the negative log-likelihood, summed over rows.

    With label smoothing s, the label of a row is 1 - s for its target plus s / vocabulary for every
    token. The negative log-likelihood is meant for reports and has no gradient.

    Args:
        states: outputs of the decoder.
        output_weight: weight of the output projection; logits are `states @ output_weight.T`.
        targets: the token that each row should predict.
        label_smoothing: probability spread over the vocabulary.
        chunk_rows: rows to process at a time.
    """
    if not torch.is_grad_enabled():  # a Function cannot see this, and would compute gradients
        states, output_weight = states.detach(), output_weight.detach()
    smoothed, nll = _LinearCrossEntropy.apply(  # type: ignore[no-untyped-call]
        states, output_weight, targets, label_smoothing, chunk_rows
    )
    return smoothed, nll


class _LinearCrossEntropy(Function):
    """Computes both gradients in the forward pass, while the logits of a chunk are in memory.

    The exponentials are taken once. They serve the sum and both gradients, which are divided by
    the sum on their narrow side, row by row, and not on the side of the vocabulary.
    """

    @staticmethod
    def forward(
        ctx: Any,
        states: Tensor,
        output_weight: Tensor,
        targets: Tensor,
        label_smoothing: float,
        chunk_rows: int,
    ) -> tuple[Tensor, Tensor]:
        gradients = None
        if ctx.needs_input_grad[0] or ctx.needs_input_grad[1]:
            gradients = _Gradients(torch.empty_like(states), torch.zeros_like(output_weight))
        log_sums, target_logits = _log_sum_exp(
            states, output_weight, targets, chunk_rows, gradients
        )
        mean_logits = states @ output_weight.mean(dim=0)
        if gradients is not None:
            gradients.subtract_labels(states, output_weight, targets, label_smoothing)
            ctx.save_for_backward(gradients.states, gradients.output_weight)
        smoothed = log_sums - (1 - label_smoothing) * target_logits - label_smoothing * mean_logits
        nll = (log_sums - target_logits).sum()
        ctx.mark_non_differentiable(nll)
        return smoothed.sum(), nll

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_loss: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        grad_states, grad_output_weight = ctx.saved_tensors
        return grad_states * grad_loss, grad_output_weight * grad_loss, None, None, None


class _Gradients:
    """Gradients of the loss by states and output weight, accumulated chunk by chunk."""

    def __init__(self, states: Tensor, output_weight: Tensor) -> None:
        self.states, self.output_weight = states, output_weight

    def add_softmax(
        self,
        rows: slice,
        states: Tensor,
        output_weight: Tensor,
        exponentials: Tensor,
        inverse_sums: Tensor,
    ) -> None:
        """Add the gradient of log-sum-exp of some rows: their softmax."""
        products = multiply(exponentials, output_weight)
        torch.mul(products, inverse_sums, out=self.states[rows])
        self.output_weight += multiply(exponentials.t(), states * inverse_sums)

    def subtract_labels(
        self, states: Tensor, output_weight: Tensor, targets: Tensor, label_smoothing: float
    ) -> None:
        """Subtract the labels: 1 - s of the targets, and s / vocabulary of every token."""
        self.states.sub_(output_weight[targets], alpha=1 - label_smoothing)
        self.output_weight.index_add_(0, targets, states, alpha=label_smoothing - 1)
        self.states.sub_(output_weight.mean(dim=0), alpha=label_smoothing)
        self.output_weight.sub_(states.sum(dim=0), alpha=label_smoothing / len(output_weight))


def _log_sum_exp(
    states: Tensor,
    output_weight: Tensor,
    targets: Tensor,
    chunk_rows: int,
    gradients: _Gradients | None,
) -> tuple[Tensor, Tensor]:
    """Return each row's log-sum-exp over the vocabulary and the logit of its target."""
    base_2_states = states * LOG2_E
    buffer = states.new_empty(min(chunk_rows, len(states)), len(output_weight))
    log_sums, target_logits = states.new_empty(len(states)), states.new_empty(len(states))
    for start in range(0, len(states), chunk_rows):
        rows = slice(start, min(start + chunk_rows, len(states)))
        buffer_rows = buffer[: rows.stop - start]
        logits = multiply(base_2_states[rows], output_weight.t(), out=buffer_rows)
        target_logits[rows] = logits.gather(1, targets[rows, None])[:, 0]
        maximum = logits.amax(dim=1, keepdim=True)
        exponentials = logits.sub_(maximum).exp2_()
        sums = exponentials.sum(dim=1, keepdim=True)
        log_sums[rows] = (sums.log2() + maximum)[:, 0]
        if gradients is not None:
            gradients.add_softmax(rows, states[rows], output_weight, exponentials, 1 / sums)
    return log_sums / LOG2_E, target_logits / LOG2_E
