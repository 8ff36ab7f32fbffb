"""Conversion of torch's own Transformer."""

from copy import deepcopy
from typing import Any

from torch import nn

from regard.attention import MultiHeadAttention
from regard.errors import RegardError
from regard.models.encoder_decoder import Decoder, Encoder
from regard.models.layers import ACTIVATIONS, FeedForward, TransformerLayer


def from_torch(module: nn.Transformer) -> tuple[Encoder, Decoder]:
    """Copy torch's Transformer to an encoder and a decoder with the same outputs, batch first.

    Args:
        module: the Transformer, whose parameters, precision, device and training mode are copied.

    Returns:
        The encoder and the decoder.

    Raises:
        RegardError: if the activation is neither relu nor gelu.

    Example:
        >>> encoder, decoder = from_torch(nn.Transformer(12, 2, 1, 1, 20, batch_first=True))
        >>> len(decoder.layers)
        1
    """
    encoder, decoder = module.encoder, module.decoder
    return (
        Encoder([_convert_layer(layer) for layer in encoder.layers], deepcopy(encoder.norm)),
        Decoder([_convert_layer(layer) for layer in decoder.layers], deepcopy(decoder.norm)),
    )


# torch does not declare the attributes of its layers, hence Any
def _convert_layer(module: Any) -> TransformerLayer:
    cross = getattr(module, "multihead_attn", None)
    layer = TransformerLayer(
        MultiHeadAttention.from_torch(module.self_attn),
        _convert_feed_forward(module),
        None if cross is None else MultiHeadAttention.from_torch(cross),
        dropout=module.dropout1.p,
        pre_norm=module.norm_first,
    )
    residuals = [layer.attention_residual, layer.cross_residual, layer.feed_forward_residual]
    norms = [module.norm1, module.norm2, getattr(module, "norm3", None)]
    for residual, norm in zip(filter(None, residuals), filter(None, norms), strict=True):
        residual.norm = deepcopy(norm)
    return layer.train(module.training)


def _convert_feed_forward(module: Any) -> FeedForward:
    names = [name for name, function in ACTIVATIONS.items() if function is module.activation]
    if not names:
        raise RegardError(f"activation must be relu or gelu, but it is {module.activation!r}")
    feed_forward = FeedForward(
        module.linear1.in_features,
        module.linear1.out_features,
        module.dropout.p,
        names[0],
    )
    # copies keep precision and device, and have a bias only where there is one
    feed_forward.up, feed_forward.down = deepcopy(module.linear1), deepcopy(module.linear2)
    return feed_forward
