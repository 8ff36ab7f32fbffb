"""Values that models pass around while decoding: the encoded source and the decoder's state."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.attention import BeamTree, KeyValues, KVCache
from regard.models.bucketing import scatter_rows


def token_mask(
    tokens: Int[Tensor, "batch position"], lengths: Int[Tensor, " batch"]
) -> Bool[Tensor, "batch position"]:
    """Return True for tokens and False for padding."""
    return torch.arange(tokens.shape[1], device=tokens.device) < lengths[:, None]


class EncodedSource(NamedTuple):
    """An encoded source, projected once to the keys and values that the decoder attends to.

    Attributes:
        key_values: one for each decoder layer with cross-attention; a recurrent decoder has one.
        mask: True for tokens, False for padding.
        initial_hidden: first hidden state of a recurrent decoder; None for a Transformer.
    """

    key_values: tuple[KeyValues, ...]
    mask: Bool[Tensor, "batch key"]
    initial_hidden: Float[Tensor, "layer batch width"] | None = None

    @property
    def batch_size(self) -> int:
        """Number of batch items."""
        return len(self.mask)

    def select(self, batch_indices: Int[Tensor, " batch"]) -> "EncodedSource":
        """Return some batch items, in the given order."""
        hidden = self.initial_hidden
        return EncodedSource(
            tuple(key_values.reorder(batch_indices) for key_values in self.key_values),
            self.mask[batch_indices],
            None if hidden is None else hidden[:, batch_indices],
        )

    def contiguous(self) -> "EncodedSource":
        """Copy the keys and values of each head to contiguous memory.

        The projection leaves the heads interleaved, so a head's keys are read with a stride; a
        search reads them at every step.
        """
        key_values = (KeyValues(k.contiguous(), v.contiguous()) for k, v in self.key_values)
        return self._replace(key_values=tuple(key_values))

    @staticmethod
    def concat(parts: Sequence["EncodedSource"], rows: Sequence[Tensor]) -> "EncodedSource":
        """Join buckets of one batch, each item at its row, padded to the longest bucket."""
        layers = zip(*(part.key_values for part in parts), strict=True)
        hidden = [part.initial_hidden for part in parts if part.initial_hidden is not None]
        order = torch.cat(list(rows)).argsort()
        return EncodedSource(
            tuple(
                KeyValues(*(scatter_rows(some, rows, axis=-2) for some in zip(*layer, strict=True)))
                for layer in layers
            ),
            scatter_rows([part.mask for part in parts], rows, axis=-1),
            torch.cat(hidden, dim=1)[:, order] if hidden else None,
        )


class TransformerState(NamedTuple):
    """`DecoderState` of a Transformer: a KV cache per layer, which the beams of an item share.

    Attributes:
        caches: one for each layer; the keys of all beams of a batch item are in one cache.
        tree: which of these keys each beam may attend to.
        source: the encoded source; None for a language model.
    """

    caches: tuple[KVCache, ...]
    tree: BeamTree
    source: EncodedSource | None = None

    @property
    def batch_size(self) -> int:
        """Number of batch items."""
        return len(self.tree.visible)

    @property
    def steps(self) -> int:
        """Number of steps so far, which is the position of the next token."""
        return self.tree.steps

    def reorder(self, beam_indices: Int[Tensor, " row"]) -> "TransformerState":
        """Return the state in which each beam continues the given one, of the same batch item.

        Only the tree changes; no key is moved until many of them belong to no beam.
        """
        tree = self.tree.reorder(beam_indices, self.batch_size)
        if not tree.should_prune:
            return self._replace(tree=tree)
        return self._prune(tree, torch.arange(self.batch_size, device=beam_indices.device))

    def select(
        self, batch_indices: Int[Tensor, " batch"], beam_indices: Int[Tensor, " row"]
    ) -> "TransformerState":
        """Return the state of some batch items, whose beams continue the given ones."""
        tree = self.tree.reorder(beam_indices, len(batch_indices))
        source = None if self.source is None else self.source.select(batch_indices)
        state = self._replace(source=source)
        if tree.diverged:
            return state._prune(tree, batch_indices)
        caches = tuple(cache.reorder(batch_indices) for cache in self.caches)
        return state._replace(caches=caches, tree=tree)

    def _prune(self, tree: BeamTree, batch_indices: Tensor) -> "TransformerState":
        """Copy the keys of some batch items, without those that no beam can see."""
        tree, keys = tree.pruned()
        caches = tuple(cache.select(batch_indices, keys) for cache in self.caches)
        return self._replace(caches=caches, tree=tree)


class RecurrentState(NamedTuple):
    """`DecoderState` of a recurrent model: the hidden state of every beam, and the source."""

    hidden: Float[Tensor, "layer row width"]
    source: EncodedSource

    @property
    def batch_size(self) -> int:
        """Number of batch items."""
        return self.source.batch_size

    def reorder(self, beam_indices: Int[Tensor, " row"]) -> "RecurrentState":
        """Return the state in which each beam continues the given one, of the same batch item."""
        return self._replace(hidden=self.hidden[:, beam_indices])

    def select(
        self, batch_indices: Int[Tensor, " batch"], beam_indices: Int[Tensor, " row"]
    ) -> "RecurrentState":
        """Return the state of some batch items, whose beams continue the given ones."""
        return RecurrentState(self.hidden[:, beam_indices], self.source.select(batch_indices))
