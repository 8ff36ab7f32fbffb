"""Multi-head attention from and to torch's `nn.MultiheadAttention`."""

import torch
from torch import Tensor, nn

from regard.attention.multihead import MultiHeadAttention
from regard.attention.scores import ScaledDot
from regard.errors import RegardError


def from_torch(module: nn.MultiheadAttention) -> MultiHeadAttention:
    """Return a regard module with torch's parameters, which gives the same output, batch first."""
    if module.bias_k is not None or module.add_zero_attn:
        raise RegardError(
            "add_bias_kv and add_zero_attn, which add keys, have no counterpart in regard; "
            "only modules built without them can be converted"
        )
    has_bias = module.in_proj_bias is not None
    converted = MultiHeadAttention(
        module.embed_dim,
        module.num_heads,
        key_width=module.kdim,
        value_width=module.vdim,
        bias=has_bias,
        dropout=module.dropout,
    ).to(module.out_proj.weight)
    projections = _input_projections(converted)
    with torch.no_grad():
        for projection, weight in zip(projections, _input_weights(module), strict=True):
            projection.weight.copy_(weight)
        converted.out.weight.copy_(module.out_proj.weight)
        if has_bias:
            for projection, bias in zip(projections, module.in_proj_bias.chunk(3), strict=True):
                projection.bias.copy_(bias)
            converted.out.bias.copy_(module.out_proj.bias)
    return converted.train(module.training)


def to_torch(module: MultiHeadAttention) -> nn.MultiheadAttention:
    """Return torch's module (batch first) with regard's parameters, which gives the same output."""
    _check_convertible(module)
    has_bias = module.out.bias is not None
    converted = nn.MultiheadAttention(
        module.query.in_features,
        module.heads,
        dropout=module.dropout,
        bias=has_bias,
        kdim=module.key.in_features,
        vdim=module.value.in_features,
        batch_first=True,
    ).to(module.out.weight)
    projections = _input_projections(module)
    with torch.no_grad():
        for weight, projection in zip(_input_weights(converted), projections, strict=True):
            weight.copy_(projection.weight)
        converted.out_proj.weight.copy_(module.out.weight)
        if has_bias:
            biases = tuple(projection.bias for projection in projections)
            converted.in_proj_bias.copy_(torch.cat(biases))
            converted.out_proj.bias.copy_(module.out.bias)
    return converted.train(module.training)


def _input_projections(module: MultiHeadAttention) -> tuple[nn.Linear, nn.Linear, nn.Linear]:
    return module.query, module.key, module.value


def _input_weights(module: nn.MultiheadAttention) -> tuple[Tensor, ...]:
    """Return torch's three input matrices, which are one tensor unless widths differ."""
    if module.in_proj_weight is not None:
        return module.in_proj_weight.chunk(3)
    return module.q_proj_weight, module.k_proj_weight, module.v_proj_weight


def _check_convertible(module: MultiHeadAttention) -> None:
    score = module.score
    has_plain_score = isinstance(score, ScaledDot) and score.scale is None and score.cap is None
    has_plain_heads = (
        module.heads * module.head_width == module.query.in_features
        and module.key_heads == module.heads
    )
    if not (has_plain_score and has_plain_heads and module.positions is None):
        raise RegardError(
            "torch's module has only scaled_dot scores, as many key heads as heads, "
            "head_width = width / heads and no positions, but this module differs"
        )
