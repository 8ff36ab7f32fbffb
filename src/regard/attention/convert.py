"""Weights to and from torch's own multi-head attention."""

import torch
from torch import Tensor, nn

from regard.attention.multihead import MultiHeadAttention
from regard.attention.scores.dot import ScaledDot


def from_torch(theirs: nn.MultiheadAttention) -> MultiHeadAttention:
    """Make the multi-head attention that gives what torch's gives, batch first."""
    if theirs.bias_k is not None or theirs.add_zero_attn:
        raise ValueError(
            "add_bias_kv and add_zero_attn, which add keys, have no counterpart in regard; "
            "only modules made without them can be read"
        )
    has_bias = theirs.in_proj_bias is not None
    ours = MultiHeadAttention(
        theirs.embed_dim,
        theirs.num_heads,
        key_width=theirs.kdim,
        value_width=theirs.vdim,
        bias=has_bias,
        dropout=theirs.dropout,
    ).to(theirs.out_proj.weight)
    with torch.no_grad():
        for projection, weight in zip(_inward(ours), _inward_weights(theirs), strict=True):
            projection.weight.copy_(weight)
        ours.out.weight.copy_(theirs.out_proj.weight)
        if has_bias:
            for projection, bias in zip(_inward(ours), theirs.in_proj_bias.chunk(3), strict=True):
                projection.bias.copy_(bias)
            ours.out.bias.copy_(theirs.out_proj.bias)
    return ours.train(theirs.training)


def to_torch(ours: MultiHeadAttention) -> nn.MultiheadAttention:
    """Make torch's multi-head attention (batch first) that gives what ours gives."""
    _check_shared(ours)
    has_bias = ours.out.bias is not None
    theirs = nn.MultiheadAttention(
        ours.query.in_features,
        ours.heads,
        dropout=ours.dropout,
        bias=has_bias,
        kdim=ours.key.in_features,
        vdim=ours.value.in_features,
        batch_first=True,
    ).to(ours.out.weight)
    with torch.no_grad():
        for weight, projection in zip(_inward_weights(theirs), _inward(ours), strict=True):
            weight.copy_(projection.weight)
        theirs.out_proj.weight.copy_(ours.out.weight)
        if has_bias:
            theirs.in_proj_bias.copy_(torch.cat([each.bias for each in _inward(ours)]))
            theirs.out_proj.bias.copy_(ours.out.bias)
    return theirs.train(ours.training)


def _inward(ours: MultiHeadAttention) -> tuple[nn.Linear, nn.Linear, nn.Linear]:
    return ours.query, ours.key, ours.value


def _inward_weights(theirs: nn.MultiheadAttention) -> tuple[Tensor, ...]:
    """Find torch's three input matrices: one tensor for all, unless widths differ."""
    if theirs.in_proj_weight is not None:
        return theirs.in_proj_weight.chunk(3)
    return theirs.q_proj_weight, theirs.k_proj_weight, theirs.v_proj_weight


def _check_shared(ours: MultiHeadAttention) -> None:
    score = ours.score
    plain = isinstance(score, ScaledDot) and score.scale is None and score.cap is None
    whole = ours.heads * ours.head_width == ours.query.in_features
    if not (plain and whole and ours.key_heads == ours.heads and ours.positions is None):
        raise ValueError(
            "torch's module knows only scaled dot scores, as many key heads as heads, "
            "head_width = width / heads and no positions; this module has another setting"
        )
