"""An encoder alone, which tells what kind a text is."""

import torch
from torch import Tensor, nn

from regard.data import check_token_ids
from regard.masks import padding
from regard.models.encoder import Encoder
from regard.models.layer import Notes
from regard.models.layers import Embedding


class Classifier(nn.Module):
    """An encoder alone: the mean of its states over the words of a text, and a linear layer."""

    def __init__(self, embedding: Embedding, encoder: Encoder, classes: int) -> None:
        super().__init__()
        self.embedding, self.encoder = embedding, encoder
        self.last = nn.Linear(embedding.width, classes)

    def forward(self, tokens: Tensor, lengths: Tensor, notes: Notes = None) -> Tensor:
        """Score every class for each text (batch, position)."""
        check_token_ids("tokens", tokens, self.embedding.vocabulary, lengths)
        keep = torch.arange(tokens.shape[1], device=tokens.device) < lengths[:, None]
        states = self.encoder(self.embedding(tokens), padding(keep), notes)
        mean = states.masked_fill(~keep[..., None], 0.0).sum(dim=1) / lengths[:, None]
        scores: Tensor = self.last(mean)
        return scores
