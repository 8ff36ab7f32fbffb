"""Conversion of a Transformer to a CTranslate2 model."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from regard._support.extras import needs_extra
from regard.attention import Dot, MultiHeadAttention, ScaledDot
from regard.data import BOS, EOS, SPECIAL_TOKENS, UNK, Tokenizers
from regard.errors import RegardError
from regard.models import Embedding, Seq2SeqModel, Transformer, TransformerLayer
from regard.positions import ALiBi, Learned, Rotary, Sinusoidal, sinusoidal

MAX_POSITIONS = 4096  # of sinusoidal positions, which CTranslate2 keeps as a table


def unsupported_part(model: Seq2SeqModel) -> str | None:
    """Return what CTranslate2 cannot represent of a model; None if it can represent all of it.

    Example:
        >>> from regard.config import ModelConfig
        >>> from regard.models import build
        >>> unsupported_part(build(ModelConfig(width=8, layers=1, heads=2), 9))
        >>> unsupported_part(build(ModelConfig(width=8, layers=1, heads=2, positions="alibi"), 9))
        'ALiBi positions in the encoder'
    """
    if not isinstance(model, Transformer):
        return f"a {type(model).__name__}"
    if model.output_weight.device.type not in ("cpu", "cuda"):
        return f"a model on {model.output_weight.device}"
    layers = _layers(model)
    for layer in layers:
        for attention in (layer.attention, layer.cross):
            if attention is not None and (part := _unsupported_attention(attention)):
                return part
    if not all(layer.cross for layer in _decoder_layers(model)):
        return "decoder layers without cross-attention"
    # a converted model has each of these once
    if len({_layer_settings(layer) for layer in layers}) > 1:
        return "layers with different norms, activations, heads or rotary positions"
    if (model.encoder.norm is None) != (model.decoder.norm is None):
        return "a final norm of the encoder or the decoder alone"
    return None


def _layer_settings(layer: TransformerLayer) -> tuple[Any, ...]:
    """Return what must be the same in all layers of a converted model."""
    rotary = layer.attention.positions
    return (
        layer.feed_forward_residual.pre_norm,
        layer.feed_forward_residual.norm.eps,
        layer.feed_forward.activation,
        layer.attention.heads,
        (rotary.width, rotary.base, rotary.interleaved) if isinstance(rotary, Rotary) else None,
    )


def _unsupported_attention(attention: MultiHeadAttention) -> str | None:
    score = attention.score
    if not isinstance(score, Dot | ScaledDot) or (isinstance(score, ScaledDot) and score.cap):
        return f"the score {score.display_name}"
    if isinstance(attention.positions, ALiBi):
        return "ALiBi positions in the encoder"
    if attention.heads * attention.head_width != attention.out.out_features:
        return f"heads of width {attention.head_width}"
    return None


def max_positions(model: Transformer) -> int:
    """Return the number of positions of the converted model."""
    return MAX_POSITIONS if model.max_length is None else model.max_length


def save_ctranslate2(
    model: Transformer,
    tokenizers: Tokenizers,
    folder: Path,
    *,
    alignment_head: tuple[int, int] | None = None,
    quantization: str | None = None,
) -> None:
    """Write a model as a CTranslate2 model: `model.bin`, `config.json` and the vocabularies.

    Args:
        model: the model.
        tokenizers: of source and target, whose tokens become the vocabularies.
        folder: an existing folder.
        alignment_head: layer and head of the decoder whose cross-attention CTranslate2 returns
            with `return_attention`; it returns the mean of the first heads of one layer, so this
            head becomes the first of its layer. By default the mean over the last layer's heads.
        quantization: type of the stored parameters, such as "int8"; float32 by default.

    Raises:
        RegardError: if CTranslate2 cannot represent the model.
        MissingExtraError: if CTranslate2 is not installed.
    """
    if part := unsupported_part(model):
        raise RegardError(f"CTranslate2 cannot represent {part}; use engine='torch'")
    with needs_extra("fast", "the CTranslate2 engine needs"):
        from ctranslate2.specs import TransformerSpec
        from ctranslate2.specs.transformer_spec import (
            TransformerDecoderSpec,
            TransformerEncoderSpec,
        )
    common = _common_arguments(model)
    encoder_layers, decoder_layers = _encoder_layers(model), _decoder_layers(model)
    heads = decoder_layers[0].attention.heads
    layer_index, head_index = (-1, None) if alignment_head is None else alignment_head
    encoder = TransformerEncoderSpec(len(encoder_layers), heads, **common)
    decoder = TransformerDecoderSpec(
        len(decoder_layers),
        heads,
        alignment_layer=layer_index,
        alignment_heads=heads if head_index is None else 1,
        **common,
    )
    spec = TransformerSpec(encoder, decoder)
    _set_vocabulary(spec, tokenizers, model)
    _copy_embedding(encoder.embeddings[0], encoder.position_encodings, model.source_embedding)
    _copy_embedding(
        decoder.embeddings, getattr(decoder, "position_encodings", None), model.target_embedding
    )
    decoder.projection.weight = _array(model.output_weight)
    for layer_spec, layer in zip(encoder.layer, encoder_layers, strict=True):
        _copy_layer(layer_spec, layer)
    for index, (layer_spec, layer) in enumerate(zip(decoder.layer, decoder_layers, strict=True)):
        _copy_layer(layer_spec, layer)
        assert layer.cross is not None and layer.cross_residual is not None
        is_aligned = head_index is not None and index == layer_index % len(decoder_layers)
        _copy_cross(layer_spec.attention, layer.cross, head_index if is_aligned else None)
        _copy_norm(layer_spec.attention.layer_norm, layer.cross_residual.norm)
    for side, norm in ((encoder, model.encoder.norm), (decoder, model.decoder.norm)):
        if isinstance(norm, nn.LayerNorm):
            _copy_norm(side.layer_norm, norm)
    spec.validate()
    spec.optimize(quantization=quantization)
    spec.save(str(folder))


def _common_arguments(model: Transformer) -> dict[str, Any]:
    """Return the arguments that the specifications of encoder and decoder share."""
    from ctranslate2.specs import common_spec

    layer = _encoder_layers(model)[0]
    activations = {"relu": common_spec.Activation.RELU, "gelu": common_spec.Activation.GELU}
    arguments: dict[str, Any] = {
        "pre_norm": layer.feed_forward_residual.pre_norm,
        "no_final_norm": model.encoder.norm is None,
        "activation": activations[layer.feed_forward.activation],
    }
    if isinstance(rotary := layer.attention.positions, Rotary):
        arguments |= {
            "rotary_dim": rotary.width,
            "rotary_base": rotary.base,
            "rotary_interleave": rotary.interleaved,
        }
    return arguments


def _set_vocabulary(spec: Any, tokenizers: Tokenizers, model: Transformer) -> None:
    for register, tokenizer in (
        (spec.register_source_vocabulary, tokenizers.source),
        (spec.register_target_vocabulary, tokenizers.target),
    ):
        register(tokenizer.convert_ids_to_tokens(range(len(tokenizer))))
    spec.config.unk_token = SPECIAL_TOKENS[UNK]
    spec.config.bos_token = spec.config.decoder_start_token = SPECIAL_TOKENS[BOS]
    spec.config.eos_token = SPECIAL_TOKENS[EOS]
    spec.config.layer_norm_epsilon = _encoder_layers(model)[0].attention_residual.norm.eps


def _copy_embedding(spec: Any, positions_spec: Any, embedding: Embedding) -> None:
    """Copy the table of tokens and that of positions, which is zero for rotary positions."""
    spec.weight = _array(embedding.weight)
    if positions_spec is None:
        return
    positions = embedding.positions
    table: Tensor
    if isinstance(positions, Learned):
        table = positions.table
    elif isinstance(positions, Sinusoidal):
        table = sinusoidal(MAX_POSITIONS, embedding.width, base=positions.base)
    else:
        table = torch.zeros(MAX_POSITIONS, embedding.width)
    positions_spec.encodings = _array(table)


def _copy_layer(spec: Any, layer: TransformerLayer) -> None:
    """Copy self-attention and the feed-forward network."""
    attention = layer.attention
    _set_query_scale(spec.self_attention, attention)
    parts = [_weight_and_bias(attention.query)]
    parts += [_expanded(attention, projection) for projection in (attention.key, attention.value)]
    _set_linear(spec.self_attention.linear[0], *parts)
    _set_linear(spec.self_attention.linear[1], _weight_and_bias(attention.out))
    _copy_norm(spec.self_attention.layer_norm, layer.attention_residual.norm)
    _set_linear(spec.ffn.linear_0, _weight_and_bias(layer.feed_forward.up))
    _set_linear(spec.ffn.linear_1, _weight_and_bias(layer.feed_forward.down))
    _copy_norm(spec.ffn.layer_norm, layer.feed_forward_residual.norm)


def _copy_cross(spec: Any, attention: MultiHeadAttention, first_head: int | None) -> None:
    """Copy cross-attention, with `first_head` before the other heads if it is given."""
    _set_query_scale(spec, attention)
    query, out = _weight_and_bias(attention.query), _weight_and_bias(attention.out)
    key, value = _expanded(attention, attention.key), _expanded(attention, attention.value)
    if first_head is not None:
        order = [first_head, *(head for head in range(attention.heads) if head != first_head)]
        query, key, value = (_reorder_heads(part, order) for part in (query, key, value))
        columns = out[0].unflatten(1, (attention.heads, -1))[:, order].flatten(1)
        out = (columns, out[1])
    _set_linear(spec.linear[0], query)
    _set_linear(spec.linear[1], key, value)
    _set_linear(spec.linear[2], out)


def _set_query_scale(spec: Any, attention: MultiHeadAttention) -> None:
    """Set the factor of the dot product, unless it is CTranslate2's own, 1 / √width."""
    if isinstance(attention.score, Dot):
        spec.queries_scale = 1.0
    elif isinstance(attention.score, ScaledDot) and attention.score.scale is not None:
        spec.queries_scale = attention.score.scale


def _weight_and_bias(layer: nn.Linear) -> tuple[Tensor, Tensor]:
    bias = layer.weight.new_zeros(layer.out_features) if layer.bias is None else layer.bias
    return layer.weight.detach(), bias.detach()


def _expanded(attention: MultiHeadAttention, projection: nn.Linear) -> tuple[Tensor, Tensor]:
    """Return a key or value projection with a head for each query head (GQA written out)."""
    repeats = attention.heads // attention.key_heads
    weight, bias = (
        part.unflatten(0, (attention.key_heads, -1)).repeat_interleave(repeats, 0).flatten(0, 1)
        for part in _weight_and_bias(projection)
    )
    return weight, bias


def _reorder_heads(part: tuple[Tensor, Tensor], order: list[int]) -> tuple[Tensor, Tensor]:
    weight, bias = (some.unflatten(0, (len(order), -1))[order].flatten(0, 1) for some in part)
    return weight, bias


def _set_linear(spec: Any, *parts: tuple[Tensor, Tensor]) -> None:
    weights, biases = zip(*parts, strict=True)
    spec.weight, spec.bias = _array(torch.cat(weights)), _array(torch.cat(biases))


def _copy_norm(spec: Any, norm: nn.LayerNorm) -> None:
    spec.gamma, spec.beta = _array(norm.weight), _array(norm.bias)


def _array(tensor: Tensor) -> Any:
    return tensor.detach().float().cpu().contiguous().numpy()


def _encoder_layers(model: Transformer) -> list[TransformerLayer]:
    return [layer for layer in model.encoder.layers if isinstance(layer, TransformerLayer)]


def _decoder_layers(model: Transformer) -> list[TransformerLayer]:
    return [layer for layer in model.decoder.layers if isinstance(layer, TransformerLayer)]


def _layers(model: Transformer) -> list[TransformerLayer]:
    return _encoder_layers(model) + _decoder_layers(model)
