"""How scores and contexts are multiplied: matmul, bmm, einsum in many letters, broadcasting."""

import math

import torch
import torch.nn.functional as F
from einops import einsum
from torch import Tensor

from capture.patterns.base import Attention, Sizes, pattern

SOME = ("batch=heads", "all_equal")


class Cross(Attention):
    """Base of the products: heads are split, `attend` multiplies, heads are joined."""

    def forward(self, x, memory):
        q, k, v = (
            layer(rows).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for layer, rows in ((self.to_q, x), (self.to_k, memory), (self.to_v, memory))
        )
        return self.to_out(self.attend(q, k, v).transpose(1, 2).flatten(2))

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        raise NotImplementedError


@pattern("cross", variants=True)
class Matmul(Cross):
    """The usual one: torch.matmul twice."""

    def attend(self, q, k, v):
        attn = torch.matmul(q, k.transpose(-2, -1)).div(math.sqrt(q.size(-1))).softmax(-1)
        self.note(attn)
        return torch.matmul(attn, v)


@pattern("cross")
class Operator(Cross):
    """Notebooks: the operator @ and mT."""

    def attend(self, q, k, v):
        attn = (q @ k.mT * self.scale).softmax(-1)
        self.note(attn)
        return attn @ v


@pattern("cross")
class KeysTransposedInAdvance(Attention):
    """BERT forks: keys are permuted to (b, h, d, k) when they are split."""

    def forward(self, x, memory):
        q = self.to_q(x).unflatten(-1, (self.heads, -1)).permute(0, 2, 1, 3)
        k = self.to_k(memory).unflatten(-1, (self.heads, -1)).permute(0, 2, 3, 1)
        v = self.to_v(memory).unflatten(-1, (self.heads, -1)).permute(0, 2, 1, 3)
        attn = F.softmax(torch.matmul(q, k) / math.sqrt(self.head_width), dim=-1)
        self.note(attn)
        return self.to_out(torch.matmul(attn, v).permute(0, 2, 1, 3).flatten(2))


@pattern("cross", variants=SOME)
class BmmOfFlattened(Cross):
    """flatten(0, 1), bmm and unflatten around the softmax only."""

    def attend(self, q, k, v):
        q, k, v = (t.flatten(0, 1) for t in (q, k, v))
        attn = torch.bmm(q, k.mT).mul(self.scale).softmax(-1)
        self.note(attn, "(b h) q k -> b h q k", h=self.heads)
        return torch.bmm(attn, v).unflatten(0, (-1, self.heads))


@pattern("cross", variants=SOME)
class BmmOfFlattenedWeights(Cross):
    """OPT: four axes for the mask, three for the softmax and the products."""

    def attend(self, q, k, v):
        b, h, n, _ = q.shape
        m = k.shape[2]
        q, k, v = (t.reshape(b * h, -1, self.head_width) for t in (q, k, v))
        scores = torch.bmm(q * self.scale, k.transpose(1, 2))
        scores = scores.view(b, h, n, m) + torch.zeros(b, 1, n, m)
        attn = F.softmax(scores.view(b * h, n, m), dim=-1)
        self.note(attn, "(b h) q k -> b h q k", h=h)
        return torch.bmm(attn, v).view(b, h, n, -1)


@pattern("cross", variants=SOME)
class Baddbmm(Cross):
    """Megatron and Bloom: baddbmm with a bias and alpha, softmax over four axes."""

    def attend(self, q, k, v):
        b, h, n, _ = q.shape
        m = k.shape[2]
        bias = torch.linspace(0, 1, m).expand(b * h, n, m)
        scores = torch.baddbmm(
            bias, q.flatten(0, 1), k.flatten(0, 1).transpose(1, 2), beta=1.0, alpha=self.scale
        )
        attn = F.softmax(scores.view(b, h, n, m), dim=-1)
        self.note(attn)
        context = torch.bmm(attn.view(b * h, n, m), v.flatten(0, 1))
        return context.view(b, h, n, -1)


@pattern("cross")
class BaddbmmEmpty(Cross):
    """diffusers: baddbmm onto an empty tensor with beta=0."""

    def attend(self, q, k, v):
        q, k, v = (t.flatten(0, 1) for t in (q, k, v))
        empty = torch.empty(q.shape[0], q.shape[1], k.shape[1])
        scores = torch.baddbmm(empty, q, k.transpose(-1, -2), beta=0, alpha=self.scale)
        attn = scores.softmax(dim=-1)
        self.note(attn, "(b h) q k -> b h q k", h=self.heads)
        return torch.bmm(attn, v).unflatten(0, (-1, self.heads))


def einsum_pattern(scores: str, context: str, layout: str, dim: int) -> type[Cross]:
    """Return attention by two einsums; the weights are softmaxed along `dim`."""

    class Einsum(Cross):
        def attend(self, q, k, v):
            attn = torch.einsum(scores, q, k).mul(self.scale).softmax(dim)
            self.note(attn, f"{layout} -> b h q k")
            return torch.einsum(context, attn, v)

    return Einsum


@pattern("cross", variants=True)
class EinsumBhqk(einsum_pattern("bhqd,bhkd->bhqk", "bhqk,bhkd->bhqd", "b h q k", -1)):
    """Letters in the usual order."""


@pattern("cross", variants=SOME)
class EinsumQbhk(einsum_pattern("bhqd,bhkd->qbhk", "qbhk,bhkd->bhqd", "q b h k", -1)):
    """Queries first."""


@pattern("cross", variants=SOME)
class EinsumHbqk(einsum_pattern("bhqd,bhkd->hbqk", "hbqk,bhkd->bhqd", "h b q k", -1)):
    """Heads first."""


@pattern("cross", variants=SOME)
class EinsumBhkq(einsum_pattern("bhqd,bhkd->bhkq", "bhkq,bhkd->bhqd", "b h k q", 2)):
    """Keys before queries: the softmax is over the second to last axis."""


@pattern("cross", variants=SOME)
class EinsumKqhb(einsum_pattern("bhqd,bhkd->kqhb", "kqhb,bhkd->bhqd", "k q h b", 0)):
    """Everything in reverse: the softmax is over the first axis."""


@pattern("cross")
class EinsumBqkh(einsum_pattern("bhqd,bhkd->bqkh", "bqkh,bhkd->bhqd", "b q k h", 2)):
    """Heads last, as in graph transformers."""


@pattern("cross")
class EinsumEllipsis(Cross):
    """Ellipses for batch and heads."""

    def attend(self, q, k, v):
        attn = torch.einsum("...id,...jd->...ij", q * self.scale, k).softmax(-1)
        self.note(attn)
        return torch.einsum("...ij,...jd->...id", attn, v)


@pattern("cross")
class EinsumImplicit(Cross):
    """Einsum without an arrow: the result has its letters in alphabetical order."""

    def attend(self, q, k, v):
        attn = torch.einsum("bhid,bhjd->bhij", q * self.scale, k).softmax(-1)
        self.note(attn)
        return torch.einsum("...qk,...kv", attn, v)


@pattern("cross")
class EinsumValuesFirst(Cross):
    """Values before weights in the equation."""

    def attend(self, q, k, v):
        attn = torch.einsum("bhkd,bhqd->bhqk", k, q).mul(self.scale).softmax(-1)
        self.note(attn)
        return torch.einsum("bhkd,bhqk->bhqd", v, attn)


@pattern("cross")
class EinsumTransposedContext(Cross):
    """The context comes out as (b, d, h, q), as channels."""

    def attend(self, q, k, v):
        attn = torch.einsum("bhqd,bhkd->bhqk", q, k).mul(self.scale).softmax(-1)
        self.note(attn)
        return torch.einsum("bhqk,bhkd->bdhq", attn, v).permute(0, 2, 3, 1)


@pattern("cross")
class EinsumSublists(Cross):
    """Einsum in the sublist format, with numbers for axes."""

    def attend(self, q, k, v):
        attn = torch.einsum(q, [0, 1, 2, 4], k, [0, 1, 3, 4], [0, 1, 2, 3])
        attn = attn.mul(self.scale).softmax(-1)
        self.note(attn)
        return torch.einsum(attn, [0, 1, 2, 3], v, [0, 1, 3, 4], [0, 1, 2, 4])


@pattern("cross")
class EinopsEinsum(Cross):
    """einops.einsum with words for axes."""

    def attend(self, q, k, v):
        sim = einsum(q, k, "batch head i dim, batch head j dim -> batch head i j")
        attn = (sim * self.scale).softmax(-1)
        self.note(attn)
        return einsum(attn, v, "batch head i j, batch head j dim -> batch head i dim")


@pattern("cross")
class EinsumWithOutputProjection(Attention):
    """TransformerLens: three operands, the context and the output projection in one einsum."""

    def forward(self, x, memory):
        q = self.to_q(x).unflatten(-1, (self.heads, -1))
        k = self.to_k(memory).unflatten(-1, (self.heads, -1))
        v = self.to_v(memory).unflatten(-1, (self.heads, -1))
        pattern = torch.einsum("bqhd,bkhd->bhqk", q, k).mul(self.scale).softmax(-1)
        self.note(pattern)
        identity = torch.eye(self.sizes.width).view(self.heads, self.head_width, -1)
        return self.to_out(torch.einsum("bhqk,bkhd,hdm->bqm", pattern, v, identity))


@pattern("cross", sizes=Sizes(heads=1, batch=1))
class Tensordot(Attention):
    """torch.tensordot over the keys of one text."""

    def forward(self, x, memory):
        q, k, v = self.to_q(x)[0], self.to_k(memory)[0], self.to_v(memory)[0]
        attn = torch.tensordot(q, k, dims=([1], [1])).mul(self.scale).softmax(-1)
        self.note(attn, "q k -> 1 1 q k")
        return self.to_out(torch.tensordot(attn, v, dims=1))[None]


@pattern("cross", sizes=Sizes(heads=1, batch=1))
class Inner(Attention):
    """torch.inner for the scores, and for the context with values transposed."""

    def forward(self, x, memory):
        q, k, v = self.to_q(x)[0], self.to_k(memory)[0], self.to_v(memory)[0]
        attn = torch.softmax(torch.inner(q, k) * self.scale, dim=1)
        self.note(attn, "q k -> 1 1 q k")
        return self.to_out(torch.inner(attn, v.T))[None]


@pattern("cross", sizes=Sizes(heads=1, batch=1))
class MmOfMatrices(Attention):
    """Matrices of one text: torch.mm and addmm."""

    def forward(self, x, memory):
        q, k, v = self.to_q(x)[0], self.to_k(memory)[0], self.to_v(memory)[0]
        attn = torch.softmax(torch.mm(q, k.t()) * self.scale, dim=1)
        self.note(attn, "q k -> 1 1 q k")
        return self.to_out(torch.addmm(torch.zeros(12), attn, v))[None]


@pattern("cross", variants=SOME)
class MulAndSum(Cross):
    """Broadcasting: weights[..., None] * values, summed over the keys."""

    def attend(self, q, k, v):
        scores = (q.unsqueeze(3) * k.unsqueeze(2)).sum(-1) * self.scale
        attn = scores.softmax(-1)
        self.note(attn)
        return (attn.unsqueeze(-1) * v.unsqueeze(2)).sum(dim=3)


@pattern("cross", variants=("tokens=head_width", "all_equal"))
class ValuesTransposed(Cross):
    """Values from the left: v^T @ weights^T."""

    def attend(self, q, k, v):
        attn = (k @ q.mT * self.scale).softmax(dim=-2)
        self.note(attn, "b h k q -> b h q k")
        return (v.mT @ attn).mT


@pattern("cross")
class TransposedWeights(Cross):
    """Weights as (key, query), transposed in the product."""

    def attend(self, q, k, v):
        attn = torch.softmax(torch.matmul(k, q.transpose(2, 3)) * self.scale, dim=2)
        self.note(attn, "b h k q -> b h q k")
        return torch.matmul(attn.transpose(2, 3), v)


@pattern("cross")
class PermutedAfterSoftmax(Cross):
    """Softmax over (b, q, h, k), permuted and folded for bmm."""

    def attend(self, q, k, v):
        b, h, n, _ = q.shape
        attn = torch.einsum("bhqd,bhkd->bqhk", q, k).mul(self.scale).softmax(-1)
        self.note(attn, "b q h k -> b h q k")
        attn = attn.permute(0, 2, 1, 3).contiguous().view(b * h, n, -1)
        return torch.bmm(attn, v.flatten(0, 1)).view(b, h, n, -1)


@pattern("cross", variants=SOME)
class ContextPerHead(Cross):
    """One softmax for all heads, one product for each: a list of contexts, one record."""

    def attend(self, q, k, v):
        attn = (q @ k.mT * self.scale).softmax(-1)
        self.note(attn)
        return torch.stack([attn[:, h] @ v[:, h] for h in range(self.heads)], dim=1)


@pattern("cross")
class ContextPerItem(Cross):
    """One softmax for the batch, one product for each item: one record."""

    def attend(self, q, k, v):
        attn = (q @ k.mT * self.scale).softmax(-1)
        self.note(attn)
        return torch.stack([w @ values for w, values in zip(attn, v, strict=True)])


@pattern("cross")
class TwoProducts(Cross):
    """One softmax that multiplies values and positions: one record."""

    def attend(self, q, k, v):
        attn = (q @ k.mT * self.scale).softmax(-1)
        self.note(attn)
        positions = torch.linspace(0, 1, k.shape[2])[:, None].expand(-1, self.head_width)
        centre = attn @ positions
        return attn @ v + 0 * centre


@pattern("cross")
class MatmulMethodOut(Cross):
    """Methods rather than functions: q.matmul(k).softmax().matmul(v)."""

    def attend(self, q, k, v):
        attn = q.matmul(k.transpose(-1, -2)).mul_(self.scale).softmax(dim=-1)
        self.note(attn)
        return attn.matmul(v)


@pattern("cross", sizes=Sizes(heads=1, batch=1))
class LinearOnTransposedValues(Attention):
    """F.linear(weights, values.T): a product in disguise."""

    def forward(self, x, memory):
        q, k, v = self.to_q(x)[0], self.to_k(memory)[0], self.to_v(memory)[0]
        attn = F.linear(q, k).mul(self.scale).softmax(-1)
        self.note(attn, "q k -> 1 1 q k")
        return self.to_out(F.linear(attn, v.T))[None]


@pattern("cross")
class ByCdist(Cross):
    """L2 attention: minus squared distances as scores."""

    def attend(self, q, k, v):
        attn = torch.softmax(-torch.cdist(q, k).square() * self.scale, dim=-1)
        self.note(attn)
        return attn @ v


@pattern("cross")
class CosineScores(Cross):
    """Swin v2 and NormFormer: cosine similarity with a scale."""

    def attend(self, q, k, v):
        attn = 4 * F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).transpose(-2, -1)
        attn = attn.softmax(dim=-1)
        self.note(attn)
        return attn @ v


@pattern("cross")
class ChunkedWidth(Cross):
    """Scores and contexts of two halves of the width: one softmax, one record."""

    def attend(self, q, k, v):
        q1, q2 = q.chunk(2, -1)
        k1, k2 = k.chunk(2, -1)
        attn = ((q1 @ k1.mT + q2 @ k2.mT) * self.scale).softmax(-1)
        self.note(attn)
        return torch.cat([attn @ part for part in v.chunk(2, -1)], dim=-1)
