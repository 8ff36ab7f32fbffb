"""The training objective: a model together with its loss, from a batch to what is minimized."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard._support.linear import fast_products
from regard.data import PAD, Batch
from regard.models import Seq2SeqModel
from regard.training.fused_cross_entropy import linear_cross_entropy

ALIGNMENT_HEAD = 0  # the cross-attention head that guided alignment supervises


class Losses(NamedTuple):
    """Sums over the target tokens of a batch."""

    loss: Tensor  # label-smoothed cross-entropy plus the weighted alignment loss: minimized
    nll: Tensor  # negative log-likelihood: reported, without gradient


class Objective(nn.Module):
    """Label-smoothed cross-entropy with teacher forcing and, optionally, guided alignment.

    Args:
        model: the model to train.
        label_smoothing: probability spread over the vocabulary; in training mode only.
        alignment_weight: guided alignment: weight of the alignment loss; 0 disables it.
        alignment_layer: guided alignment: decoder layer; negative counts from the last.
    """

    def __init__(
        self,
        model: Seq2SeqModel,
        label_smoothing: float = 0.0,
        alignment_weight: float = 0.0,
        alignment_layer: int = -1,
    ) -> None:
        super().__init__()
        self.model = model
        self.label_smoothing = label_smoothing
        self.alignment_weight, self.alignment_layer = alignment_weight, alignment_layer

    @fast_products()
    def forward(self, batch: Batch) -> Losses:
        """Decode the targets with teacher forcing, and sum the loss over their tokens."""
        model = self.model
        alignment = None
        if self.alignment_weight and batch.links is not None:
            states, weights = model.forward_with_weights(batch.source, batch.lengths, batch.inputs)
            layer = max(self.alignment_layer, -len(weights.cross))
            alignment = alignment_loss(weights.cross[layer][:, ALIGNMENT_HEAD], batch.links)
        else:
            states = model(batch.source, batch.lengths, batch.inputs)
        is_token = batch.targets != PAD
        label_smoothing = self.label_smoothing if self.training else 0.0
        loss, nll = linear_cross_entropy(
            states[is_token], model.output_weight, batch.targets[is_token], label_smoothing
        )
        return Losses(loss if alignment is None else loss + self.alignment_weight * alignment, nll)


def alignment_loss(
    weights: Float[Tensor, "batch target source"], links: Float[Tensor, "batch target source"]
) -> Float[Tensor, ""]:
    """Return the cross-entropy of a head's attention weights against word alignments.

    Guided alignment (Chen et al., 2016): the links of a target position are normalized to a
    distribution over the source; positions without links count nothing. The position of a target
    token is the step that writes it, which is how pictures name rows.
    """
    labels = links / links.sum(dim=-1, keepdim=True).clamp(min=1.0)
    return -(labels * weights.clamp(min=torch.finfo(weights.dtype).tiny).log()).sum()
