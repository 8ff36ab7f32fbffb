"""Where the heads are: axes of their own, folded into the batch, in lists, or first."""

import math

import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Tensor, nn

from capture.patterns.base import Attention, Bare, FusedAttention, Sizes, pattern, sharp_linear


def seq_first(sizes: Sizes) -> tuple[Tensor, ...]:
    return (torch.randn(sizes.queries, sizes.batch, sizes.width),)


def unbatched(sizes: Sizes) -> tuple[Tensor, ...]:
    return (torch.randn(sizes.queries, sizes.width),)


def unbatched_pair(sizes: Sizes) -> tuple[Tensor, ...]:
    return (torch.randn(sizes.queries, sizes.width), torch.randn(sizes.keys, sizes.width))


def image(sizes: Sizes) -> tuple[Tensor, ...]:
    return (torch.randn(sizes.batch, sizes.width, 2, sizes.queries),)


@pattern("self", variants=True)
class ViewTranspose(Attention):
    """The annotated Transformer: view and transpose of each projection."""

    def forward(self, x):
        batch = x.size(0)
        query, key, value = (
            layer(x).view(batch, -1, self.heads, self.head_width).transpose(1, 2)
            for layer in (self.to_q, self.to_k, self.to_v)
        )
        scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(query.size(-1))
        p_attn = scores.softmax(dim=-1)
        self.note(p_attn, "b h q k -> b h q k")
        x = torch.matmul(p_attn, value).transpose(1, 2).contiguous()
        return self.to_out(x.view(batch, -1, self.heads * self.head_width))


@pattern("causal", variants=True)
class NanoGPT(FusedAttention):
    """Karpathy's nanoGPT without the fused kernel: split, a buffer of ones, masked_fill."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        mask = torch.tril(torch.ones(16, 16)).view(1, 1, 16, 16)
        self.register_buffer("bias", mask)

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.to_qkv(x).split(C, dim=2)
        k = k.view(B, T, self.heads, C // self.heads).transpose(1, 2)
        q = q.view(B, T, self.heads, C // self.heads).transpose(1, 2)
        v = v.view(B, T, self.heads, C // self.heads).transpose(1, 2)
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))
        att = F.softmax(att, dim=-1)
        self.note(att)
        y = att @ v
        return self.to_out(y.transpose(1, 2).contiguous().view(B, T, C))


@pattern("self", variants=True)
class EinopsRearrange(FusedAttention):
    """lucidrains' vit-pytorch: chunk, then rearrange with a map."""

    def forward(self, x):
        qkv = self.to_qkv(x).chunk(3, dim=-1)
        q, k, v = (rearrange(t, "b n (h d) -> b h n d", h=self.heads) for t in qkv)
        dots = torch.matmul(q, k.transpose(-1, -2)) * self.scale
        attn = dots.softmax(dim=-1)
        self.note(attn)
        return self.to_out(rearrange(torch.matmul(attn, v), "b h n d -> b n (h d)"))


@pattern("self", variants=True)
class TimmReshapePermute(FusedAttention):
    """timm's vision transformer: reshape to five axes, permute, unbind."""

    def forward(self, x):
        B, N, C = x.shape
        qkv = self.to_qkv(x).reshape(B, N, 3, self.heads, C // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        q = q * self.scale
        attn = q @ k.transpose(-2, -1)
        attn = attn.softmax(dim=-1)
        self.note(attn)
        return self.to_out((attn @ v).transpose(1, 2).reshape(B, N, C))


@pattern("self")
class DinoIndexedPermute(FusedAttention):
    """DINO: the permuted tensor is indexed rather than unbound."""

    def forward(self, x):
        B, N, C = x.shape
        qkv = self.to_qkv(x).reshape(B, N, 3, self.heads, C // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv[0], qkv[1], qkv[2]
        attn = (q @ k.transpose(-2, -1)) * self.scale
        attn = attn.softmax(dim=-1)
        self.note(attn)
        return self.to_out((attn @ v).transpose(1, 2).reshape(B, N, C))


@pattern("self", variants=("all_equal", "batch=heads"))
class EinopsQkvFirst(FusedAttention):
    """BoTNet in lucidrains' style: one rearrange makes the axis of queries, keys and values."""

    def forward(self, x):
        q, k, v = rearrange(self.to_qkv(x), "b n (qkv h d) -> qkv b h n d", qkv=3, h=self.heads)
        sim = torch.einsum("b h i d, b h j d -> b h i j", q, k) * self.scale
        attn = sim.softmax(dim=-1)
        self.note(attn)
        out = torch.einsum("b h i j, b h j d -> b h i d", attn, v)
        return self.to_out(rearrange(out, "b h n d -> b n (h d)"))


@pattern("self", probe=None)
class GptNeoXHeadMajor(FusedAttention):
    """GPT-NeoX: the projection is viewed as (head, 3 * width) and split along the last axis."""

    def forward(self, x):
        B, N, _ = x.shape
        qkv = self.to_qkv(x).view(B, N, self.heads, 3 * self.head_width)
        q, k, v = (t.permute(0, 2, 1, 3) for t in qkv.split(self.head_width, dim=-1))
        attn = F.softmax(torch.matmul(q, k.mT) * self.scale, dim=-1)
        self.note(attn)
        return self.to_out(torch.matmul(attn, v).permute(0, 2, 1, 3).reshape(B, N, -1))


@pattern("self", variants=True)
class FoldedBatchMajor(Attention):
    """Stable Diffusion's first attention: rearrange to (b h) and einsum over three axes."""

    def forward(self, x):
        q, k, v = (
            rearrange(layer(x), "b n (h d) -> (b h) n d", h=self.heads)
            for layer in (self.to_q, self.to_k, self.to_v)
        )
        sim = torch.einsum("b i d, b j d -> b i j", q, k) * self.scale
        attn = sim.softmax(dim=-1)
        self.note(attn, "(b h) q k -> b h q k", h=self.heads)
        out = torch.einsum("b i j, b j d -> b i d", attn, v)
        return self.to_out(rearrange(out, "(b h) n d -> b n (h d)", h=self.heads))


@pattern("self", variants=True)
class FoldedHeadMajor(Attention):
    """Early ports of tensor2tensor: rearrange to (h b), with bmm."""

    def forward(self, x):
        q, k, v = (
            rearrange(layer(x), "b n (h d) -> (h b) n d", h=self.heads)
            for layer in (self.to_q, self.to_k, self.to_v)
        )
        attn = F.softmax(torch.bmm(q, k.transpose(1, 2)) * self.scale, dim=-1)
        self.note(attn, "(h b) q k -> b h q k", h=self.heads)
        return self.to_out(rearrange(torch.bmm(attn, v), "(h b) n d -> b n (h d)", h=self.heads))


@pattern("self", variants=True)
class D2LTransposeQkv(Attention):
    """Dive into Deep Learning: transpose_qkv with reshape(-1, n, d) and its inverse."""

    def transpose_qkv(self, X):
        X = X.reshape(X.shape[0], X.shape[1], self.heads, -1)
        X = X.permute(0, 2, 1, 3)
        return X.reshape(-1, X.shape[2], X.shape[3])

    def transpose_output(self, X):
        X = X.reshape(-1, self.heads, X.shape[1], X.shape[2])
        X = X.permute(0, 2, 1, 3)
        return X.reshape(X.shape[0], X.shape[1], -1)

    def forward(self, x):
        queries = self.transpose_qkv(self.to_q(x))
        keys = self.transpose_qkv(self.to_k(x))
        values = self.transpose_qkv(self.to_v(x))
        d = queries.shape[-1]
        scores = torch.bmm(queries, keys.transpose(1, 2)) / math.sqrt(d)
        attention_weights = nn.functional.softmax(scores, dim=-1)
        self.note(attention_weights, "(b h) q k -> b h q k", h=self.heads)
        output = torch.bmm(attention_weights, values)
        return self.to_out(self.transpose_output(output))


@pattern("self", variants=("batch=heads", "batch_of_1", "heads_of_1", "all_equal"))
class KyubyongChunkCat(Attention):
    """Kyubyong's Transformer: chunks of the width, concatenated along the batch: (h b)."""

    def forward(self, x):
        Q, K, V = self.to_q(x), self.to_k(x), self.to_v(x)
        Q_ = torch.cat(torch.chunk(Q, self.heads, dim=2), dim=0)
        K_ = torch.cat(torch.chunk(K, self.heads, dim=2), dim=0)
        V_ = torch.cat(torch.chunk(V, self.heads, dim=2), dim=0)
        outputs = torch.bmm(Q_, K_.permute(0, 2, 1)) / (K_.size(-1) ** 0.5)
        outputs = F.softmax(outputs, dim=-1)
        self.note(outputs, "(h b) q k -> b h q k", h=self.heads)
        outputs = torch.bmm(outputs, V_)
        return self.to_out(torch.cat(torch.chunk(outputs, self.heads, dim=0), dim=2))


@pattern("cross", variants=("batch=heads", "all_equal"))
class SetTransformerMab(Attention):
    """Set Transformer's MAB: split along the width, cat along the batch, with another text."""

    def forward(self, x, memory):
        q, k, v = self.to_q(x), self.to_k(memory), self.to_v(memory)
        q_ = torch.cat(q.split(self.head_width, 2), 0)
        k_ = torch.cat(k.split(self.head_width, 2), 0)
        v_ = torch.cat(v.split(self.head_width, 2), 0)
        a = torch.softmax(q_.bmm(k_.transpose(1, 2)) / math.sqrt(self.head_width), 2)
        self.note(a, "(h b) q k -> b h q k", h=self.heads)
        return self.to_out(torch.cat(a.bmm(v_).split(q.size(0), 0), 2))


@pattern("self", variants=("batch=heads", "heads=queries", "all_equal"))
class StackedChunks(Attention):
    """GST Tacotron: stack of split heads, which come first: (h, b, q, k)."""

    def forward(self, x):
        q, k, v = (
            torch.stack(torch.split(layer(x), self.head_width, dim=2), dim=0)
            for layer in (self.to_q, self.to_k, self.to_v)
        )
        scores = torch.matmul(q, k.transpose(2, 3)) / (self.head_width**0.5)
        scores = F.softmax(scores, dim=3)
        self.note(scores, "h b q k -> b h q k")
        out = torch.matmul(scores, v)
        return self.to_out(torch.cat(torch.split(out, 1, dim=0), dim=3).squeeze(0))


@pattern("self")
class StackedChunksSecond(Attention):
    """A tutorial: stack(chunk) with the heads as second axis."""

    def forward(self, x):
        q, k, v = (
            torch.stack(layer(x).chunk(self.heads, -1), dim=1)
            for layer in (self.to_q, self.to_k, self.to_v)
        )
        attn = (q @ k.mT * self.scale).softmax(-1)
        self.note(attn)
        return self.to_out(torch.cat((attn @ v).unbind(1), dim=-1))


@pattern("self", variants=True)
class HeadsFirst(Attention):
    """Attention-is-all-you-need ports: permute(2, 0, 1, 3), without folding."""

    def forward(self, x):
        q, k, v = (
            layer(x).unflatten(-1, (self.heads, -1)).permute(2, 0, 1, 3)
            for layer in (self.to_q, self.to_k, self.to_v)
        )
        attn = torch.softmax(torch.matmul(q, k.transpose(-1, -2)) * self.scale, dim=-1)
        self.note(attn, "h b q k -> b h q k")
        return self.to_out(torch.matmul(attn, v).permute(1, 2, 0, 3).flatten(2))


@pattern("self", variants=("batch=heads", "batch_of_1", "all_equal"))
class JadoreFolded(Attention):
    """jadore801120's Transformer: permute(2, 0, 1, 3) and view(-1, n, d): (h b)."""

    def forward(self, x):
        size, n, _ = x.size()
        q, k, v = (
            layer(x).view(size, n, self.heads, self.head_width)
            for layer in (self.to_q, self.to_k, self.to_v)
        )
        q = q.permute(2, 0, 1, 3).contiguous().view(-1, n, self.head_width)
        k = k.permute(2, 0, 1, 3).contiguous().view(-1, n, self.head_width)
        v = v.permute(2, 0, 1, 3).contiguous().view(-1, n, self.head_width)
        attn = torch.bmm(q, k.transpose(1, 2)) / math.sqrt(self.head_width)
        attn = F.softmax(attn, dim=2)
        self.note(attn, "(h b) q k -> b h q k", h=self.heads)
        output = torch.bmm(attn, v).view(self.heads, size, n, self.head_width)
        return self.to_out(output.permute(1, 2, 0, 3).contiguous().view(size, n, -1))


@pattern("self", inputs=seq_first, probe="q b (h d)", probe_axis=0, variants=True)
class FairseqSeqFirst(Attention):
    """fairseq: (time, batch, width), viewed as (time, batch * head, width) and transposed."""

    def forward(self, x):
        tgt_len, bsz, embed_dim = x.size()
        q, k, v = self.to_q(x) * self.scale, self.to_k(x), self.to_v(x)
        q = q.contiguous().view(tgt_len, bsz * self.heads, self.head_width).transpose(0, 1)
        k = k.contiguous().view(-1, bsz * self.heads, self.head_width).transpose(0, 1)
        v = v.contiguous().view(-1, bsz * self.heads, self.head_width).transpose(0, 1)
        attn_weights = torch.bmm(q, k.transpose(1, 2))
        attn_weights = F.softmax(attn_weights, dim=-1, dtype=torch.float32).type_as(attn_weights)
        self.note(attn_weights, "(b h) q k -> b h q k", h=self.heads)
        attn = torch.bmm(attn_weights, v)
        attn = attn.transpose(0, 1).contiguous().view(tgt_len, bsz, embed_dim)
        return self.to_out(attn)


@pattern("self", inputs=seq_first, probe="q b (h d)", probe_axis=0, variants=("all_equal",))
class TransformerXlSeqFirst(Attention):
    """Transformer-XL: (query, key, batch, head) from an einsum, softmax over axis 1."""

    def forward(self, x):
        qlen, bsz = x.size(0), x.size(1)
        w_head_q = self.to_q(x).view(qlen, bsz, self.heads, self.head_width)
        w_head_k = self.to_k(x).view(qlen, bsz, self.heads, self.head_width)
        w_head_v = self.to_v(x).view(qlen, bsz, self.heads, self.head_width)
        attn_score = torch.einsum("ibnd,jbnd->ijbn", (w_head_q, w_head_k))
        attn_score.mul_(self.scale)
        attn_prob = F.softmax(attn_score, dim=1)
        self.note(attn_prob, "q k b h -> b h q k")
        attn_vec = torch.einsum("ijbn,jbnd->ibnd", (attn_prob, w_head_v))
        return self.to_out(attn_vec.contiguous().view(qlen, bsz, -1))


@pattern("self", inputs=unbatched, probe="q (h d)", probe_axis=0, variants=("heads=queries",))
class UnbatchedHeads(Attention):
    """A text at a time: (h, q, k) without batch."""

    def forward(self, x):
        q, k, v = (
            layer(x).view(-1, self.heads, self.head_width).transpose(0, 1)
            for layer in (self.to_q, self.to_k, self.to_v)
        )
        attn = torch.softmax(q @ k.transpose(1, 2) * self.scale, dim=-1)
        self.note(attn, "h q k -> 1 h q k")
        return self.to_out((attn @ v).transpose(0, 1).reshape(x.shape[0], -1))


@pattern("self", inputs=unbatched, probe="q (h d)", probe_axis=0, sizes=Sizes(heads=1))
class Unbatched(Attention):
    """Raschka's first self-attention: (q, k) without batch or heads."""

    def forward(self, x):
        keys, queries, values = self.to_k(x), self.to_q(x), self.to_v(x)
        attn_scores = queries @ keys.T
        attn_weights = torch.softmax(attn_scores / keys.shape[-1] ** 0.5, dim=-1)
        self.note(attn_weights, "q k -> 1 1 q k")
        return self.to_out(attn_weights @ values)


@pattern("cross", inputs=unbatched_pair, probe="q (h d)", probe_axis=0, sizes=Sizes(heads=1))
class UnbatchedCross(Attention):
    """Raschka's cross-attention: (q, k) of two texts."""

    def forward(self, x, memory):
        weights = torch.softmax(self.to_q(x) @ self.to_k(memory).T / 12**0.5, dim=-1)
        self.note(weights, "q k -> 1 1 q k")
        return self.to_out(weights @ self.to_v(memory))


@pattern("self", sizes=Sizes(heads=1), variants=("heads_of_1",))
class SingleHead(Attention):
    """A single head without an axis for it: (b, q, k)."""

    def forward(self, x):
        q, k, v = self.to_q(x), self.to_k(x), self.to_v(x)
        attn = F.softmax(torch.bmm(q, k.transpose(1, 2)) / math.sqrt(q.size(-1)), dim=-1)
        self.note(attn, "b q k -> b 1 q k")
        return self.to_out(torch.bmm(attn, v))


class Head(Attention):
    """One head as a module of its own."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.to_q, self.to_k = sharp_linear(sizes.width, 4), sharp_linear(sizes.width, 4)
        self.to_v = nn.Linear(sizes.width, 4)

    def forward(self, x):
        q, k, v = self.to_q(x), self.to_k(x), self.to_v(x)
        wei = q @ k.transpose(-2, -1) * k.shape[-1] ** -0.5
        wei = wei.masked_fill(torch.ones(x.shape[1], x.shape[1]).tril() == 0, float("-inf"))
        wei = F.softmax(wei, dim=-1)
        self.note(wei, "b q k -> b 1 q k")
        return wei @ v


@pattern("causal", "causal", "causal", names=("heads.0", "heads.1", "heads.2"))
class HeadModules(nn.Module):
    """Karpathy's lecture: a list of head modules, each called by itself."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.heads = nn.ModuleList([Head(sizes) for _ in range(3)])
        self.proj = nn.Linear(12, sizes.width)

    def forward(self, x):
        return self.proj(torch.cat([head(x) for head in self.heads], dim=-1))


@pattern("self", "self", "self")
class HeadLoop(Bare):
    """A tutorial: per-head Linear layers in lists, one loop over the heads."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        layers = [nn.ModuleList([sharp_linear(sizes.width, 4) for _ in range(3)]) for _ in range(3)]
        self.w_q, self.w_k, self.w_v = layers

    def forward(self, x):
        outputs = []
        for w_q, w_k, w_v in zip(self.w_q, self.w_k, self.w_v, strict=True):
            attn = (w_q(x) @ w_k(x).mT / 2).softmax(-1)
            self.note(attn, "b q k -> b 1 q k")
            outputs.append(attn @ w_v(x))
        return torch.cat(outputs, dim=-1)


@pattern("self", inputs=image, variants=("batch=heads", "all_equal"))
class ConvChannels(Bare):
    """lucidrains' diffusion models: heads from the channels of a 1x1 convolution."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.to_qkv_conv = nn.Conv2d(sizes.width, 3 * sizes.width, 1, bias=False)
        nn.init.normal_(self.to_qkv_conv.weight, 0, 0.5)
        self.to_out_conv = nn.Conv2d(sizes.width, sizes.width, 1)

    def forward(self, x):
        h, w = x.shape[-2:]
        qkv = self.to_qkv_conv(x).chunk(3, dim=1)
        q, k, v = (rearrange(t, "b (h c) x y -> b h c (x y)", h=self.heads) for t in qkv)
        q = q * self.scale
        sim = torch.einsum("b h d i, b h d j -> b h i j", q, k)
        attn = sim.softmax(dim=-1)
        self.note(attn)
        out = torch.einsum("b h i j, b h d j -> b h i d", attn, v)
        return self.to_out_conv(rearrange(out, "b h (x y) d -> b (h d) x y", x=h, y=w))


@pattern("self", inputs=image)
class GuidedDiffusionQkv(Bare):
    """OpenAI's guided diffusion: (b * h, 3 * d, n) reshaped from channels, both sides scaled."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.qkv = nn.Conv1d(sizes.width, 3 * sizes.width, 1)
        nn.init.normal_(self.qkv.weight, 0, 0.5)

    def forward(self, x):
        bs, _, *spatial = x.shape
        qkv = self.qkv(x.flatten(2))
        length = qkv.shape[-1]
        ch = self.head_width
        q, k, v = qkv.reshape(bs * self.heads, ch * 3, length).split(ch, dim=1)
        scale = 1 / math.sqrt(math.sqrt(ch))
        weight = torch.einsum("bct,bcs->bts", q * scale, k * scale)
        weight = torch.softmax(weight.float(), dim=-1).type(weight.dtype)
        self.note(weight, "(b h) q k -> b h q k", h=self.heads)
        a = torch.einsum("bts,bcs->bct", weight, v)
        return a.reshape(bs, -1, *spatial)


@pattern("self", inputs=image, sizes=Sizes(heads=1))
class SaganNonLocal(Bare):
    """SAGAN and CycleGAN forks: bmm(value, attention transposed) over flattened pixels."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.query_conv = nn.Conv2d(sizes.width, 4, 1)
        self.key_conv = nn.Conv2d(sizes.width, 4, 1)
        self.value_conv = nn.Conv2d(sizes.width, sizes.width, 1)
        self.gamma = nn.Parameter(torch.full((1,), 0.5))

    def forward(self, x):
        B, C, W, H = x.size()
        proj_query = self.query_conv(x).view(B, -1, W * H).permute(0, 2, 1)
        proj_key = self.key_conv(x).view(B, -1, W * H)
        attention = torch.softmax(torch.bmm(proj_query, proj_key), dim=-1)
        self.note(attention, "b q k -> b 1 q k")
        proj_value = self.value_conv(x).view(B, -1, W * H)
        out = torch.bmm(proj_value, attention.permute(0, 2, 1)).view(B, C, W, H)
        return self.gamma * out + x


@pattern("self", inputs=image, sizes=Sizes(heads=1))
class NonLocalColumns(Bare):
    """Non-local networks: softmax over the last axis of (key, query) products transposed."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.theta = nn.Conv2d(sizes.width, 4, 1)
        self.phi = nn.Conv2d(sizes.width, 4, 1)
        self.g = nn.Conv2d(sizes.width, 4, 1)
        self.w = nn.Conv2d(4, sizes.width, 1)

    def forward(self, x):
        batch = x.size(0)
        g_x = self.g(x).view(batch, 4, -1).permute(0, 2, 1)
        theta_x = self.theta(x).view(batch, 4, -1).permute(0, 2, 1)
        f = torch.matmul(theta_x, self.phi(x).view(batch, 4, -1))
        f_div_c = F.softmax(f, dim=-1)
        self.note(f_div_c, "b q k -> b 1 q k")
        y = torch.matmul(f_div_c, g_x).permute(0, 2, 1).contiguous()
        return self.w(y.view(batch, 4, *x.size()[2:])) + x


@pattern("self", probe="b q (d h)", variants=("batch=heads", "tokens=head_width", "all_equal"))
class InterleavedHeads(Attention):
    """The AI Summer: heads are the last axis of the width, (d h) rather than (h d)."""

    def forward(self, x):
        q, k, v = (
            rearrange(layer(x), "b t (d h) -> b h t d", h=self.heads)
            for layer in (self.to_q, self.to_k, self.to_v)
        )
        scaled = torch.einsum("b h i d, b h j d -> b h i j", q, k) * self.scale
        attention = torch.softmax(scaled, dim=-1)
        self.note(attention)
        out = torch.einsum("b h i j, b h j d -> b h i d", attention, v)
        return self.to_out(rearrange(out, "b h t d -> b t (d h)"))


@pattern("self", probe="b q (d h)")
class InterleavedView(Attention):
    """SuperGlue: view(batch, width, head, n) of channels, so that heads are interleaved."""

    def forward(self, x):
        batch, n, _ = x.shape
        query, key, value = (
            layer(x).transpose(1, 2).reshape(batch, self.head_width, self.heads, n)
            for layer in (self.to_q, self.to_k, self.to_v)
        )
        scores = torch.einsum("bdhn,bdhm->bhnm", query, key) * self.scale
        prob = torch.nn.functional.softmax(scores, dim=-1)
        self.note(prob)
        out = torch.einsum("bhnm,bdhm->bdhn", prob, value)
        return self.to_out(out.reshape(batch, -1, n).transpose(1, 2))


@pattern("self", variants=("heads=queries", "all_equal"))
class HeadsThird(Attention):
    """Flax style: heads stay in the third axis, (b, q, h, k) from an einsum."""

    def forward(self, x):
        q, k, v = (
            layer(x).unflatten(-1, (self.heads, -1)) for layer in (self.to_q, self.to_k, self.to_v)
        )
        attn = torch.einsum("bqhd,bkhd->bqhk", q, k).mul(self.scale).softmax(dim=-1)
        self.note(attn, "b q h k -> b h q k")
        return self.to_out(torch.einsum("bqhk,bkhd->bqhd", attn, v).flatten(-2))


@pattern("self")
class HeadsLast(Attention):
    """Reformer-like ports: (b, q, k, h), softmax over the second to last axis."""

    def forward(self, x):
        q, k, v = (
            layer(x).unflatten(-1, (self.heads, -1)) for layer in (self.to_q, self.to_k, self.to_v)
        )
        attn = torch.einsum("bihd,bjhd->bijh", q, k).mul(self.scale).softmax(dim=2)
        self.note(attn, "b q k h -> b h q k")
        return self.to_out(torch.einsum("bijh,bjhd->bihd", attn, v).flatten(-2))


@pattern("self")
class HeadsLastByBroadcast(Attention):
    """Score of all pairs by broadcasting: (b, q, k, h), weights times values, summed."""

    def forward(self, x):
        q, k, v = (
            layer(x).unflatten(-1, (self.heads, -1)) for layer in (self.to_q, self.to_k, self.to_v)
        )
        attn = (q[:, :, None] * k[:, None] * self.scale).sum(-1).softmax(dim=2)
        self.note(attn, "b q k h -> b h q k")
        return self.to_out((attn[..., None] * v[:, None]).sum(dim=2).flatten(-2))


@pattern("self", probe=None, variants=("batch=heads", "heads=queries", "heads_of_1"))
class StackedHeadsFirst(Bare):
    """Heads are stacked before the batch: (head, batch, query, key) without projections."""

    def forward(self, x):
        heads = torch.stack([x * (n + 1) for n in range(self.heads)]).sin()
        attn = (heads @ heads.mT * self.scale).softmax(-1)
        self.note(attn, "h b q k -> b h q k")
        return attn @ heads
