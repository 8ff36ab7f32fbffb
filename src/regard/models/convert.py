"""Weights of torch's own Transformer, taken over."""

from copy import deepcopy
from typing import Any

from torch import nn

from regard.attention import MultiHeadAttention
from regard.models.decoder import Decoder
from regard.models.encoder import Encoder
from regard.models.layer import Layer
from regard.models.layers import ACTIVATIONS, FeedForward


def from_torch(theirs: nn.Transformer) -> tuple[Encoder, Decoder]:
    """Make the encoder and the decoder that give what torch's give, batch first."""
    encoder, decoder = theirs.encoder, theirs.decoder
    return (
        Encoder([_layer(layer) for layer in encoder.layers], deepcopy(encoder.norm)),
        Decoder([_layer(layer) for layer in decoder.layers], deepcopy(decoder.norm)),
    )


# torch does not say which attributes its layers have, so they are taken as they come
def _layer(theirs: Any) -> Layer:
    cross = getattr(theirs, "multihead_attn", None)
    ours = Layer(
        MultiHeadAttention.from_torch(theirs.self_attn),
        _feed_forward(theirs),
        None if cross is None else MultiHeadAttention.from_torch(cross),
        dropout=theirs.dropout1.p,
        pre_norm=theirs.norm_first,
    )
    around = [ours.around_attention, ours.around_cross, ours.around_feed_forward]
    norms = [theirs.norm1, theirs.norm2, getattr(theirs, "norm3", None)]
    for residual, norm in zip(filter(None, around), filter(None, norms), strict=True):
        residual.norm = deepcopy(norm)
    return ours.train(theirs.training)


def _feed_forward(theirs: Any) -> FeedForward:
    named = [name for name, function in ACTIVATIONS.items() if function is theirs.activation]
    if not named:
        raise ValueError(f"activation must be relu or gelu, but it is {theirs.activation!r}")
    ours = FeedForward(
        theirs.linear1.in_features,
        theirs.linear1.out_features,
        theirs.dropout.p,
        named[0],
    )
    # copies have the precision, the device, and a bias only where there is one
    ours.widen, ours.narrow = deepcopy(theirs.linear1), deepcopy(theirs.linear2)
    return ours
