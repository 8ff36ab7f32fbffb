"""The decoder: a text sees its own past and, if there is one, a source."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from regard.attention import BeamTree, KeyValues, KVCache
from regard.masks import Mask, causal, padding
from regard.models.bucketing import placed
from regard.models.layer import Layer, Notes


class Source(NamedTuple):
    """What was read of the source: a memory for each layer, and which of its keys may be seen."""

    memories: tuple[KeyValues, ...]  # of those layers that look at it
    keep: Tensor  # (sentence, key)

    def pick(self, sentences: Tensor) -> "Source":
        """Go on with some sentences only."""
        return Source(tuple(m.reorder(sentences) for m in self.memories), self.keep[sentences])

    @staticmethod
    def together(portions: Sequence["Source"], rows: Sequence[Tensor]) -> "Source":
        """Put sentences that were read in portions back to their rows, padded to the longest."""
        memories = zip(*(portion.memories for portion in portions), strict=True)
        return Source(
            tuple(
                KeyValues(*(placed(parts, rows, axis=-2) for parts in zip(*layer, strict=True)))
                for layer in memories
            ),
            placed([portion.keep for portion in portions], rows, axis=-1),
        )

    def laid_out(self) -> "Source":
        """Write each head's keys and values one after another: a search reads them at every step.

        As they were projected, the heads lie side by side, and memory is read by leaps.
        """
        memories = (KeyValues(m.keys.contiguous(), m.values.contiguous()) for m in self.memories)
        return self._replace(memories=tuple(memories))


class Past(NamedTuple):
    """What a decoder knows after some steps: a cache for each layer, who sees what, the source."""

    caches: tuple[KVCache, ...]  # a sentence's continuations share one
    source: Source | None
    branches: BeamTree | None = None  # none before the first step

    @property
    def steps(self) -> int:
        """How many steps were taken: where the next token stands."""
        return 0 if self.branches is None else self.branches.steps

    def reorder(self, rows: Tensor) -> "Past":
        """Let each continuation go on from the given one's past, of the same sentence."""
        if self.branches is None:
            return self
        everyone = torch.arange(len(self.branches.visible), device=rows.device)
        branches = self.branches.reorder(rows, len(everyone))
        if not branches.should_prune:
            return self._replace(branches=branches)
        return self._thinned(branches, everyone)

    def keep(self, sentences: Tensor, rows: Tensor) -> "Past":
        """Go on with some sentences, and with the continuations that are given by their rows."""
        branches = self.branches and self.branches.reorder(rows, len(sentences))
        past = self._replace(source=self.source and self.source.pick(sentences))
        if branches is not None and branches.diverged:
            return past._thinned(branches, sentences)
        return past._replace(
            caches=tuple(cache.reorder(sentences) for cache in self.caches), branches=branches
        )

    def _thinned(self, branches: BeamTree, sentences: Tensor) -> "Past":
        """Copy of the sentences' keys those that someone still sees."""
        branches, keys = branches.pruned()
        caches = tuple(cache.select(sentences, keys) for cache in self.caches)
        return self._replace(caches=caches, branches=branches)


class Decoder(nn.Module):
    """Layers that look back at the text so far and, if they have cross-attention, at a source."""

    def __init__(self, layers: Sequence[Layer], norm: nn.Module | None = None) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.norm = norm

    def read(self, states: Tensor, keep: Tensor) -> Source:
        """Project what the encoder gave, once for every layer."""
        crosses = (layer.cross for layer in self.layers if isinstance(layer, Layer))
        return Source(tuple(cross.project_kv(states) for cross in crosses if cross), keep)

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
        return Past(tuple(KVCache() for _ in self.layers), source and source.laid_out())

    def step(self, rows: Tensor, past: Past) -> tuple[Tensor, Past]:
        """Change one new row per continuation, (sentence, beam, width)."""
        branches = past.branches or BeamTree.begin(len(rows), rows.device)
        branches = branches.grow(rows.shape[1])
        caches, seen = [], _seen(past.source)
        for layer, cache, memory in zip(
            self.layers, past.caches, self._memories(past.source), strict=True
        ):
            assert isinstance(layer, Layer)
            rows, grown = layer.step(rows, cache, branches, memory, seen)
            caches.append(grown)
        rows = rows if self.norm is None else self.norm(rows)
        return rows, Past(tuple(caches), past.source, branches)

    def _memories(self, source: Source | None) -> list[KeyValues | None]:
        """Hand each layer that looks at the source its memory; others need none."""
        memories = iter(() if source is None else source.memories)
        return [None if layer.cross is None else next(memories, None) for layer in self.layers]


def _seen(source: Source | None) -> Mask | None:
    return None if source is None else padding(source.keep)
