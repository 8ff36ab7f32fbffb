"""Queries and keys of different texts: decoders, latents, object queries, recurrent decoders."""

import torch
import torch.nn.functional as F
from einops import rearrange, repeat
from torch import Tensor, nn

from capture.patterns.base import (
    Attention,
    Bare,
    Sizes,
    one_long_text,
    pattern,
    sharp_linear,
)

SAME_LENGTH = Sizes(queries=6, keys=6)


def heads_of(rows: Tensor, heads: int) -> Tensor:
    return rows.unflatten(-1, (heads, -1)).transpose(1, 2)


class Layer(Attention):
    """Attention of a text to a memory, or to itself."""

    def forward(self, x, memory=None, mask=None):
        memory = x if memory is None else memory
        q, k, v = (
            heads_of(t, self.heads) for t in (self.to_q(x), self.to_k(memory), self.to_v(memory))
        )
        scores = torch.matmul(q, k.transpose(-2, -1)) * self.scale
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e9)
        attn = F.softmax(scores, dim=-1)
        self.note(attn)
        return self.to_out(torch.matmul(attn, v).transpose(1, 2).flatten(2))


@pattern("cross", variants=True)
class CrossLayer(Layer):
    """Encoder-decoder attention by itself: two inputs."""


@pattern("cross", sizes=SAME_LENGTH)
class CrossOfEqualLengths(Layer):
    """Source and target happen to have the same length."""


@pattern("self", "causal", "cross", names=("encoder", "decoder", "cross"))
class EncoderDecoder(nn.Module):
    """A layer each of encoder and decoder, as in the annotated Transformer."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.encoder, self.decoder, self.cross = (Layer(sizes) for _ in range(3))

    def forward(self, target, source):
        memory = source + self.encoder(source)
        n = target.shape[1]
        target = target + self.decoder(target, mask=torch.ones(1, 1, n, n).tril())
        return target + self.cross(target, memory)


@pattern(*("self", "causal", "cross"), names=("encoder", "decoder", "cross"), sizes=SAME_LENGTH)
class EncoderDecoderOfEqualLengths(EncoderDecoder):
    """The same with equal lengths: only where rows come from tells them apart."""


@pattern("cross", "self", names=("cross", "latent"), inputs=one_long_text)
class Perceiver(nn.Module):
    """Perceiver in lucidrains' style: repeated latents attend to the inputs, then to themselves."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.latents = nn.Parameter(torch.randn(4, sizes.width))
        self.cross, self.latent = Layer(sizes), Layer(sizes)

    def forward(self, data):
        x = repeat(self.latents, "n d -> b n d", b=data.shape[0])
        x = self.cross(x, data) + x
        return self.latent(x) + x


@pattern("cross", inputs=one_long_text, names=("cross",))
class PerceiverOfEqualLengths(nn.Module):
    """As many latents as inputs."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.latents = nn.Parameter(torch.randn(1, sizes.keys, sizes.width))
        self.cross = Layer(sizes)

    def forward(self, data):
        return self.cross(self.latents.expand(len(data), -1, -1), data)


@pattern("cross", inputs=one_long_text, probe=None)
class FlamingoResampler(Attention):
    """Flamingo: latents attend to the inputs and the latents, concatenated."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.latents = nn.Parameter(torch.randn(4, sizes.width))

    def forward(self, x):
        latents = repeat(self.latents, "n d -> b n d", b=len(x))
        memory = torch.cat((x, latents), dim=-2)
        q, k, v = (
            heads_of(t, self.heads)
            for t in (self.to_q(latents), self.to_k(memory), self.to_v(memory))
        )
        sim = torch.einsum("... i d, ... j d -> ... i j", q * self.scale, k)
        sim = sim - sim.amax(dim=-1, keepdim=True).detach()
        attn = sim.softmax(dim=-1)
        self.note(attn)
        out = torch.einsum("... i j, ... j d -> ... i d", attn, v)
        return self.to_out(rearrange(out, "b h n d -> b n (h d)"))


@pattern("cross", inputs=one_long_text, names=("multihead_attn",))
class DetrObjectQueries(Bare):
    """DETR: object queries as positions of a target of zeros, in nn.MultiheadAttention."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.query_embed = nn.Embedding(4, sizes.width)
        self.multihead_attn = nn.MultiheadAttention(sizes.width, sizes.heads)
        nn.init.normal_(self.multihead_attn.in_proj_weight, 0, 0.5)

    def forward(self, memory):
        memory = memory.transpose(0, 1)
        query_pos = self.query_embed.weight.unsqueeze(1).repeat(1, memory.shape[1], 1)
        tgt = torch.zeros_like(query_pos)
        q = tgt + query_pos
        if self.truth is not None:
            w_q, w_k, _ = self.multihead_attn.in_proj_weight.chunk(3)
            sides = F.linear(q, w_q), F.linear(memory, w_k)
            self.note_dot_product(
                *(rearrange(t, "n b (h d) -> b h n d", h=self.heads) for t in sides)
            )
        return self.multihead_attn(query=q, key=memory, value=memory)[0]


@pattern("cross", "cross", names=("down", "up"))
class InducedSetAttention(nn.Module):
    """Set Transformer's ISAB: inducing points attend to the set, the set to them."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.points = nn.Parameter(torch.randn(1, 4, sizes.width))
        self.down, self.up = Layer(sizes), Layer(sizes)

    def forward(self, x, _):
        h = self.down(self.points.repeat(x.size(0), 1, 1), x)
        return self.up(x, h)


@pattern("cross", inputs=one_long_text, probe=None)
class ClassAttention(Attention):
    """CaiT's class attention: the class token is the only query."""

    def forward(self, x):
        b, n, c = x.shape
        q = self.to_q(x[:, 0]).unsqueeze(1).reshape(b, 1, self.heads, -1).permute(0, 2, 1, 3)
        k = self.to_k(x).reshape(b, n, self.heads, -1).permute(0, 2, 1, 3)
        v = self.to_v(x).reshape(b, n, self.heads, -1).permute(0, 2, 1, 3)
        attn = (q * self.scale @ k.transpose(-2, -1)).softmax(dim=-1)
        self.note(attn)
        return self.to_out((attn @ v).transpose(1, 2).reshape(b, 1, c))


@pattern("cross", inputs=one_long_text, probe=None)
class ClassTokenSlice(Attention):
    """CrossViT: the class token as a slice of one row."""

    def forward(self, x):
        q = heads_of(self.to_q(x[:, 0:1, ...]), self.heads)
        k, v = heads_of(self.to_k(x), self.heads), heads_of(self.to_v(x), self.heads)
        attn = (q @ k.mT * self.scale).softmax(-1)
        self.note(attn)
        return self.to_out((attn @ v).transpose(1, 2).flatten(2))


class Recurrent(Bare):
    """Base of recurrent decoders: one query per step over a memory, one record."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        width = sizes.width
        self.W, self.U, self.v = sharp_linear(width, 8), sharp_linear(width, 8), nn.Linear(8, 1)
        nn.init.normal_(self.v.weight)
        self.cell = nn.GRUCell(width, width)

    def forward(self, memory):
        state, outputs = memory.mean(1), []
        for _ in range(self.sizes.queries):
            state = self.cell(self.attend(state, memory), state)
            outputs.append(state)
        return torch.stack(outputs, dim=1)

    def attend(self, state: Tensor, memory: Tensor) -> Tensor:
        raise NotImplementedError


@pattern("cross", inputs=one_long_text, steps=True, variants=("batch_of_1",))
class BahdanauMulSum(Recurrent):
    """TensorFlow's tutorial, ported: additive scores, weights times values, summed."""

    def attend(self, state, memory):
        scores = self.v(torch.tanh(self.W(state).unsqueeze(1) + self.U(memory)))
        weights = torch.softmax(scores, dim=1)
        self.note(weights, "b k 1 -> b 1 1 k")
        return (weights * memory).sum(dim=1)


@pattern("cross", inputs=one_long_text, steps=True, variants=("batch_of_1",))
class BahdanauBmm(Recurrent):
    """PyTorch's seq2seq tutorial: squeeze, unsqueeze, softmax, bmm."""

    def attend(self, state, memory):
        scores = self.v(torch.tanh(self.W(state.unsqueeze(1)) + self.U(memory)))
        scores = scores.squeeze(2).unsqueeze(1)
        weights = F.softmax(scores, dim=-1)
        self.note(weights, "b 1 k -> b 1 1 k")
        return torch.bmm(weights, memory).squeeze(1)


@pattern("cross", inputs=one_long_text, steps=True, variants=("batch_of_1",))
class BahdanauSeqFirst(Recurrent):
    """Ben Trevett's tutorial: repeated states, cat, energy, weights (batch, source)."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.attn = sharp_linear(2 * sizes.width, 8)

    def attend(self, state, memory):
        hidden = state.unsqueeze(1).repeat(1, memory.shape[1], 1)
        energy = torch.tanh(self.attn(torch.cat((hidden, memory), dim=2)))
        a = F.softmax(self.v(energy).squeeze(2), dim=1)
        self.note(a, "b k -> b 1 1 k")
        return torch.bmm(a.unsqueeze(1), memory)[:, 0]


@pattern("cross", inputs=one_long_text, steps=True, variants=("batch_of_1",))
class LuongDot(Recurrent):
    """Luong's dot score by bmm, softmax over (batch, source), bmm again."""

    def attend(self, state, memory):
        scores = torch.bmm(memory, state.unsqueeze(2)).squeeze(2)
        weights = F.softmax(scores, dim=1)
        self.note(weights, "b k -> b 1 1 k")
        return torch.bmm(memory.transpose(1, 2), weights.unsqueeze(2)).squeeze(2)


@pattern("cross", inputs=one_long_text, steps=True)
class LuongGeneralSeqFirst(Recurrent):
    """PyTorch's chatbot tutorial: general score by product and sum, (source, batch) transposed."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.attn = sharp_linear(sizes.width, sizes.width)

    def attend(self, state, memory):
        outputs = memory.transpose(0, 1)
        energies = torch.sum(state[None] * self.attn(outputs), dim=2).t()
        weights = F.softmax(energies, dim=1).unsqueeze(1)
        self.note(weights, "b 1 k -> b 1 1 k")
        return weights.bmm(outputs.transpose(0, 1)).squeeze(1)


@pattern("cross")
class LuongAllSteps(Bare):
    """Teacher forcing: all decoder states at once."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.rnn = nn.GRU(sizes.width, sizes.width, batch_first=True)
        self.general = sharp_linear(sizes.width, sizes.width)

    def forward(self, target, memory):
        states, _ = self.rnn(target)
        scores = torch.bmm(states, self.general(memory).transpose(1, 2))
        weights = scores.softmax(dim=2)
        self.note(weights, "b q k -> b 1 q k")
        return torch.cat([torch.bmm(weights, memory), states], dim=2)


@pattern("cross")
class AdditiveAllPairs(Bare):
    """D2L's additive attention: broadcast sum of all pairs, tanh, Linear to one."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.W_q, self.W_k = (nn.Linear(sizes.width, 8, bias=False) for _ in range(2))
        self.w_v = nn.Linear(8, 1, bias=False)

    def forward(self, queries, keys):
        features = self.W_q(queries).unsqueeze(2) + self.W_k(keys).unsqueeze(1)
        scores = self.w_v(torch.tanh(features)).squeeze(-1)
        weights = nn.functional.softmax(scores, dim=-1)
        self.note(weights, "b q k -> b 1 q k")
        return torch.bmm(weights, keys)


@pattern("cross")
class NadarayaWatson(Bare):
    """D2L's kernel regression: Gaussian distances as scores, keys repeated."""

    def forward(self, queries, keys):
        queries, values = queries[..., 0], keys[..., 1]
        keys = keys[:, None, :, 0].expand(-1, queries.shape[1], -1)
        weights = torch.softmax(-((queries.unsqueeze(2) - keys) ** 2) / 2, dim=-1)
        self.note(weights, "b q k -> b 1 q k")
        return torch.bmm(weights, values.unsqueeze(-1)).squeeze(-1)


@pattern("cross", inputs=one_long_text, steps=True, variants=("batch_of_1",))
class EncoderStatesStacked(Recurrent):
    """Keys are encoder states, appended to a list and stacked over time: these are positions."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.encoder = nn.GRUCell(sizes.width, sizes.width)

    def forward(self, source):
        state, states = torch.zeros_like(source[:, 0]), []
        for t in range(source.shape[1]):
            state = self.encoder(source[:, t], state)
            states.append(state)
        return super().forward(torch.stack(states, 1))

    def attend(self, state, memory):
        weights = torch.einsum("bd,bkd->bk", self.W(state), self.U(memory)).softmax(-1)
        self.note(weights, "b k -> b 1 1 k")
        return torch.einsum("bk,bkd->bd", weights, memory)


@pattern("cross", inputs=one_long_text)
class EncoderStatesCat(Bare):
    """Keys are states joined by cat of unsqueezed rows, read once at the end."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.encoder = nn.GRUCell(sizes.width, sizes.width)

    def forward(self, source):
        state, states = torch.zeros_like(source[:, 0]), []
        for row in source.unbind(1):
            state = self.encoder(row, state)
            states.append(state.unsqueeze(1))
        memory = torch.cat(states, dim=1)
        weights = torch.bmm(memory, state.unsqueeze(-1)).squeeze(-1).softmax(-1)
        self.note(weights, "b k -> b 1 1 k")
        return (memory * weights.unsqueeze(-1)).sum(1)


@pattern("cross", inputs=one_long_text, steps=True)
class EarlierStates(Bare):
    """Attention of a language model's state to all states before: memory grows by one."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.cell = nn.GRUCell(sizes.width, sizes.width)
        self.query = sharp_linear(sizes.width, sizes.width)

    def forward(self, source):
        state = torch.zeros_like(source[:, 0])
        states = [self.cell(row, state) for row in source.unbind(1)]
        memory = torch.stack(states, 1)
        out = []
        for row in states[:4]:
            weights = F.softmax((memory @ self.query(row).unsqueeze(-1)).squeeze(-1), dim=-1)
            self.note(weights, "b k -> b 1 1 k")
            out.append((weights.unsqueeze(1) @ memory).squeeze(1))
        return torch.stack(out, 1)


@pattern("cross", "cross", names=("a_to_b", "b_to_a"))
class CoAttentionLayers(nn.Module):
    """ViLBERT: two texts attend to each other."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.a_to_b, self.b_to_a = Layer(sizes), Layer(sizes)

    def forward(self, a, b):
        return self.a_to_b(a, b), self.b_to_a(b, a)


@pattern("cross", "cross")
class BidirectionalAttention(Bare):
    """Decomposable attention (ESIM): one score matrix, softmax over either side."""

    def forward(self, a, b):
        scores = torch.matmul(a, b.transpose(1, 2))
        to_b = F.softmax(scores, dim=-1)
        self.note(to_b, "b q k -> b 1 q k")
        from_b = torch.matmul(to_b, b)
        to_a = F.softmax(scores, dim=1)
        self.note(to_a, "b k q -> b 1 q k")
        return from_b, torch.matmul(to_a.transpose(1, 2), a)


@pattern("cross", "cross")
class BidafQueryToContext(Bare):
    """BiDAF: context to query by bmm, and query to context by the maximum of each row."""

    def forward(self, context, question):
        similarity = torch.bmm(context, question.transpose(1, 2))
        c2q = F.softmax(similarity, dim=2)
        self.note(c2q, "b q k -> b 1 q k")
        attended = torch.bmm(c2q, question)
        b = F.softmax(similarity.max(dim=2).values, dim=1).unsqueeze(1)
        self.note(b, "b 1 k -> b 1 1 k")
        summary = torch.bmm(b, context).expand_as(context)
        return torch.cat([context, attended, context * summary], dim=-1)
