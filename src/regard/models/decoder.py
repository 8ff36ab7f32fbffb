"""The decoder: a text sees its own past and, if there is one, a source."""

from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor, nn

from regard.attention import Cache, Memory
from regard.masks import Mask, causal, padding
from regard.models.layer import Layer, Notes


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
