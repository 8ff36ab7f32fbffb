"""Recurrent encoder-decoder: GRUs, with attention of the decoder to the encoder's states.

With the additive score it is Bahdanau's model (2015); with dot or bilinear, Luong's (2015).
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from regard.attention import KeyValues, attend, look, make_score
from regard.data import check_token_ids
from regard.errors import RegardError
from regard.masks import padding
from regard.models.decoder_state import EncodedSource, RecurrentState, token_mask
from regard.models.layers import Embedding, dropout
from regard.models.protocols import AttentionWeights, Seq2SeqModel


class RecurrentModel(Seq2SeqModel):
    """Bidirectional GRU encoder and GRU decoder that attends to it before each step.

    For step t with the decoder's state s, the embedded input y and the encoder's states h::

        context_t = attend(s_{t-1}, h)
        s_t       = GRU([y_t; context_t], s_{t-1})
        output_t  = tanh(W [s_t; context_t; y_t])

    Args:
        source_embedding: of the source tokens; may be the target's module, to share it.
        target_embedding: of the target tokens, without positions.
        layers: of the encoder and of the decoder.
        score: attention score, such as "additive", "dot" or "bilinear".
        use_attention: False lets the decoder see the encoder's last state only.
        dropout: rate, between layers and on the output.
        tie_output: use the target embedding as output projection.

    Example:
        >>> from regard.config import ModelConfig
        >>> from regard.models import build
        >>> config = ModelConfig(kind="recurrent", width=32, layers=1, score="additive")
        >>> model = build(config, vocab_size=100)
        >>> source, lengths = torch.tensor([[4, 5, 6]]), torch.tensor([3])
        >>> states, weights = model.forward_with_weights(source, lengths, torch.tensor([[1, 9]]))
        >>> weights.cross[0].shape  # (batch, head, query, key)
        torch.Size([1, 1, 2, 3])
    """

    def __init__(
        self,
        source_embedding: Embedding,
        target_embedding: Embedding,
        *,
        layers: int = 1,
        score: str = "additive",
        use_attention: bool = True,
        dropout: float = 0.0,
        tie_output: bool = True,
    ) -> None:
        super().__init__()
        if target_embedding.positions is not None:
            raise RegardError(
                "target_embedding must have no positions, since a recurrent decoder's state "
                f"counts steps itself, but it has {type(target_embedding.positions).__name__}"
            )
        width, between = target_embedding.width, dropout if layers > 1 else 0.0
        self.source_embedding, self.target_embedding = source_embedding, target_embedding
        self.encoder = nn.GRU(
            source_embedding.width,
            width,
            layers,
            batch_first=True,
            dropout=between,
            bidirectional=True,
        )
        self.init_projection = nn.Linear(width, width)
        self.score = make_score(score, (width, 2 * width))
        # a score that compares vectors of one width needs both directions projected to it
        needs_projection = self.score.needs_equal_widths
        self.key_projection = nn.Linear(2 * width, width, bias=False) if needs_projection else None
        self.decoder = nn.GRU(3 * width, width, layers, batch_first=True, dropout=between)
        self.pre_output = nn.Linear(4 * width, width)
        self.output_projection = (
            None if tie_output else nn.Linear(width, target_embedding.vocab_size, bias=False)
        )
        self.use_attention = use_attention
        self.dropout = dropout

    @property
    def output_weight(self) -> Float[Tensor, "token width"]:
        """Weight of the output projection: one vector per token of the target vocabulary."""
        projection = self.output_projection
        return self.target_embedding.weight if projection is None else projection.weight

    def encode(
        self, source: Int[Tensor, "batch position"], lengths: Int[Tensor, " batch"]
    ) -> EncodedSource:
        """Encode the source in both directions and project its keys, once."""
        check_token_ids("source", source, self.source_embedding.vocab_size, lengths)
        packed = pack_padded_sequence(
            self.source_embedding(source), lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        outputs, last = self.encoder(packed)
        states, _ = pad_packed_sequence(outputs, batch_first=True, total_length=source.shape[1])
        # the decoder starts from the backward direction, which has just read the first word
        hidden = torch.tanh(self.init_projection(last[1::2]))
        key_values = KeyValues(self._project_keys(states), states)
        return EncodedSource((key_values,), token_mask(source, lengths), hidden)

    def decode(
        self, target: Int[Tensor, "batch position"], encoded: EncodedSource
    ) -> Float[Tensor, "batch position width"]:
        """Decode a whole target (teacher forcing), token by token: each step needs the last."""
        return self._decode_all(target, encoded, return_weights=False)[0]

    def forward_with_weights(
        self, source: Tensor, lengths: Tensor, target: Tensor
    ) -> tuple[Tensor, AttentionWeights]:
        """Return what `forward` returns and the weights of the cross-attention, one head."""
        encoded = self.encode(source, lengths)
        states, weights = self._decode_all(target, encoded, return_weights=True)
        return states, AttentionWeights(cross=(weights[:, None],))

    def init_state(self, encoded: EncodedSource) -> RecurrentState:
        """Return the state before the first step, with one beam per batch item."""
        assert encoded.initial_hidden is not None
        return RecurrentState(encoded.initial_hidden, encoded)

    def step(
        self, tokens: Int[Tensor, "batch beam"], state: RecurrentState
    ) -> tuple[Float[Tensor, "batch beam width"], RecurrentState]:
        """Decode one more token of every beam; return the decoder's outputs and the new state."""
        embedded = self.target_embedding(tokens)
        states, context, _, state = self._decode_step(embedded, state, return_weights=False)
        return self._project_output(states, context, embedded), state

    def _decode_all(
        self, target: Tensor, encoded: EncodedSource, return_weights: bool
    ) -> tuple[Tensor, Float[Tensor, "batch position key"]]:
        """Decode a whole target; return the outputs and the attention weights, if asked for."""
        check_token_ids("target", target, self.target_embedding.vocab_size)
        embedded: Tensor = self.target_embedding(target)
        no_weights = embedded.new_zeros(len(target), 0, encoded.mask.shape[1])
        if not target.shape[1]:
            return torch.zeros_like(embedded), no_weights
        state, steps = self.init_state(encoded), []
        for token in embedded.split(1, dim=1):
            *step, state = self._decode_step(token, state, return_weights)
            steps.append(step)
        states, contexts, weights = zip(*steps, strict=True)
        # the output is not fed back, so it is projected for all steps at once
        outputs = self._project_output(
            torch.cat(states, dim=1), torch.cat(contexts, dim=1), embedded
        )
        return outputs, torch.cat(weights, dim=1) if return_weights else no_weights

    def _decode_step(
        self,
        embedded: Float[Tensor, "batch beam width"],
        state: RecurrentState,
        return_weights: bool,
    ) -> tuple[Tensor, Tensor, Tensor | None, RecurrentState]:
        """Attend from the last hidden state, then feed one embedded token of every beam."""
        beams = embedded.shape[:2]
        if state.hidden.shape[1] != beams.numel():
            raise RegardError(
                f"tokens must be one for each of {state.hidden.shape[1]} beams, but their shape "
                f"is {tuple(beams)}"
            )
        queries = state.hidden[-1].view(*beams, -1)
        context, weights = self._attend(queries, state.source, return_weights)
        inputs = torch.cat([embedded, context], dim=-1).flatten(0, 1).unsqueeze(1)
        states, hidden = self.decoder(inputs, state.hidden.contiguous())
        return states.view(*beams, -1), context, weights, state._replace(hidden=hidden)

    def _project_output(self, states: Tensor, context: Tensor, embedded: Tensor) -> Tensor:
        output = torch.tanh(self.pre_output(torch.cat([states, context, embedded], dim=-1)))
        return dropout(output, self.dropout, self.training)

    def _project_keys(self, states: Tensor) -> Tensor:
        if self.key_projection is not None:
            return self.key_projection(states)  # type: ignore[no-any-return]
        return self.score.project_keys(states)

    def _attend(
        self, queries: Tensor, source: EncodedSource, return_weights: bool
    ) -> tuple[Tensor, Tensor | None]:
        """Attend to the source; return the context, and the weights if they are asked for."""
        queries = self.score.project_queries(queries)
        (key_values,) = source.key_values
        mask = padding(source.mask if self.use_attention else _last_token(source.mask))
        if return_weights:
            return look(queries, *key_values, score=self.score.pairwise, mask=mask)
        return attend(queries, *key_values, score=self.score.pairwise, mask=mask), None


def _last_token(mask: Bool[Tensor, "batch key"]) -> Bool[Tensor, "batch key"]:
    """Mask all but the last token: the only summary that a model without attention has."""
    return mask & (mask.cumsum(dim=1) == mask.sum(dim=1, keepdim=True))
