"""Models made of encoder and decoder stacks: the Transformer, a language model, a classifier."""

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import linear

from regard.attention import BeamTree, KVCache
from regard.data import check_token_ids
from regard.masks import padding
from regard.models.bucketing import length_buckets
from regard.models.decoder_state import EncodedSource, TransformerState, token_mask
from regard.models.encoder_decoder import Decoder, Encoder
from regard.models.layers import Embedding
from regard.models.protocols import AttentionWeights, Seq2SeqModel


class Transformer(Seq2SeqModel):
    """Encoder-decoder Transformer (Vaswani et al. 2017, figure 1).

    Args:
        source_embedding: of the source tokens; may be the target's module, to share it.
        target_embedding: of the target tokens.
        encoder: stack of self-attention layers.
        decoder: stack of layers with cross-attention.
        tie_output: use the target embedding as output projection.

    Example:
        >>> import torch
        >>> from regard.config import ModelConfig
        >>> from regard.models import build
        >>> model = build(ModelConfig(width=32, layers=1, heads=2), vocab_size=100)
        >>> source, lengths = torch.tensor([[4, 5, 6], [7, 8, 0]]), torch.tensor([3, 2])
        >>> model.logits(model(source, lengths, torch.tensor([[1, 9], [1, 8]]))).shape
        torch.Size([2, 2, 100])
    """

    def __init__(
        self,
        source_embedding: Embedding,
        target_embedding: Embedding,
        encoder: Encoder,
        decoder: Decoder,
        tie_output: bool = True,
    ) -> None:
        super().__init__()
        self.source_embedding, self.target_embedding = source_embedding, target_embedding
        self.encoder, self.decoder = encoder, decoder
        self.output_projection = _output_projection(target_embedding, tie_output)

    @property
    def output_weight(self) -> Float[Tensor, "token width"]:
        """Weight of the output projection: one vector per token of the target vocabulary."""
        projection = self.output_projection
        return self.target_embedding.weight if projection is None else projection.weight

    @property
    def max_length(self) -> int | None:
        """Number of tokens that have a position on both sides; None if unlimited."""
        sides = (self.source_embedding.max_length, self.target_embedding.max_length)
        return min((length for length in sides if length is not None), default=None)

    def encode(
        self, source: Int[Tensor, "batch position"], lengths: Int[Tensor, " batch"]
    ) -> EncodedSource:
        """Encode the source and project keys and values for every decoder layer, once."""
        embedded, mask = self._embed_source(source, lengths)
        return self.decoder.project_source(self.encoder(embedded, padding(mask)), mask)

    def encode_bucketed(
        self, source: Int[Tensor, "batch position"], lengths: Int[Tensor, " batch"]
    ) -> EncodedSource:
        """Encode items of similar length together: the same result with less padding read.

        It is padded to the longest item, even if `source` has more padding. On a GPU everything
        is encoded at once: it is better kept busy with padding than with one bucket after another.
        """
        check_token_ids("source", source, self.source_embedding.vocab_size, lengths)
        buckets = length_buckets(lengths) if source.device.type == "cpu" else []
        if len(buckets) < 2:
            return self.encode(source, lengths)
        parts = [
            self.encode(source[rows, : int(lengths[rows[0]])], lengths[rows]) for rows in buckets
        ]
        return EncodedSource.concat(parts, buckets)

    def decode(
        self, target: Int[Tensor, "batch position"], encoded: EncodedSource
    ) -> Float[Tensor, "batch position width"]:
        """Decode a whole target at once (teacher forcing), each position seeing its past only."""
        return self.decoder(self._embed_target(target), encoded)  # type: ignore[no-any-return]

    def forward_with_weights(
        self, source: Tensor, lengths: Tensor, target: Tensor
    ) -> tuple[Tensor, AttentionWeights]:
        """Return what `forward` returns and the attention weights of every layer and head."""
        embedded, mask = self._embed_source(source, lengths)
        states, in_encoder = self.encoder(embedded, padding(mask), return_weights=True)
        encoded = self.decoder.project_source(states, mask)
        states, in_decoder = self.decoder(self._embed_target(target), encoded, return_weights=True)
        return states, in_decoder._replace(encoder=in_encoder.encoder)

    def init_state(self, encoded: EncodedSource) -> TransformerState:
        """Return the state before the first step, with one beam per batch item."""
        return self.decoder.init_state(encoded)

    def step(
        self, tokens: Int[Tensor, "batch beam"], state: TransformerState
    ) -> tuple[Float[Tensor, "batch beam width"], TransformerState]:
        """Decode one more token of every beam; return the decoder's outputs and the new state."""
        return self.decoder.step(self.target_embedding.at(tokens, state.steps), state)

    def _embed_source(
        self, source: Tensor, lengths: Tensor
    ) -> tuple[Tensor, Bool[Tensor, "batch position"]]:
        check_token_ids("source", source, self.source_embedding.vocab_size, lengths)
        return self.source_embedding(source), token_mask(source, lengths)

    def _embed_target(self, target: Tensor) -> Tensor:
        check_token_ids("target", target, self.target_embedding.vocab_size)
        return self.target_embedding(target)  # type: ignore[no-any-return]


class LanguageModel(nn.Module):
    """Decoder-only Transformer: it predicts the next token of a text.

    Args:
        embedding: of the tokens.
        decoder: stack of layers without cross-attention.
        tie_output: use the embedding as output projection.

    Example:
        >>> import torch
        >>> from regard.config import ModelConfig
        >>> from regard.models import build_language_model
        >>> model = build_language_model(ModelConfig(width=32, layers=1, heads=2), vocab_size=100)
        >>> model.logits(model(torch.tensor([[1, 4, 5]]))).shape
        torch.Size([1, 3, 100])
    """

    def __init__(self, embedding: Embedding, decoder: Decoder, tie_output: bool = True) -> None:
        super().__init__()
        self.embedding, self.decoder = embedding, decoder
        self.output_projection = _output_projection(embedding, tie_output)

    @property
    def max_length(self) -> int | None:
        """Number of tokens that have a position; None if unlimited."""
        return self.embedding.max_length

    def forward(
        self, tokens: Int[Tensor, "batch position"], *, return_weights: bool = False
    ) -> Tensor | tuple[Tensor, AttentionWeights]:
        """Decode a whole text at once, each position seeing its past only.

        Args:
            tokens: token ids.
            return_weights: return `(states, AttentionWeights)` instead of the states alone.
        """
        check_token_ids("tokens", tokens, self.embedding.vocab_size)
        return self.decoder(self.embedding(tokens), return_weights=return_weights)  # type: ignore[no-any-return]

    def init_state(self, batch_size: int = 1) -> TransformerState:
        """Return the state before the first step, with one beam per batch item."""
        caches = tuple(KVCache() for _ in self.decoder.layers)
        return TransformerState(caches, BeamTree.begin(batch_size, self.embedding.weight.device))

    def step(
        self, tokens: Int[Tensor, "batch beam"], state: TransformerState
    ) -> tuple[Float[Tensor, "batch beam width"], TransformerState]:
        """Decode one more token of every beam; return the decoder's outputs and the new state."""
        return self.decoder.step(self.embedding.at(tokens, state.steps), state)

    def logits(self, states: Float[Tensor, "*batch width"]) -> Float[Tensor, "*batch token"]:
        """Return the logits of the next token, one per token of the vocabulary."""
        projection = self.output_projection
        return linear(states, self.embedding.weight if projection is None else projection.weight)


class Classifier(nn.Module):
    """Encoder-only Transformer: the mean of its states over a text, and a linear layer.

    Args:
        embedding: of the tokens.
        encoder: stack of self-attention layers.
        num_classes: number of logits.

    Example:
        >>> import torch
        >>> from regard.config import ModelConfig
        >>> from regard.models import build_classifier
        >>> config = ModelConfig(width=32, layers=1, heads=2)
        >>> model = build_classifier(config, vocab_size=100, num_classes=3)
        >>> model(torch.tensor([[4, 5, 6], [7, 8, 0]]), torch.tensor([3, 2])).shape
        torch.Size([2, 3])
    """

    def __init__(self, embedding: Embedding, encoder: Encoder, num_classes: int) -> None:
        super().__init__()
        self.embedding, self.encoder = embedding, encoder
        self.output_projection = nn.Linear(embedding.width, num_classes)

    def forward(
        self,
        tokens: Int[Tensor, "batch position"],
        lengths: Int[Tensor, " batch"],
        *,
        return_weights: bool = False,
    ) -> Tensor | tuple[Tensor, AttentionWeights]:
        """Return the logits of every class (batch, class).

        Args:
            tokens: token ids, padded.
            lengths: number of tokens of each text.
            return_weights: return `(logits, AttentionWeights)` instead of the logits alone.
        """
        check_token_ids("tokens", tokens, self.embedding.vocab_size, lengths)
        mask = token_mask(tokens, lengths)
        output = self.encoder(self.embedding(tokens), padding(mask), return_weights=return_weights)
        states, weights = output if return_weights else (output, None)
        mean = states.masked_fill(~mask[..., None], 0.0).sum(dim=1) / lengths[:, None]
        logits: Tensor = self.output_projection(mean)
        return logits if weights is None else (logits, weights)


def _output_projection(embedding: Embedding, tie_output: bool) -> nn.Linear | None:
    """Return the output projection; None if the embedding serves as one."""
    return None if tie_output else nn.Linear(embedding.width, embedding.vocab_size, bias=False)
