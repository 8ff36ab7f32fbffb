"""The fused kernel of torch and `nn.MultiheadAttention`, in all of their layouts."""

from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Tensor, nn

from capture.patterns.base import (
    Attention,
    Bare,
    FusedAttention,
    Sizes,
    pattern,
    sharp_linear,
    two_texts,
)

GROUPED = Sizes(heads=6, width=24)


def keys_of_other_width(sizes: Sizes) -> tuple[Tensor, ...]:
    return (
        torch.randn(sizes.batch, sizes.queries, sizes.width),
        torch.randn(sizes.batch, sizes.keys, 10),
    )


def seq_first_pair(sizes: Sizes) -> tuple[Tensor, ...]:
    return tuple(x.transpose(0, 1) for x in two_texts(sizes))


def unbatched_pair(sizes: Sizes) -> tuple[Tensor, ...]:
    return tuple(x[0] for x in two_texts(sizes))


@pattern("self", variants=True)
class SdpaFourAxes(Attention):
    """The usual one: (batch, head, token, width)."""

    def forward(self, x):
        q, k, v = (
            layer(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for layer in (self.to_q, self.to_k, self.to_v)
        )
        self.note_dot_product(q, k)
        return self.to_out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


@pattern("cross", variants=("batch=heads", "all_equal"))
class SdpaThreeAxes(Attention):
    """Heads folded into the batch for the kernel: (batch * head, token, width)."""

    def forward(self, x, memory):
        q, k, v = (
            rearrange(layer(rows), "b n (h d) -> (b h) n d", h=self.heads)
            for layer, rows in ((self.to_q, x), (self.to_k, memory), (self.to_v, memory))
        )
        self.note_dot_product(q, k, "(b h) q k -> b h q k", h=self.heads)
        out = F.scaled_dot_product_attention(q, k, v)
        return self.to_out(rearrange(out, "(b h) n d -> b n (h d)", h=self.heads))


@pattern("self", sizes=Sizes(heads=1))
class SdpaThreeAxesSingleHead(Attention):
    """A single head: (batch, token, width) without a head axis."""

    def forward(self, x):
        q, k, v = self.to_q(x), self.to_k(x), self.to_v(x)
        self.note_dot_product(q, k, "b q k -> b 1 q k")
        return self.to_out(F.scaled_dot_product_attention(q, k, v))


@pattern("self", probe=None, sizes=Sizes(queries=15))
class SdpaBlocksAfterHeads(Attention):
    """Local blocks with five axes: (batch, head, block, query, width)."""

    def forward(self, x):
        q, k, v = (
            rearrange(layer(x), "b (w n) (h d) -> b h w n d", h=self.heads, n=5)
            for layer in (self.to_q, self.to_k, self.to_v)
        )
        self.note_dot_product(q, k, "b h w q k -> b w h q k")
        out = F.scaled_dot_product_attention(q, k, v)
        return self.to_out(rearrange(out, "b h w n d -> b (w n) (h d)"))


@pattern("self", probe=None, sizes=Sizes(queries=20), variants=())
class SdpaBlocksBeforeHeads(Attention):
    """Hiera: (batch, block, head, query, width)."""

    def forward(self, x):
        q, k, v = (
            layer(x).unflatten(1, (4, 5)).unflatten(-1, (self.heads, -1)).transpose(2, 3)
            for layer in (self.to_q, self.to_k, self.to_v)
        )
        self.note_dot_product(q, k, "b w h q k -> b w h q k")
        out = F.scaled_dot_product_attention(q, k, v)
        return self.to_out(out.transpose(2, 3).flatten(-2).flatten(1, 2))


@pattern("self", sizes=GROUPED)
class SdpaGrouped(Attention):
    """Grouped queries by enable_gqa."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.to_k, self.to_v = sharp_linear(sizes.width, 8), nn.Linear(sizes.width, 8)

    def forward(self, x):
        q, k, v = (
            layer(x).unflatten(-1, (-1, 4)).transpose(1, 2)
            for layer in (self.to_q, self.to_k, self.to_v)
        )
        self.note_dot_product(q, k.repeat_interleave(3, dim=1) if self.truth is not None else k)
        out = F.scaled_dot_product_attention(q, k, v, enable_gqa=True)
        return self.to_out(out.transpose(1, 2).flatten(2))


@pattern("cross")
class SdpaKeywords(Attention):
    """All arguments by keyword, values first."""

    def forward(self, x, memory):
        q, k, v = (
            layer(rows).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for layer, rows in ((self.to_q, x), (self.to_k, memory), (self.to_v, memory))
        )
        self.note_dot_product(q, k, scale=0.3)
        out = F.scaled_dot_product_attention(
            value=v, key=k, query=q, attn_mask=None, is_causal=False, scale=0.3
        )
        return self.to_out(out.transpose(1, 2).flatten(2))


@pattern("causal")
class SdpaIsCausal(FusedAttention):
    """nanoGPT with the fused kernel: is_causal=True, dropout 0 in eval."""

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.to_qkv(x).split(C, dim=2)
        k = k.view(B, T, self.heads, C // self.heads).transpose(1, 2)
        q = q.view(B, T, self.heads, C // self.heads).transpose(1, 2)
        v = v.view(B, T, self.heads, C // self.heads).transpose(1, 2)
        self.note_dot_product(q, k, mask=torch.ones(T, T, dtype=torch.bool).tril())
        y = F.scaled_dot_product_attention(
            q, k, v, attn_mask=None, dropout_p=0.1 if self.training else 0, is_causal=True
        )
        return self.to_out(y.transpose(1, 2).contiguous().view(B, T, C))


@pattern("cross")
class SdpaPaddingMask(Attention):
    """A boolean mask of padded keys, (batch, 1, 1, key)."""

    def forward(self, x, memory):
        q, k, v = (
            layer(rows).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for layer, rows in ((self.to_q, x), (self.to_k, memory), (self.to_v, memory))
        )
        lengths = torch.tensor([7, 4])
        mask = (torch.arange(7) < lengths[:, None])[:, None, None]
        self.note_dot_product(q, k, mask=mask)
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.to_out(out.transpose(1, 2).flatten(2))


@pattern("self")
class SdpaFloatBias(Attention):
    """A bias per head, added by the kernel."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.bias = nn.Parameter(torch.randn(sizes.heads, sizes.queries, sizes.queries))

    def forward(self, x):
        q, k, v = (
            layer(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for layer in (self.to_q, self.to_k, self.to_v)
        )
        self.note_dot_product(q, k, mask=self.bias)
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=self.bias)
        return self.to_out(out.transpose(1, 2).flatten(2))


@pattern("self", variants=("batch=heads",))
class SdpaHeadsFirst(Attention):
    """Heads before the batch: (head, batch, token, width)."""

    def forward(self, x):
        q, k, v = (
            torch.stack(layer(x).chunk(self.heads, -1))
            for layer in (self.to_q, self.to_k, self.to_v)
        )
        self.note_dot_product(q, k, "h b q k -> b h q k")
        out = F.scaled_dot_product_attention(q, k, v)
        return self.to_out(torch.cat(out.unbind(0), dim=-1))


@pattern("self")
class SdpaInnerModule(Bare):
    """torchtune: the kernel is called in a method, with the module's own dropout rate."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.qkv = sharp_linear(sizes.width, 3 * sizes.width)
        self.attention_fn = F.scaled_dot_product_attention

    def _attend(self, *qkv):
        self.note_dot_product(*qkv[:2])
        return self.attention_fn(*qkv, dropout_p=0.0)

    def forward(self, x):
        qkv = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        return self._attend(*qkv).transpose(1, 2).flatten(2)


class TorchMultihead(Bare):
    """Base of `nn.MultiheadAttention`: the truth from its projections and formula."""

    options: ClassVar[dict[str, Any]] = {"batch_first": True}

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.mha = nn.MultiheadAttention(sizes.width, sizes.heads, **self.options)
        if self.mha.in_proj_weight is not None:
            nn.init.normal_(self.mha.in_proj_weight, 0, 0.5)

    def note_mha(self, x, memory, mask=None):
        """Note the weights of (batch, token, width) rows."""
        if self.truth is None:
            return
        if self.mha.in_proj_weight is not None:
            w_q, w_k, _ = self.mha.in_proj_weight.chunk(3)
        else:
            w_q, w_k = self.mha.q_proj_weight, self.mha.k_proj_weight
        b_q, b_k, _ = self.mha.in_proj_bias.chunk(3)
        q, k = F.linear(x, w_q, b_q), F.linear(memory, w_k, b_k)
        if self.mha.bias_k is not None:
            k = torch.cat([k, self.mha.bias_k.expand(len(k), -1, -1)], dim=1)
        q, k = (rearrange(t, "b n (h d) -> b h n d", h=self.heads) for t in (q, k))
        self.note_dot_product(q, k, mask=mask)


@pattern("self", names=("mha",), variants=True)
class MhaBatchFirst(TorchMultihead):
    """nn.MultiheadAttention with batch_first and weights that are averaged."""

    def forward(self, x):
        self.note_mha(x, x)
        return self.mha(x, x, x)[0]


@pattern("self", names=("mha",))
class MhaWithoutWeights(TorchMultihead):
    """nn.MultiheadAttention with need_weights=False: the fused kernel inside."""

    def forward(self, x):
        self.note_mha(x, x)
        return self.mha(x, x, x, need_weights=False)[0]


@pattern("cross", names=("mha",))
class MhaPerHeadWeights(TorchMultihead):
    """nn.MultiheadAttention that returns the weights of each head."""

    def forward(self, x, memory):
        self.note_mha(x, memory)
        return self.mha(x, memory, memory, average_attn_weights=False)


@pattern("cross", names=("mha",), inputs=seq_first_pair, variants=("batch=heads", "all_equal"))
class MhaSeqFirst(TorchMultihead):
    """nn.MultiheadAttention with its default layout, (token, batch, width)."""

    options: ClassVar[dict[str, Any]] = {}

    def forward(self, x, memory):
        self.note_mha(x.transpose(0, 1), memory.transpose(0, 1))
        return self.mha(x, memory, memory)[0]


@pattern("cross", names=("mha",), inputs=unbatched_pair)
class MhaUnbatched(TorchMultihead):
    """nn.MultiheadAttention of one text: (token, width)."""

    def forward(self, x, memory):
        self.note_mha(x[None], memory[None])
        return self.mha(x, memory, memory)[0]


@pattern("cross", names=("mha",), inputs=keys_of_other_width)
class MhaOtherWidths(TorchMultihead):
    """nn.MultiheadAttention with kdim and vdim."""

    options: ClassVar[dict[str, Any]] = {"batch_first": True, "kdim": 10, "vdim": 10}

    def forward(self, x, memory):
        self.note_mha(x, memory)
        return self.mha(x, memory, memory)[0]


@pattern("self", names=("mha",))
class MhaBiasKv(TorchMultihead):
    """nn.MultiheadAttention with add_bias_kv: one key more, that is no position."""

    options: ClassVar[dict[str, Any]] = {"batch_first": True, "add_bias_kv": True}

    def forward(self, x):
        self.note_mha(x, x)
        return self.mha(x, x, x)[0]


@pattern("causal", names=("mha",))
class MhaCausal(TorchMultihead):
    """nn.MultiheadAttention with a square boolean mask, True for what is hidden."""

    def forward(self, x):
        n = x.shape[1]
        hidden = torch.ones(n, n, dtype=torch.bool).triu(1)
        self.note_mha(x, x, mask=~hidden)
        return self.mha(x, x, x, attn_mask=hidden, need_weights=False)[0]


@pattern("cross", names=("mha",))
class MhaKeyPadding(TorchMultihead):
    """nn.MultiheadAttention with key_padding_mask."""

    def forward(self, x, memory):
        padding = torch.arange(7) >= torch.tensor([[7], [4]])
        self.note_mha(x, memory, mask=~padding[:, None, None])
        return self.mha(x, memory, memory, key_padding_mask=padding)[0]
