"""Encoder and decoder: stacks of Transformer layers."""

from collections.abc import Sequence

from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.attention import BeamTree, KeyValues, KVCache
from regard.errors import RegardError
from regard.masks import Mask, causal, padding
from regard.models.decoder_state import EncodedSource, TransformerState
from regard.models.layers import TransformerLayer
from regard.models.protocols import AttentionWeights


class Encoder(nn.Module):
    """Stack of self-attention layers in which every position sees all others.

    Args:
        layers: the layers, without cross-attention.
        norm: applied to the output, as pre-norm layers need; None for post-norm ones.

    Example:
        >>> import torch
        >>> from regard.attention import MultiHeadAttention
        >>> from regard.models import FeedForward
        >>> layers = [
        ...     TransformerLayer(MultiHeadAttention(12, heads=3), FeedForward(12, 48)) for _ in "ab"
        ... ]
        >>> states, weights = Encoder(layers)(torch.randn(2, 5, 12), return_weights=True)
        >>> states.shape, weights.encoder[0].shape
        (torch.Size([2, 5, 12]), torch.Size([2, 3, 5, 5]))
    """

    def __init__(self, layers: Sequence[TransformerLayer], norm: nn.Module | None = None) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.norm = norm

    def forward(
        self, states: Tensor, mask: Mask | None = None, *, return_weights: bool = False
    ) -> Tensor | tuple[Tensor, AttentionWeights]:
        """Encode states (batch, position, width), all positions at once.

        Args:
            states: the embedded source.
            mask: which positions may be attended to.
            return_weights: return `(states, AttentionWeights)` instead of the states alone.
        """
        weights = []
        for layer in self.layers:
            states, layer_weights, _ = layer(states, mask, return_weights=return_weights)
            weights.append(layer_weights)
        states = states if self.norm is None else self.norm(states)
        return (states, AttentionWeights(encoder=tuple(weights))) if return_weights else states


class Decoder(nn.Module):
    """Stack of layers with causal self-attention and, if they have it, cross-attention.

    Args:
        layers: the layers; some or all of them with cross-attention, or none for a language model.
        norm: applied to the output, as pre-norm layers need; None for post-norm ones.
    """

    def __init__(self, layers: Sequence[TransformerLayer], norm: nn.Module | None = None) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.norm = norm

    def project_source(
        self, states: Float[Tensor, "batch key width"], mask: Bool[Tensor, "batch key"]
    ) -> EncodedSource:
        """Project the encoder's output to keys and values, once for every layer."""
        crosses = (layer.cross for layer in self.layers if isinstance(layer, TransformerLayer))
        return EncodedSource(tuple(cross.project_kv(states) for cross in crosses if cross), mask)

    def forward(
        self,
        states: Tensor,
        source: EncodedSource | None = None,
        *,
        return_weights: bool = False,
    ) -> Tensor | tuple[Tensor, AttentionWeights]:
        """Decode states (batch, position, width), all positions at once, none seeing the future.

        Args:
            states: the embedded target.
            source: what cross-attention attends to.
            return_weights: return `(states, AttentionWeights)` instead of the states alone.
        """
        weights, cross_weights, mask = [], [], _source_mask(source)
        for layer, key_values in zip(self.layers, self._key_values(source), strict=True):
            states, own, cross = layer(
                states, causal(), key_values, mask, return_weights=return_weights
            )
            weights.append(own)
            cross_weights += [] if cross is None else [cross]
        states = states if self.norm is None else self.norm(states)
        if not return_weights:
            return states
        return states, AttentionWeights(decoder=tuple(weights), cross=tuple(cross_weights))

    def init_state(self, source: EncodedSource) -> TransformerState:
        """Return the state before the first step, with one beam per batch item."""
        caches = tuple(KVCache() for _ in self.layers)
        tree = BeamTree.begin(source.batch_size, source.mask.device)
        return TransformerState(caches, tree, source.contiguous())

    def step(
        self, states: Float[Tensor, "batch beam width"], state: TransformerState
    ) -> tuple[Float[Tensor, "batch beam width"], TransformerState]:
        """Decode one new position of every beam."""
        if len(states) != state.batch_size:
            raise RegardError(
                f"tokens must have a row for each of {state.batch_size} batch items, but there "
                f"are {len(states)} rows"
            )
        tree = state.tree.grow(states.shape[1])
        caches, mask = [], _source_mask(state.source)
        for layer, cache, key_values in zip(
            self.layers, state.caches, self._key_values(state.source), strict=True
        ):
            assert isinstance(layer, TransformerLayer)
            states, extended = layer.step(states, cache, tree, key_values, mask)
            caches.append(extended)
        states = states if self.norm is None else self.norm(states)
        return states, TransformerState(tuple(caches), tree, state.source)

    def _key_values(self, source: EncodedSource | None) -> list[KeyValues | None]:
        """Return the keys and values of each layer; None for layers without cross-attention."""
        key_values = iter(() if source is None else source.key_values)
        return [None if layer.cross is None else next(key_values, None) for layer in self.layers]


def _source_mask(source: EncodedSource | None) -> Mask | None:
    return None if source is None else padding(source.mask)
