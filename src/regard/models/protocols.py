"""Contracts of models: what decoding, training and tracing may ask of them."""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple, Protocol, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import linear

from regard.models.decoder_state import EncodedSource


class AttentionWeights(NamedTuple):
    """Attention weights of one forward pass: a tensor (batch, head, query, key) per layer.

    A kind of attention that a model does not have is an empty tuple.
    """

    encoder: tuple[Tensor, ...] = ()
    decoder: tuple[Tensor, ...] = ()
    cross: tuple[Tensor, ...] = ()


@runtime_checkable
class DecoderState(Protocol):
    """State of incremental decoding, as an immutable value: caches, hidden states, the source.

    A state holds the same number of beams for every batch item. Beam indices count the beams of
    all batch items: beam 2 of batch item 1 of a search with 5 beams has the index 7.
    """

    @property
    def batch_size(self) -> int:
        """Number of batch items."""
        ...

    def reorder(self, beam_indices: Int[Tensor, " row"]) -> "DecoderState":
        """Return the state in which each beam continues the given one, of the same batch item."""
        ...

    def select(
        self, batch_indices: Int[Tensor, " batch"], beam_indices: Int[Tensor, " row"]
    ) -> "DecoderState":
        """Return the state of some batch items, whose beams continue the given ones."""
        ...


@runtime_checkable
class DecoderModel(Protocol):
    """Model that can be searched: it decodes one step at a time and scores the next token."""

    def step(
        self, tokens: Int[Tensor, "batch beam"], state: Any
    ) -> tuple[Float[Tensor, "batch beam width"], Any]:
        """Decode one more token of every beam; return the decoder's outputs and the new state."""
        ...

    def logits(self, states: Tensor) -> Tensor:
        """Return the logits of the next token, one per token of the vocabulary."""
        ...


class Seq2SeqModel(nn.Module, ABC):
    """Base class of encoder-decoder models.

    A subclass implements `encode`, `decode`, `init_state`, `step`, `forward_with_weights` and
    `output_weight`; everything else has a default here. Subclasses are `Transformer` and
    `RecurrentModel`.
    """

    @property
    @abstractmethod
    def output_weight(self) -> Float[Tensor, "token width"]:
        """Weight of the output projection: one vector per token of the target vocabulary."""

    @property
    def max_length(self) -> int | None:
        """Number of tokens that either side may have, BOS included; None if unlimited."""
        return None

    @abstractmethod
    def encode(
        self, source: Int[Tensor, "batch position"], lengths: Int[Tensor, " batch"]
    ) -> EncodedSource:
        """Encode the source and project keys and values for the decoder, once."""

    def encode_bucketed(
        self, source: Int[Tensor, "batch position"], lengths: Int[Tensor, " batch"]
    ) -> EncodedSource:
        """Encode a batch whose lengths differ; override it where buckets of similar length pay."""
        return self.encode(source, lengths)

    @abstractmethod
    def decode(
        self, target: Int[Tensor, "batch position"], encoded: EncodedSource
    ) -> Float[Tensor, "batch position width"]:
        """Decode a whole target at once (teacher forcing), each position seeing its past only."""

    @abstractmethod
    def init_state(self, encoded: EncodedSource) -> Any:
        """Return the `DecoderState` before the first step, with one beam per batch item."""

    @abstractmethod
    def step(
        self, tokens: Int[Tensor, "batch beam"], state: Any
    ) -> tuple[Float[Tensor, "batch beam width"], Any]:
        """Decode one more token of every beam; return the decoder's outputs and the new state."""

    def logits(self, states: Float[Tensor, "*batch width"]) -> Float[Tensor, "*batch token"]:
        """Return the logits of the next token, one per token of the vocabulary."""
        return linear(states, self.output_weight)

    def forward(self, source: Tensor, lengths: Tensor, target: Tensor) -> Tensor:
        """Encode the source and decode the target with teacher forcing; return all outputs."""
        return self.decode(target, self.encode(source, lengths))

    @abstractmethod
    def forward_with_weights(
        self, source: Tensor, lengths: Tensor, target: Tensor
    ) -> tuple[Tensor, AttentionWeights]:
        """Return what `forward` returns and the attention weights of every layer and head."""
