"""Grouped, shared, latent and compared heads; position biases and rotary queries."""

import torch
import torch.nn.functional as F
from torch import nn

from capture.patterns.base import Attention, Bare, Sizes, pattern, sharp_linear

GROUPED = Sizes(heads=6, width=24)  # of 4 each; 2 heads of keys


class Grouped(Attention):
    """Base of grouped-query attention: six heads of queries, two of keys."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.key_heads, self.groups = 2, 3
        self.to_k = sharp_linear(sizes.width, 8)
        self.to_v = nn.Linear(sizes.width, 8)

    def split(self, x):
        q = self.to_q(x).unflatten(-1, (self.heads, 4)).transpose(1, 2)
        k, v = (
            layer(x).unflatten(-1, (self.key_heads, 4)).transpose(1, 2)
            for layer in (self.to_k, self.to_v)
        )
        return q, k, v


@pattern("causal", sizes=GROUPED)
class LlamaRepeatKv(Grouped):
    """Llama's repeat_kv: expand and reshape."""

    @staticmethod
    def repeat_kv(hidden, n_rep):
        batch, heads, n, width = hidden.shape
        hidden = hidden[:, :, None].expand(batch, heads, n_rep, n, width)
        return hidden.reshape(batch, heads * n_rep, n, width)

    def forward(self, x):
        q, k, v = self.split(x)
        k, v = self.repeat_kv(k, self.groups), self.repeat_kv(v, self.groups)
        scores = torch.matmul(q, k.transpose(2, 3)) * self.scale
        n = x.shape[1]
        scores = scores + torch.full((n, n), torch.finfo(scores.dtype).min).triu(1)
        attn = F.softmax(scores, dim=-1, dtype=torch.float32).to(q.dtype)
        self.note(attn)
        return self.to_out(torch.matmul(attn, v).transpose(1, 2).flatten(2))


@pattern("self", sizes=GROUPED)
class RepeatInterleave(Grouped):
    """Mistral's reference code: repeat_interleave of keys and values."""

    def forward(self, x):
        q, k, v = self.split(x)
        k = torch.repeat_interleave(k, repeats=self.groups, dim=1)
        v = v.repeat_interleave(self.groups, dim=1)
        attn = (q @ k.mT * self.scale).softmax(-1)
        self.note(attn)
        return self.to_out((attn @ v).transpose(1, 2).flatten(2))


@pattern("self", sizes=GROUPED)
class GroupAxis(Grouped):
    """An axis for the group: (b, kv, g, q, k), keys broadcast over it."""

    def forward(self, x):
        q, k, v = self.split(x)
        q = q.unflatten(1, (self.key_heads, self.groups))
        attn = (q @ k[:, :, None].mT * self.scale).softmax(-1)
        self.note(attn, "b kv g q k -> b (kv g) q k")
        return self.to_out((attn @ v[:, :, None]).flatten(1, 2).transpose(1, 2).flatten(2))


@pattern("self", sizes=GROUPED)
class GroupAxisEinsum(Grouped):
    """Gemma in JAX, ported: einsum "btkgd,bskd->bkgts" and "bkgts,bskd->btkgd"."""

    def forward(self, x):
        q = self.to_q(x).unflatten(-1, (self.key_heads, self.groups, 4))
        k = self.to_k(x).unflatten(-1, (self.key_heads, 4))
        v = self.to_v(x).unflatten(-1, (self.key_heads, 4))
        logits = torch.einsum("btkgd,bskd->bkgts", q * self.scale, k)
        probs = logits.softmax(dim=-1)
        self.note(probs, "b k g t s -> b (k g) t s")
        return self.to_out(torch.einsum("bkgts,bskd->btkgd", probs, v).flatten(2))


class MultiQuery(Attention):
    """Base of multi-query attention: one head of keys and values."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.to_k = sharp_linear(sizes.width, sizes.head_width)
        self.to_v = nn.Linear(sizes.width, sizes.head_width)


@pattern("self", variants=("batch=heads", "heads=queries", "all_equal"))
class MultiQueryEinsum(MultiQuery):
    """PaLM in lucidrains' style: keys and values without a head axis."""

    def forward(self, x):
        q = self.to_q(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) * self.scale
        k, v = self.to_k(x), self.to_v(x)
        attn = torch.einsum("b h i d, b j d -> b h i j", q, k).softmax(dim=-1)
        self.note(attn)
        out = torch.einsum("b h i j, b j d -> b h i d", attn, v)
        return self.to_out(out.transpose(1, 2).flatten(2))


@pattern("self", variants=("batch=heads", "heads=queries", "all_equal"))
class MultiQueryBmm(MultiQuery):
    """StarCoder: (query * head) rows in one bmm, so that heads are folded into the queries."""

    def forward(self, x):
        b, n, _ = x.shape
        q, k, v = self.to_q(x), self.to_k(x), self.to_v(x)
        q = q.reshape(b, n * self.heads, self.head_width)
        scores = torch.bmm(q * self.scale, k.transpose(1, 2)).view(b, n, self.heads, n)
        attn = F.softmax(scores, dim=-1)
        self.note(attn, "b q h k -> b h q k")
        out = torch.bmm(attn.view(b, n * self.heads, n), v)
        return self.to_out(out.view(b, n, -1))


@pattern("self")
class MultiQueryUnsqueeze(MultiQuery):
    """Falcon: a head axis of size one that broadcasts."""

    def forward(self, x):
        q = self.to_q(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        k, v = self.to_k(x).unsqueeze(1), self.to_v(x).unsqueeze(1)
        attn = (q @ k.transpose(-1, -2) * self.scale).softmax(-1)
        self.note(attn)
        return self.to_out((attn @ v).transpose(1, 2).flatten(2))


@pattern("causal", probe=None, variants=("batch=heads", "heads=queries"))
class LatentAttention(Attention):
    """DeepSeek's MLA, absorbed: "bshc,btc->bsht" and "bsht,btc->bshc" over the latent cache."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.kv_down = sharp_linear(sizes.width, 6)
        self.k_up = nn.Parameter(torch.randn(sizes.heads, sizes.head_width, 6))
        self.v_up = nn.Parameter(torch.randn(sizes.heads, sizes.head_width, 6))

    def forward(self, x):
        q = self.to_q(x).unflatten(-1, (self.heads, -1))
        latent = self.kv_down(x)
        q = torch.einsum("bshd,hdc->bshc", q, self.k_up)
        scores = torch.einsum("bshc,btc->bsht", q, latent) * self.scale
        n = x.shape[1]
        scores += torch.full((n, n), float("-inf")).triu_(1).unsqueeze(1)
        scores = scores.softmax(dim=-1, dtype=torch.float32).type_as(x)
        self.note(scores, "b q h k -> b h q k")
        out = torch.einsum("bsht,btc->bshc", scores, latent)
        out = torch.einsum("bshc,hdc->bshd", out, self.v_up)
        return self.to_out(out.flatten(2))


@pattern("self")
class T5RelativeBias(Attention):
    """T5: a learned bias per head and distance, no scaling, softmax in float32."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.relative_attention_bias = nn.Embedding(32, sizes.heads)

    def forward(self, x):
        b, n, _ = x.shape
        q, k, v = (
            layer(x).view(b, n, self.heads, -1).transpose(1, 2)
            for layer in (self.to_q, self.to_k, self.to_v)
        )
        scores = torch.matmul(q, k.transpose(3, 2))
        position = torch.arange(n)
        bias = self.relative_attention_bias(position[None, :] - position[:, None] + 16)
        scores += bias.permute(2, 0, 1).unsqueeze(0)
        attn = F.softmax(scores.float(), dim=-1).type_as(scores)
        self.note(attn)
        return self.to_out(torch.matmul(attn, v).transpose(1, 2).contiguous().view(b, n, -1))


@pattern("causal", variants=("heads=queries",))
class Alibi(Attention):
    """ALiBi: linear distances per head, and a causal mask."""

    def forward(self, x):
        b, n, _ = x.shape
        q, k, v = (
            layer(x).view(b, n, self.heads, -1).transpose(1, 2)
            for layer in (self.to_q, self.to_k, self.to_v)
        )
        slopes = torch.tensor([2.0 ** -(i + 1) for i in range(self.heads)])
        distance = torch.arange(n)[None, :] - torch.arange(n)[:, None]
        scores = q @ k.mT * self.scale + slopes[:, None, None] * distance
        scores = scores.masked_fill(distance > 0, -1e9)
        attn = scores.softmax(-1)
        self.note(attn)
        return self.to_out((attn @ v).transpose(1, 2).reshape(b, n, -1))


@pattern("causal")
class Rotary(Attention):
    """GPT-J and Llama: rotary queries and keys by rotate_half."""

    @staticmethod
    def rotate_half(x):
        x1, x2 = x.chunk(2, dim=-1)
        return torch.cat((-x2, x1), dim=-1)

    def forward(self, x):
        b, n, _ = x.shape
        q, k, v = (
            layer(x).view(b, n, self.heads, -1).transpose(1, 2)
            for layer in (self.to_q, self.to_k, self.to_v)
        )
        angles = torch.outer(torch.arange(n).float(), torch.tensor([1.0, 0.1])).repeat(1, 2)
        cos, sin = angles.cos(), angles.sin()
        q = q * cos + self.rotate_half(q) * sin
        k = k * cos + self.rotate_half(k) * sin
        mask = torch.ones(n, n, dtype=torch.bool).triu(1)
        attn = (q @ k.mT * self.scale).masked_fill(mask, float("-inf")).softmax(-1)
        self.note(attn)
        return self.to_out((attn @ v).transpose(1, 2).reshape(b, n, -1))


@pattern("self")
class ComplexRotary(Attention):
    """Meta's Llama code: rotary positions by complex numbers."""

    def forward(self, x):
        b, n, _ = x.shape
        q, k, v = (
            layer(x).view(b, n, self.heads, -1) for layer in (self.to_q, self.to_k, self.to_v)
        )
        angles = torch.outer(torch.arange(n).float(), torch.tensor([1.0, 0.1]))
        freqs = torch.polar(torch.ones_like(angles), angles)[None, :, None]
        q, k = (
            torch.view_as_real(torch.view_as_complex(t.reshape(b, n, self.heads, -1, 2)) * freqs)
            .flatten(3)
            .type_as(x)
            for t in (q, k)
        )
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        attn = (q @ k.mT * self.scale).softmax(-1)
        self.note(attn)
        return self.to_out((attn @ v).transpose(1, 2).reshape(b, n, -1))


@pattern("self")
class ShawRelativeKeys(Attention):
    """Shaw et al.: relative positions are added to keys and to values."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.relative = nn.Embedding(32, sizes.head_width)

    def forward(self, x):
        b, n, _ = x.shape
        q, k, v = (
            layer(x).view(b, n, self.heads, -1).transpose(1, 2)
            for layer in (self.to_q, self.to_k, self.to_v)
        )
        rel = self.relative(torch.arange(n)[None, :] - torch.arange(n)[:, None] + 16)
        scores = torch.einsum("bhqd,bhkd->bhqk", q, k) + torch.einsum("bhqd,qkd->bhqk", q, rel)
        attn = (scores * self.scale).softmax(-1)
        self.note(attn)
        out = torch.einsum("bhqk,bhkd->bhqd", attn, v) + torch.einsum("bhqk,qkd->bhqd", attn, rel)
        return self.to_out(out.transpose(1, 2).reshape(b, n, -1))


@pattern("self")
class DebertaDisentangled(Attention):
    """DeBERTa: content to position and position to content, gathered by distance."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.relative = nn.Parameter(torch.randn(2 * sizes.queries, sizes.width))

    def forward(self, x):
        b, n, _ = x.shape
        q, k, v = (
            layer(x).view(b, n, self.heads, -1).transpose(1, 2)
            for layer in (self.to_q, self.to_k, self.to_v)
        )
        pos_k = self.to_k(self.relative).view(2 * n, self.heads, -1).transpose(0, 1)
        index = (torch.arange(n)[:, None] - torch.arange(n)[None, :] + n).expand(b, 3, n, n)
        c2p = torch.gather(q @ pos_k.mT, -1, index)
        attn = ((q @ k.mT + c2p) * (2 * self.head_width) ** -0.5).softmax(-1)
        self.note(attn)
        return self.to_out((attn @ v).transpose(1, 2).reshape(b, n, -1))


@pattern("self")
class QueryKeyNorm(Attention):
    """ViT-22B: layer norm of queries and keys before the product."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.q_norm, self.k_norm = (nn.LayerNorm(sizes.head_width) for _ in range(2))

    def forward(self, x):
        b, n, _ = x.shape
        q, k, v = (
            layer(x).view(b, n, self.heads, -1).transpose(1, 2)
            for layer in (self.to_q, self.to_k, self.to_v)
        )
        attn = (self.q_norm(q) @ self.k_norm(k).mT * self.scale).softmax(-1)
        self.note(attn)
        return self.to_out((attn @ v).transpose(1, 2).reshape(b, n, -1))


@pattern("self", "self", names=("first", "second"))
class SharedLayers(nn.Module):
    """ALBERT-like: two attention layers, each a module of its own."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.first, self.second = PlainHeads(sizes), PlainHeads(sizes)

    def forward(self, x):
        x = x + self.first(x)
        return x + self.second(x)


class PlainHeads(Attention):
    """A layer for models with several."""

    def forward(self, x):
        b, n, _ = x.shape
        q, k, v = (
            layer(x).view(b, n, self.heads, -1).transpose(1, 2)
            for layer in (self.to_q, self.to_k, self.to_v)
        )
        attn = (q @ k.mT * self.scale).softmax(-1)
        self.note(attn)
        return self.to_out((attn @ v).transpose(1, 2).reshape(b, n, -1))


@pattern("self", variants=("all_equal",))
class ParametersPerHead(Bare):
    """TransformerLens: W_Q of (head, width, head width), applied by einsum."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        shape = sizes.heads, sizes.width, sizes.head_width
        self.W_Q, self.W_K, self.W_V = (nn.Parameter(torch.randn(shape) / 2) for _ in range(3))
        self.W_O = nn.Parameter(torch.randn(sizes.heads, sizes.head_width, sizes.width))

    def forward(self, x):
        q, k, v = (torch.einsum("bpm,hmd->bphd", x, w) for w in (self.W_Q, self.W_K, self.W_V))
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) * self.scale
        pattern = scores.softmax(-1)
        self.note(pattern)
        z = torch.einsum("bhqk,bkhd->bqhd", pattern, v)
        return torch.einsum("bqhd,hdm->bqm", z, self.W_O)


@pattern("self", probe=None)
class GatedContext(Attention):
    """Gated attention: a sigmoid gate on the context of each head, not on the weights."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.gate = nn.Linear(sizes.width, sizes.heads)

    def forward(self, x):
        b, n, _ = x.shape
        q, k, v = (
            layer(x).view(b, n, self.heads, -1).transpose(1, 2)
            for layer in (self.to_q, self.to_k, self.to_v)
        )
        attn = (q @ k.mT * self.scale).softmax(-1)
        self.note(attn)
        context = (attn @ v).transpose(1, 2) * self.gate(x).sigmoid().unsqueeze(-1)
        return self.to_out(context.reshape(b, n, -1))
