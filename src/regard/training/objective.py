"""A translator together with its loss: one call from a batch to what is to be made smaller."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from regard.data import PAD, Batch
from regard.models import Seq2SeqModel
from regard.training.fused_cross_entropy import cross_entropy

GUIDED_HEAD = 0


class Losses(NamedTuple):
    """Sums over the tokens of a batch."""

    learned: Tensor  # smoothed, and with the guide's part: what is made smaller
    plain: Tensor  # the cross-entropy alone: what is reported


class Objective(nn.Module):
    """The smoothed cross-entropy of the next word and, if guided, of where one head looks."""

    def __init__(
        self,
        model: Seq2SeqModel,
        smoothing: float = 0.0,
        guide: float = 0.0,
        guide_layer: int = -1,
    ) -> None:
        super().__init__()
        self.model = model
        self.smoothing = smoothing
        self.guide, self.guide_layer = guide, guide_layer

    def forward(self, batch: Batch) -> Losses:
        """Read sources and targets at once, and sum the loss over all target tokens."""
        model = self.model
        pulled = None
        if self.guide and batch.links is not None:
            states, looks = model.forward_with_weights(batch.source, batch.lengths, batch.inputs)
            layer = max(self.guide_layer, -len(looks.cross))
            pulled = guidance(looks.cross[layer][:, GUIDED_HEAD], batch.links)
        else:
            states = model(batch.source, batch.lengths, batch.inputs)
        told = batch.targets != PAD
        smoothing = self.smoothing if self.training else 0.0
        learned, plain = cross_entropy(
            states[told], model.output_weight, batch.targets[told], smoothing
        )
        return Losses(learned if pulled is None else learned + self.guide * pulled, plain)


def guidance(looks: Tensor, links: Tensor) -> Tensor:
    """Give the cross-entropy of a head's looks against links, summed over linked positions.

    Both are (batch, target, source). What several links share is shared alike.
    """
    shares = links / links.sum(dim=-1, keepdim=True).clamp(min=1.0)
    return -(shares * looks.clamp(min=torch.finfo(looks.dtype).tiny).log()).sum()
