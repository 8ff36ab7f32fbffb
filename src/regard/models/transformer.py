"""The Transformer: an encoder, and a decoder that looks at what it gave."""

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from regard.data import check_token_ids
from regard.masks import padding
from regard.models.bucketing import portions
from regard.models.decoder import Decoder, Past, Source
from regard.models.encoder import Encoder
from regard.models.layer import Notes
from regard.models.layers import Embedding
from regard.models.protocols import Looks


class Transformer(nn.Module):
    """An encoder and a decoder between embeddings (Vaswani et al. 2017, figure 1)."""

    looks_late = True

    def __init__(
        self,
        source: Embedding,
        target: Embedding,
        encoder: Encoder,
        decoder: Decoder,
        tied: bool = True,
    ) -> None:
        super().__init__()
        self.source, self.target = source, target
        self.encoder, self.decoder = encoder, decoder
        # without a layer of its own, the output is tied to the target embedding
        self.last = None if tied else nn.Linear(target.width, target.vocabulary, bias=False)

    def encode(self, source: Tensor, lengths: Tensor, notes: Notes = None) -> Source:
        """Read the source (batch, position) once, and project it for every layer."""
        check_token_ids("source", source, self.source.vocabulary, lengths)
        keep = torch.arange(source.shape[1], device=source.device) < lengths[:, None]
        return self.decoder.read(self.encoder(self.source(source), padding(keep), notes), keep)

    def encode_apart(self, source: Tensor, lengths: Tensor) -> Source:
        """Encode sentences of like length together: the same memory, and little padding is read.

        It is padded to the longest sentence, even if the source has more padding. A graphics card
        is better busy with padding than with one portion after another.
        """
        check_token_ids("source", source, self.source.vocabulary, lengths)
        rows = portions(lengths) if source.device.type == "cpu" else []
        if len(rows) < 2:
            return self.encode(source, lengths)
        apart = [self.encode(source[r, : int(lengths[r[0]])], lengths[r]) for r in rows]
        return Source.together(apart, rows)

    def decode(
        self, target: Tensor, memory: Source, notes: tuple[Notes, Notes] = (None, None)
    ) -> Tensor:
        """Read a whole target (batch, position), each position seeing only those before it."""
        check_token_ids("target", target, self.target.vocabulary)
        states: Tensor = self.decoder(self.target(target), memory, notes)
        return states

    def start(self, memory: Source) -> Past:
        """Give the past before the first step."""
        return self.decoder.start(memory)

    def step(self, tokens: Tensor, past: Past) -> tuple[Tensor, Past]:
        """Read one token per continuation, (sentence, beam)."""
        return self.decoder.step(self.target.at(tokens, past.steps), past)

    def output(self, states: Tensor) -> Tensor:
        """Score every token of the vocabulary as the next one."""
        return linear(states, self.output_weight)

    @property
    def output_weight(self) -> Tensor:
        """The output layer: a vector per token of the target vocabulary."""
        return self.target.weight if self.last is None else self.last.weight

    @property
    def longest(self) -> int | None:
        """How many tokens have a position on both sides; None if any number has."""
        rooms = [side.longest for side in (self.source, self.target) if side.longest is not None]
        return min(rooms, default=None)

    def look(self, source: Tensor, lengths: Tensor, target: Tensor) -> tuple[Tensor, Looks]:
        """Encode and decode, and tell where every layer and head looked."""
        notes: tuple[list[Tensor], list[Tensor], list[Tensor]] = ([], [], [])
        states = self.decode(target, self.encode(source, lengths, notes[0]), notes[1:])
        return states, Looks(*map(tuple, notes))
