"""The Transformer: encoder and decoder, together and each alone."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from regard.attention import Cache, Memory, MultiHead
from regard.masks import Mask, causal, padding
from regard.models.blocks import Embedding, FeedForward, Residual
from regard.models.translator import Looks
from regard.tokens import check_tokens

Notes = list[Tensor] | None
"""Where to note the weights of a pass, layer by layer; None to pass without them."""


class Layer(nn.Module):
    """Self-attention, attention to a source if there is one, and feed-forward, each residual.

    A layer receives its attentions ready-made, so any fits.
    """

    def __init__(
        self,
        attention: MultiHead,
        feed_forward: FeedForward,
        cross: MultiHead | None = None,
        *,
        dropout: float = 0.0,
        pre_norm: bool = False,
    ) -> None:
        super().__init__()
        width = attention.query.in_features
        self.attention = attention
        self.cross = cross
        self.feed_forward = feed_forward
        self.around_attention = Residual(width, dropout, pre_norm)
        self.around_cross = None if cross is None else Residual(width, dropout, pre_norm)
        self.around_feed_forward = Residual(width, dropout, pre_norm)

    def forward(
        self,
        rows: Tensor,
        mask: Mask | None = None,
        source: Memory | None = None,
        source_mask: Mask | None = None,
        notes: tuple[Notes, Notes] = (None, None),
    ) -> Tensor:
        """Change all rows at once; note the weights of self-attention and of cross-attention."""
        rows = self.around_attention(
            rows, lambda rows: _noted(self.attention, rows, None, mask, notes[0])
        )
        return self._finished(rows, source, source_mask, notes[1])

    def step(
        self,
        rows: Tensor,
        cache: Cache,
        source: Memory | None = None,
        source_mask: Mask | None = None,
    ) -> tuple[Tensor, Cache]:
        """Change one new row per continuation, (sentence, beam, width), given those before it."""
        grown = cache

        def attend(rows: Tensor) -> Tensor:
            nonlocal grown
            apart = rows.flatten(0, 1).unsqueeze(1)  # every continuation has a past of its own
            context, grown = self.attention.step(apart, cache)
            return context.view_as(rows)

        rows = self.around_attention(rows, attend)
        # continuations of one sentence look side by side at one source, which is never repeated
        return self._finished(rows, source, source_mask, None), grown

    def _finished(
        self,
        rows: Tensor,
        source: Memory | None,
        source_mask: Mask | None,
        notes: Notes,
    ) -> Tensor:
        if self.cross is not None and self.around_cross is not None:
            cross = self.cross
            rows = self.around_cross(
                rows, lambda rows: _noted(cross, rows, source, source_mask, notes)
            )
        changed: Tensor = self.around_feed_forward(rows, self.feed_forward)
        return changed


def _noted(
    attention: MultiHead,
    rows: Tensor,
    source: Memory | None,
    mask: Mask | None,
    notes: Notes,
) -> Tensor:
    """Attend, and note the weights if someone wants them."""
    if notes is None:
        plain: Tensor = attention(rows, source, mask=mask)
        return plain
    context, weights = attention.look(rows, source, mask=mask)
    notes.append(weights)
    return context


class Encoder(nn.Module):
    """Layers of self-attention over a whole text, and a final norm if there is one."""

    def __init__(self, layers: Sequence[Layer], norm: nn.Module | None = None) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.norm = norm

    def forward(self, rows: Tensor, mask: Mask | None = None, notes: Notes = None) -> Tensor:
        """Change rows (batch, position, width), all positions at once."""
        for layer in self.layers:
            rows = layer(rows, mask, notes=(notes, None))
        return rows if self.norm is None else self.norm(rows)


class Source(NamedTuple):
    """What was read of the source: a memory for each layer, and which of its keys may be seen."""

    memories: tuple[Memory, ...]
    keep: Tensor  # (sentence, key)

    def pick(self, sentences: Tensor) -> "Source":
        """Go on with some sentences only."""
        return Source(tuple(m.reorder(sentences) for m in self.memories), self.keep[sentences])


class Past(NamedTuple):
    """What a decoder knows after some steps: a cache for each layer, and the source."""

    caches: tuple[Cache, ...]
    source: Source | None

    def reorder(self, rows: Tensor) -> "Past":
        """Let each continuation go on from the given one's past; the source stays."""
        return self._replace(caches=tuple(cache.reorder(rows) for cache in self.caches))

    def keep(self, sentences: Tensor, rows: Tensor) -> "Past":
        """Go on with some sentences, and with the continuations that are given by their rows."""
        source = None if self.source is None else self.source.pick(sentences)
        return self._replace(source=source).reorder(rows)


class Decoder(nn.Module):
    """Layers that look back at the text so far and, if they have cross-attention, at a source."""

    def __init__(self, layers: Sequence[Layer], norm: nn.Module | None = None) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.norm = norm

    def read(self, states: Tensor, keep: Tensor) -> Source:
        """Project what the encoder gave, once for every layer."""
        crosses = (layer.cross for layer in self.layers if isinstance(layer, Layer))
        return Source(tuple(cross.project(states) for cross in crosses if cross), keep)

    def forward(
        self,
        rows: Tensor,
        source: Source | None = None,
        notes: tuple[Notes, Notes] = (None, None),
    ) -> Tensor:
        """Change rows (batch, position, width), all positions at once, none seeing the future."""
        for layer, memory in zip(self.layers, self._memories(source), strict=True):
            rows = layer(rows, causal(), memory, _seen(source), notes)
        return rows if self.norm is None else self.norm(rows)

    def start(self, source: Source | None = None) -> Past:
        """Give the past before the first step."""
        return Past(tuple(Cache() for _ in self.layers), source)

    def step(self, rows: Tensor, past: Past) -> tuple[Tensor, Past]:
        """Change one new row per continuation, (sentence, beam, width)."""
        caches, seen = [], _seen(past.source)
        for layer, cache, memory in zip(
            self.layers, past.caches, self._memories(past.source), strict=True
        ):
            assert isinstance(layer, Layer)
            rows, grown = layer.step(rows, cache, memory, seen)
            caches.append(grown)
        rows = rows if self.norm is None else self.norm(rows)
        return rows, past._replace(caches=tuple(caches))

    def _memories(self, source: Source | None) -> Sequence[Memory | None]:
        return [None] * len(self.layers) if source is None else source.memories


def _seen(source: Source | None) -> Mask | None:
    return None if source is None else padding(source.keep)


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
        check_tokens("source", source, self.source.vocabulary, lengths)
        keep = torch.arange(source.shape[1], device=source.device) < lengths[:, None]
        return self.decoder.read(self.encoder(self.source(source), padding(keep), notes), keep)

    def decode(
        self, target: Tensor, memory: Source, notes: tuple[Notes, Notes] = (None, None)
    ) -> Tensor:
        """Read a whole target (batch, position), each position seeing only those before it."""
        check_tokens("target", target, self.target.vocabulary)
        states: Tensor = self.decoder(self.target(target), memory, notes)
        return states

    def start(self, memory: Source) -> Past:
        """Give the past before the first step."""
        return self.decoder.start(memory)

    def step(self, tokens: Tensor, past: Past) -> tuple[Tensor, Past]:
        """Read one token per continuation, (sentence, beam)."""
        return self.decoder.step(self.target.at(tokens, len(past.caches[0])), past)

    def output(self, states: Tensor) -> Tensor:
        """Score every token of the vocabulary as the next one."""
        return linear(states, self.output_weight)

    @property
    def output_weight(self) -> Tensor:
        """The output layer: a vector per token of the target vocabulary."""
        return self.target.weight if self.last is None else self.last.weight

    def look(self, source: Tensor, lengths: Tensor, target: Tensor) -> tuple[Tensor, Looks]:
        """Encode and decode, and tell where every layer and head looked."""
        notes: tuple[list[Tensor], list[Tensor], list[Tensor]] = ([], [], [])
        states = self.decode(target, self.encode(source, lengths, notes[0]), notes[1:])
        return states, Looks(*map(tuple, notes))


class LanguageModel(nn.Module):
    """A decoder alone: it goes on with a text."""

    def __init__(self, embedding: Embedding, decoder: Decoder, tied: bool = True) -> None:
        super().__init__()
        self.embedding, self.decoder = embedding, decoder
        self.last = None if tied else nn.Linear(embedding.width, embedding.vocabulary, bias=False)

    def forward(self, tokens: Tensor, notes: Notes = None) -> Tensor:
        """Read a whole text (batch, position), each position seeing only those before it."""
        check_tokens("tokens", tokens, self.embedding.vocabulary)
        states: Tensor = self.decoder(self.embedding(tokens), None, (notes, None))
        return states

    def start(self) -> Past:
        """Give the past before the first step."""
        return self.decoder.start()

    def step(self, tokens: Tensor, past: Past) -> tuple[Tensor, Past]:
        """Read one token per continuation, (sentence, beam)."""
        return self.decoder.step(self.embedding.at(tokens, len(past.caches[0])), past)

    def output(self, states: Tensor) -> Tensor:
        """Score every token of the vocabulary as the next one."""
        return linear(states, self.embedding.weight if self.last is None else self.last.weight)


class Classifier(nn.Module):
    """An encoder alone: the mean of its states over the words of a text, and a linear layer."""

    def __init__(self, embedding: Embedding, encoder: Encoder, classes: int) -> None:
        super().__init__()
        self.embedding, self.encoder = embedding, encoder
        self.last = nn.Linear(embedding.width, classes)

    def forward(self, tokens: Tensor, lengths: Tensor, notes: Notes = None) -> Tensor:
        """Score every class for each text (batch, position)."""
        check_tokens("tokens", tokens, self.embedding.vocabulary, lengths)
        keep = torch.arange(tokens.shape[1], device=tokens.device) < lengths[:, None]
        states = self.encoder(self.embedding(tokens), padding(keep), notes)
        mean = states.masked_fill(~keep[..., None], 0.0).sum(dim=1) / lengths[:, None]
        scores: Tensor = self.last(mean)
        return scores
