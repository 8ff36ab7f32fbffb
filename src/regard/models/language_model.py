"""A decoder alone, which goes on with a text."""

from torch import Tensor, nn
from torch.nn.functional import linear

from regard.data import check_token_ids
from regard.models.decoder import Decoder, Past
from regard.models.layer import Notes
from regard.models.layers import Embedding


class LanguageModel(nn.Module):
    """A decoder alone: it goes on with a text."""

    def __init__(self, embedding: Embedding, decoder: Decoder, tied: bool = True) -> None:
        super().__init__()
        self.embedding, self.decoder = embedding, decoder
        self.last = None if tied else nn.Linear(embedding.width, embedding.vocabulary, bias=False)

    @property
    def longest(self) -> int | None:
        """How many tokens of a text have a position; None if any number has."""
        return self.embedding.longest

    def forward(self, tokens: Tensor, notes: Notes = None) -> Tensor:
        """Read a whole text (batch, position), each position seeing only those before it."""
        check_token_ids("tokens", tokens, self.embedding.vocabulary)
        states: Tensor = self.decoder(self.embedding(tokens), None, (notes, None))
        return states

    def start(self) -> Past:
        """Give the past before the first step."""
        return self.decoder.start()

    def step(self, tokens: Tensor, past: Past) -> tuple[Tensor, Past]:
        """Read one token per continuation, (sentence, beam)."""
        return self.decoder.step(self.embedding.at(tokens, past.steps), past)

    def output(self, states: Tensor) -> Tensor:
        """Score every token of the vocabulary as the next one."""
        return linear(states, self.embedding.weight if self.last is None else self.last.weight)
