"""Weights that are normalised after their product with values: the context is divided by their sum.

The division is that of the weights, so that these are the true ones: `probe` shows them.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from capture.patterns.base import (
    Attention,
    Bare,
    Sizes,
    one_long_text,
    pattern,
    sharp_linear,
)


def late(*kinds: str, normaliser: str = "exp / sum", **options):
    return pattern(*kinds, normaliser=normaliser, sums_to_one=True, variants=True, **options)


def note_over_sum(
    module: Attention, weights: Tensor, dim: int, layout: str = "", **sizes: int
) -> None:
    """Collect weights that the model normalises later."""
    if module.truth is not None:
        module.note(weights / weights.sum(dim, keepdim=True), layout, **sizes)


class Late(Attention):
    """Base: heads are split; `scores` makes positive weights, `attend` divides its context."""

    def heads_of(self, rows: Tensor) -> Tensor:
        return rows.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def forward(self, x):
        q, k, v = (self.heads_of(layer(x)) for layer in (self.to_q, self.to_k, self.to_v))
        weights = self.positive(q @ k.mT * self.scale)
        note_over_sum(self, weights, -1)
        return self.to_out(self.attend(weights, v).transpose(1, 2).flatten(2))

    def positive(self, scores: Tensor) -> Tensor:
        return torch.exp(scores - scores.amax(-1, keepdim=True))

    def attend(self, weights: Tensor, values: Tensor) -> Tensor:
        return (weights @ values) / weights.sum(-1, keepdim=True)


@late("self")
class DividedContext(Late):
    """Exponentials times values, over their sum."""


@late("causal", applied=None)
class MaskedExponentials(Late):
    """A causal mask of minus infinity, and an axis for the sum by None."""

    def positive(self, scores):
        hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        return scores.masked_fill(hidden, -torch.inf).exp()

    def attend(self, weights, values):
        return torch.einsum("bhqk,bhkd->bhqd", weights, values) / weights.sum(dim=-1)[..., None]


@late("self")
class ReciprocalOfSum(Late):
    """The reciprocal of the sum in an einsum."""

    def attend(self, weights, values):
        return torch.einsum("bhqd,bhq->bhqd", weights @ values, weights.sum(-1).reciprocal())


@late("self")
class SumByOnes(Late):
    """The sum is a product with ones, and not below a small number."""

    def attend(self, weights, values):
        total = weights @ torch.ones(values.shape[2], 1)
        return (weights @ values) / total.clamp(min=1e-9)


@late("self", normaliser="softplus / sum")
class DividedSoftplus(Late):
    """Softplus of scores, whose context alone might be all there is."""

    def positive(self, scores):
        return F.softplus(scores)

    def attend(self, weights, values):
        return (weights @ values).div(weights.sum(-1, keepdim=True) + 1e-9)


@late("self", normaliser="sigmoid / sum")
class DividedSigmoid(Late):
    """Sigmoids, and the sum by an einsum of one operand."""

    def positive(self, scores):
        return torch.sigmoid(scores)

    def attend(self, weights, values):
        return (weights @ values) / torch.einsum("bhqk->bhq", weights).unsqueeze(-1)


@late("causal", normaliser="softmax", applied=True)
class DividedSoftmax(Late):
    """A softmax that is masked by a product, and renormalised with the context."""

    def positive(self, scores):
        return scores.softmax(-1) * torch.ones(scores.shape[-2:]).tril()


@late("self")
class HeadsThird(Late):
    """Heads stay in the third axis, where the sum is brought, too."""

    def forward(self, x):
        q, k, v = (
            layer(x).unflatten(-1, (self.heads, -1)) for layer in (self.to_q, self.to_k, self.to_v)
        )
        weights = torch.einsum("bihd,bjhd->bhij", q, k).mul(self.scale).exp()
        note_over_sum(self, weights, -1)
        context = torch.einsum("bhij,bjhd->bihd", weights, v)
        return self.to_out((context / weights.sum(-1).transpose(1, 2).unsqueeze(-1)).flatten(2))


@late("self")
class TimeFirst(Late):
    """Scores (query, key, batch, head)."""

    def forward(self, x):
        q, k, v = (
            layer(x).unflatten(-1, (self.heads, -1)).transpose(0, 1)
            for layer in (self.to_q, self.to_k, self.to_v)
        )
        weights = torch.exp(torch.einsum("ibhd,jbhd->ijbh", q, k) * self.scale)
        note_over_sum(self, weights, 1, "i j b h -> b h i j")
        context = torch.einsum("ijbh,jbhd->ibhd", weights, v) / weights.sum(1).unsqueeze(-1)
        return self.to_out(context.transpose(0, 1).flatten(2))


@late("self")
class HeadsInBatch(Late):
    """Heads folded into the batch for bmm."""

    def forward(self, x):
        q, k, v = (
            self.heads_of(layer(x)).flatten(0, 1) for layer in (self.to_q, self.to_k, self.to_v)
        )
        weights = torch.bmm(q, k.transpose(1, 2)).mul(self.scale).exp()
        note_over_sum(self, weights, -1, "(b h) q k -> b h q k", h=self.heads)
        context = torch.bmm(weights, v) / weights.sum(-1, keepdim=True)
        return self.to_out(context.unflatten(0, (-1, self.heads)).transpose(1, 2).flatten(2))


class SingleHead(Bare):
    """Base of attention without heads."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.q, self.k, self.v = (sharp_linear(sizes.width, sizes.width) for _ in range(3))


@late("self")
class AllPairs(SingleHead):
    """Scores of all pairs by broadcasting, weights times values, both summed."""

    def forward(self, x):
        q, k, v = self.q(x), self.k(x), self.v(x)
        weights = torch.exp((q.unsqueeze(2) * k.unsqueeze(1)).sum(-1) * 0.3)
        note_over_sum(self, weights, -1, "b q k -> b 1 q k")
        context = (weights.unsqueeze(-1) * v.unsqueeze(1)).sum(2)
        return context / weights.sum(2, keepdim=True)


@late("cross")
class AdditiveScores(SingleHead):
    """Bahdanau's scores, with exponentials in a bmm."""

    def forward(self, x, memory):
        scores = torch.tanh(self.q(x)[:, :, None] + self.k(memory)[:, None]).sum(-1)
        weights = scores.exp()
        note_over_sum(self, weights, -1, "b q k -> b 1 q k")
        return torch.bmm(weights, self.v(memory)) / weights.sum(-1, keepdim=True)


@late("cross", inputs=one_long_text)
class PooledLate(Bare):
    """Pooling by exponentials of a learned score."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.score = sharp_linear(sizes.width, 1)

    def forward(self, x):
        weights = torch.exp(self.score(x))
        note_over_sum(self, weights, 1, "b k 1 -> b 1 1 k")
        return (weights * x).sum(1) / weights.sum(1)


@late("self", inputs=one_long_text)
class KernelRegression(Bare):
    """Nadaraya-Watson: a Gaussian kernel of distances, and the sum of its rows."""

    def forward(self, x):
        kernel = torch.exp(-torch.cdist(x, x).square() / 8)
        self.note(kernel / kernel.sum(-1, keepdim=True), "b q k -> b 1 q k")
        return (kernel @ x) / kernel.sum(-1, keepdim=True)


class Blocks(Late):
    """Base of attention block by block, in which no tensor has the weights of all keys."""

    def forward(self, x):
        q, k, v = (self.heads_of(layer(x)) for layer in (self.to_q, self.to_k, self.to_v))
        blocks = zip(k.chunk(2, dim=2), v.chunk(2, dim=2), strict=True)
        context = self.join([(q @ keys.mT * self.scale, values) for keys, values in blocks])
        return self.to_out(context.transpose(1, 2).flatten(2))

    def join(self, blocks: list[tuple[Tensor, Tensor]]) -> Tensor:
        raise NotImplementedError


@pattern(values_not_found=("RingAttention",), variants=True, probe=None)
class RingAttention(Blocks):
    """Each block is normalised, and rescaled by the logarithms of the sums."""

    def join(self, blocks):
        sums = [torch.logsumexp(scores, -1, keepdim=True) for scores, _ in blocks]
        contexts = [
            torch.exp(scores - total) @ values
            for (scores, values), total in zip(blocks, sums, strict=True)
        ]
        whole = torch.logaddexp(*sums)
        return sum(x * torch.exp(y - whole) for x, y in zip(contexts, sums, strict=True))


@pattern(
    values_not_found=("BlocksBySoftmax",),
    not_attention=("BlocksBySoftmax",),
    variants=True,
    probe=None,
)
class BlocksBySoftmax(Blocks):
    """A softmax of each block, and one of the logarithms of their sums over the blocks."""

    def join(self, blocks):
        contexts = torch.stack([scores.softmax(-1) @ values for scores, values in blocks])
        weights = torch.stack([scores.logsumexp(-1) for scores, _ in blocks]).softmax(0)
        return (contexts * weights[..., None]).sum(0)


@pattern(values_not_found=("RescaledBlocks",), variants=True, probe=None)
class RescaledBlocks(Blocks):
    """FlashAttention's blocks, each with its own maximum, of which the last has a single key."""

    def join(self, blocks):
        context, total, largest = 0, 0, torch.full_like(blocks[0][0][..., :1], -1e10)
        for scores, values in blocks:
            new = torch.maximum(largest, scores.amax(-1, keepdim=True))
            weights = torch.exp(scores - scores.amax(-1, keepdim=True))
            factor = torch.exp(scores.amax(-1, keepdim=True) - new)
            context = context * torch.exp(largest - new) + factor * (weights @ values)
            total = total * torch.exp(largest - new) + factor * weights.sum(-1, keepdim=True)
            largest = new
        return context / total


@pattern(values_not_found=("SumInLastColumn",), variants=True, probe=None)
class SumInLastColumn(Late):
    """Values have a column of ones, which the others are divided by: the sum is no tensor."""

    def forward(self, x):
        q, k, v = (self.heads_of(layer(x)) for layer in (self.to_q, self.to_k, self.to_v))
        weights = self.positive(q @ k.mT * self.scale)
        return self.to_out(self.attend(weights, v).transpose(1, 2).flatten(2))

    def attend(self, weights, values):
        context = weights @ torch.cat([values, torch.ones_like(values[..., :1])], dim=-1)
        return context[..., :-1] / context[..., -1:]


class RandomFeatures(Late):
    """Base of random features: keys and values are summed first."""

    def features(self, rows: Tensor, matrix: Tensor) -> Tensor:
        return torch.exp(rows @ matrix - rows.square().sum(-1, keepdim=True) / 2)

    def forward(self, x):
        q, k, v = (self.heads_of(layer(x)) for layer in (self.to_q, self.to_k, self.to_v))
        matrix = torch.randn(self.head_width, 10)
        q, k = self.features(q, matrix), self.features(k, matrix)
        return self.to_out(self.attend_to(q, k, v).transpose(1, 2).flatten(2))

    def attend_to(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return q @ (k.mT @ v) / (q @ k.sum(2, keepdim=True).mT)


@pattern(may_be_listed=True, variants=True, probe=None)
class Performer(RandomFeatures):
    """Performer with features drawn in each pass: exponentials over features, not positions."""


@pattern(may_be_listed=True, variants=True, probe=None)
class CausalPerformer(RandomFeatures):
    """Sums of keys times values up to each position."""

    def attend_to(self, q, k, v):
        context = torch.einsum("bhnf,bhnd->bhnfd", k, v).cumsum(2)
        total = torch.einsum("bhnf,bhnf->bhn", q, k.cumsum(2))
        return torch.einsum("bhnf,bhnfd->bhnd", q, context) / total[..., None]


@pattern(listed=("ExplicitPerformer",), variants=True, probe=None)
class ExplicitPerformer(RandomFeatures):
    """The product of random features, divided by its sum: weights that are not followed."""

    def attend_to(self, q, k, v):
        weights = q @ k.mT
        return weights / weights.sum(-1, keepdim=True) @ v


def image(sizes: Sizes) -> tuple[Tensor, ...]:
    return (torch.randn(sizes.batch, sizes.width, 3, 5),)


@pattern(values_not_found=("NormalisedFeatures",), variants=True)
class NormalisedFeatures(Bare):
    """A softmax over the features of an input, whose transpose multiplies its rows."""

    def forward(self, x):
        context = x.softmax(-1).mT @ x
        return x @ context


@pattern(values_not_found=("ClassesOfPixels",), inputs=image, variants=True)
class ClassesOfPixels(Bare):
    """Logits of classes are the input; their softmax sums the pixels of each class."""

    def forward(self, x):
        return torch.einsum("bcn,bdn->bcd", x.flatten(2).softmax(1), x.flatten(2))


@pattern(values_not_found=("WeightedChannels",), inputs=image, variants=True)
class WeightedChannels(Bare):
    """A softmax of the means of channels, times the channels."""

    def forward(self, x):
        return torch.einsum("bc,bchw->bhw", x.mean((2, 3)).softmax(1), x)


@pattern(not_attention=("GatedChannels",), inputs=image, variants=True)
class GatedChannels(Bare):
    """The same with a layer, which shows that channels are features."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.gate = nn.Linear(sizes.width, sizes.width)

    def forward(self, x):
        weights = self.gate(x.mean((2, 3))).softmax(-1)
        return (x * weights[:, :, None, None]).sum(1)


@pattern(not_attention=("ComparedChannels",), inputs=image, variants=True)
class ComparedChannels(Bare):
    """DANet's channel module on the input itself."""

    def forward(self, x):
        channels = x.flatten(2)
        return torch.softmax(channels @ channels.mT, dim=-1) @ channels
