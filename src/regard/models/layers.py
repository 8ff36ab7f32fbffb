"""Building blocks of a Transformer: embedding, feed-forward, residual, dropout, and the layer."""

from collections.abc import Callable
from math import ceil
from typing import Any, Literal, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.autograd import Function
from torch.nn.functional import embedding, gelu, relu

from regard._support.arguments import check_dropout, check_positive
from regard._support.linear import Linear
from regard._support.text import format_settings
from regard._support.torch_modes import in_functorch
from regard.attention import BeamTree, KeyValues, KVCache, MultiHeadAttention
from regard.errors import RegardError, unknown_name
from regard.masks import Mask
from regard.positions import Learned

DROPOUT_LEVELS = 256  # one random byte per element: rates are rounded to 1/256, the scale is exact

States = Float[Tensor, "*batch width"]
Activation = Literal["relu", "gelu"]
ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {"relu": relu, "gelu": gelu}


class Embedding(nn.Module):
    """Token embedding times √width, plus a position embedding if there is one.

    Args:
        vocab_size: number of tokens.
        width: of the embedding vectors.
        positions: module that adds positions, `Sinusoidal` or `Learned`.
        dropout: rate, applied to the sum.

    Raises:
        RegardError: if a size is below 1, or `dropout` is not a probability.

    Example:
        >>> embedding = Embedding(100, width=12)
        >>> embedding(torch.tensor([[4, 5, 6]])).shape
        torch.Size([1, 3, 12])
    """

    def __init__(
        self,
        vocab_size: int,
        width: int,
        positions: nn.Module | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        check_positive(vocab_size=vocab_size, width=width)
        check_dropout(dropout)
        self.vocab_size, self.width = vocab_size, width
        self.weight = nn.Parameter(torch.empty(vocab_size, width))
        nn.init.normal_(self.weight, std=width**-0.5)
        self.positions = positions
        self.dropout = dropout

    @property
    def max_length(self) -> int | None:
        """Number of tokens that have a position; None if unlimited."""
        return self.positions.max_length if isinstance(self.positions, Learned) else None

    def forward(
        self, tokens: Int[Tensor, "batch position"], offset: int = 0
    ) -> Float[Tensor, "batch position width"]:
        """Embed tokens, the first of which has the position `offset`."""
        states = embedding(tokens, self.weight) * self.width**0.5
        if self.positions is not None:
            states = self.positions(states, offset)
        return dropout(states, self.dropout, self.training)

    def extra_repr(self) -> str:
        """Show the size, and the dropout."""
        settings = {"vocab_size": self.vocab_size, "width": self.width, "dropout": self.dropout}
        return format_settings(settings)

    def at(
        self, tokens: Int[Tensor, "batch beam"], position: int
    ) -> Float[Tensor, "batch beam width"]:
        """Embed one token of every beam, all at the same position."""
        return self(tokens.flatten()[:, None], position).view(*tokens.shape, self.width)  # type: ignore[no-any-return]


class FeedForward(nn.Module):
    """Position-wise feed-forward network (Vaswani et al. 2017, section 3.3).

    Args:
        width: of the inputs and outputs.
        ffn_width: between the two linear layers.
        dropout: rate, applied after the activation.
        activation: "relu" or "gelu".

    Raises:
        RegardError: if a width is below 1, `dropout` is not a probability, or there is no such
            activation.

    Example:
        >>> FeedForward(width=12, ffn_width=48, activation="gelu")(torch.randn(2, 5, 12)).shape
        torch.Size([2, 5, 12])
    """

    def __init__(
        self,
        width: int,
        ffn_width: int,
        dropout: float = 0.0,
        activation: Activation = "relu",
    ) -> None:
        super().__init__()
        check_positive(width=width, ffn_width=ffn_width)
        check_dropout(dropout)
        if activation not in ACTIVATIONS:
            raise unknown_name("activation", activation, ACTIVATIONS)
        self.up = Linear(width, ffn_width)
        self.down = Linear(ffn_width, width)
        self.dropout = dropout
        self.activation: Activation = activation
        for layer in (self.up, self.down):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, states: States) -> States:
        """Transform each position by itself."""
        hidden = ACTIVATIONS[self.activation](self.up(states))
        hidden = dropout(hidden, self.dropout, self.training)
        return self.down(hidden)  # type: ignore[no-any-return]

    def extra_repr(self) -> str:
        """Show the activation and the dropout."""
        return format_settings({"activation": self.activation, "dropout": self.dropout})


class Residual(nn.Module):
    """Residual connection with layer norm, after the sum (post-norm) or before the sublayer.

    post-norm: norm(x + sublayer(x)), as in the paper; pre-norm: x + sublayer(norm(x)), which
    trains more stably when deep (Xiong et al. 2020).

    Args:
        width: of the states.
        dropout: rate, applied to the sublayer's output.
        pre_norm: whether the norm comes before the sublayer.

    Raises:
        RegardError: if `width` is below 1, or `dropout` is not a probability.

    Example:
        >>> residual = Residual(12, pre_norm=True)
        >>> residual(torch.randn(2, 5, 12), nn.Linear(12, 12)).shape
        torch.Size([2, 5, 12])
    """

    def __init__(self, width: int, dropout: float = 0.0, pre_norm: bool = False) -> None:
        super().__init__()
        check_positive(width=width)
        check_dropout(dropout)
        self.norm = nn.LayerNorm(width)
        self.dropout = dropout
        self.pre_norm = pre_norm

    def forward(self, states: States, sublayer: Callable[[Tensor], Tensor]) -> States:
        """Apply a sublayer and add its output to the states."""
        return self.add(states, sublayer(self.sublayer_input(states)))

    def sublayer_input(self, states: States) -> States:
        """Return what the sublayer reads: the states, normalised if the norm comes first."""
        return self.norm(states) if self.pre_norm else states

    def add(self, states: States, update: States) -> States:
        """Add the sublayer's output to the states, and normalise if the norm comes last."""
        total = states + dropout(update, self.dropout, self.training)
        return total if self.pre_norm else self.norm(total)

    def extra_repr(self) -> str:
        """Show where the norm is, and the dropout."""
        return format_settings({"pre_norm": self.pre_norm, "dropout": self.dropout})


class LayerOutput(NamedTuple):
    """Output of a `TransformerLayer`; weights are None unless they were asked for."""

    states: Tensor
    weights: Tensor | None = None  # of self-attention
    cross_weights: Tensor | None = None


class TransformerLayer(nn.Module):
    """Self-attention, cross-attention if there is any, and feed-forward, each with a residual.

    Args:
        attention: self-attention, ready-made, so that any variant fits.
        feed_forward: the position-wise network.
        cross: attention to the encoded source; None for an encoder or a language model.
        dropout: rate of the residuals.
        pre_norm: whether layer norm comes before the sublayers.

    Raises:
        RegardError: if `dropout` is not a probability.

    Example:
        >>> layer = TransformerLayer(MultiHeadAttention(12, heads=3), FeedForward(12, 48))
        >>> layer(torch.randn(2, 5, 12)).states.shape
        torch.Size([2, 5, 12])
    """

    def __init__(
        self,
        attention: MultiHeadAttention,
        feed_forward: FeedForward,
        cross: MultiHeadAttention | None = None,
        *,
        dropout: float = 0.0,
        pre_norm: bool = False,
    ) -> None:
        super().__init__()
        width = attention.query.in_features
        self.attention = attention
        self.cross = cross
        self.feed_forward = feed_forward
        self.attention_residual = Residual(width, dropout, pre_norm)
        self.cross_residual = None if cross is None else Residual(width, dropout, pre_norm)
        self.feed_forward_residual = Residual(width, dropout, pre_norm)

    def forward(
        self,
        states: Tensor,
        mask: Mask | None = None,
        source: KeyValues | None = None,
        source_mask: Mask | None = None,
        *,
        return_weights: bool = False,
    ) -> LayerOutput:
        """Transform all positions at once."""
        inputs = self.attention_residual.sublayer_input(states)
        context, weights = _attend(self.attention, inputs, None, mask, return_weights)
        states = self.attention_residual.add(states, context)
        states, cross_weights = self._attend_source(states, source, source_mask, return_weights)
        return LayerOutput(self._feed_forward(states), weights, cross_weights)

    def step(
        self,
        states: Float[Tensor, "batch beam width"],
        cache: KVCache,
        tree: BeamTree,
        source: KeyValues | None = None,
        source_mask: Mask | None = None,
    ) -> tuple[Tensor, KVCache]:
        """Transform one new position of every beam; return the extended cache, too.

        The tree includes this step already. The beams of a batch item attend to one copy of its
        source.
        """
        inputs = self.attention_residual.sublayer_input(states)
        context, cache = self.attention.attend_beams(inputs, cache, tree)
        states = self.attention_residual.add(states, context)
        states, _ = self._attend_source(states, source, source_mask, return_weights=False)
        return self._feed_forward(states), cache

    def _attend_source(
        self,
        states: Tensor,
        source: KeyValues | None,
        source_mask: Mask | None,
        return_weights: bool,
    ) -> tuple[Tensor, Tensor | None]:
        if self.cross is None or self.cross_residual is None:
            return states, None
        if source is None:
            raise RegardError(
                "a layer with cross-attention needs a source, but source is None; pass the "
                "encoded source, or build the layer without cross="
            )
        inputs = self.cross_residual.sublayer_input(states)
        context, weights = _attend(self.cross, inputs, source, source_mask, return_weights)
        return self.cross_residual.add(states, context), weights

    def _feed_forward(self, states: Tensor) -> Tensor:
        return self.feed_forward_residual(states, self.feed_forward)  # type: ignore[no-any-return]


def _attend(
    attention: MultiHeadAttention,
    queries: Tensor,
    source: KeyValues | None,
    mask: Mask | None,
    return_weights: bool,
) -> tuple[Tensor, Tensor | None]:
    """Attend; return the context, and the attention weights if they are asked for."""
    if return_weights:
        return attention.look(queries, source, mask=mask)
    return attention(queries, source, mask=mask), None


def dropout(states: Tensor, rate: float, training: bool) -> Tensor:
    """Apply dropout drawn from random bytes: several times faster on a CPU than Bernoulli draws.

    The rate is rounded to 1/256 (at least 1/256), and the scale of what stays is exact for the
    rounded rate. On other devices and in compiled code torch's own dropout is fused, and under
    transforms of `torch.func` only that works: these use it.
    """
    if not training or rate == 0.0:
        return states
    needs_torch = torch.compiler.is_compiling() or in_functorch()
    if needs_torch or states.device.type != "cpu":
        return torch.nn.functional.dropout(states, rate, training)
    levels = min(max(round(rate * DROPOUT_LEVELS), 1), DROPOUT_LEVELS)
    return _ByteDropout.apply(states, levels)  # type: ignore[no-any-return, no-untyped-call]


class _ByteDropout(Function):
    """Multiply by 0 or by the scale; the mask is saved as one byte per element."""

    @staticmethod
    def forward(ctx: Any, states: Tensor, levels: int) -> Tensor:
        random = torch.empty(ceil(states.numel() / 8), dtype=torch.int64, device=states.device)
        mask = (
            random.random_(-(2**63), None).view(torch.uint8)[: states.numel()].view(states.shape)
            >= levels
        )
        ctx.save_for_backward(mask)
        ctx.scale = DROPOUT_LEVELS / (DROPOUT_LEVELS - levels) if levels < DROPOUT_LEVELS else 0.0
        return (states * mask).mul_(ctx.scale)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (mask,) = ctx.saved_tensors
        return (gradient * mask).mul_(ctx.scale), None
