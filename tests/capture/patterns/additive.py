"""Scores of pairs of rows that are no matrix product: sums, distances and joined vectors."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from capture.patterns.base import Attention, Bare, Sizes, pattern, sharp_linear, two_texts

SOME = ("batch=heads", "batch=queries", "batch_of_1", "all_equal")


class Pairs(Attention):
    """Base: scores of all pairs of rows, which `score` computes, and `normalise`."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.scorer = sharp_linear(sizes.width, 1)

    def forward(self, x, memory=None):
        memory = x if memory is None else memory
        attn = self.normalise(self.score(self.to_q(x), self.to_k(memory)))
        self.note(attn, "b q k -> b 1 q k")
        return self.to_out(attn @ self.to_v(memory))

    def score(self, q: Tensor, k: Tensor) -> Tensor:
        return self.scorer(torch.tanh(q[:, :, None] + k[:, None])).squeeze(-1)

    def normalise(self, scores: Tensor) -> Tensor:
        return torch.sigmoid(scores)


@pattern("self", normaliser="sigmoid", probe=None, variants=SOME)
class SigmoidOfSums(Pairs):
    """Additive scores, normalised one by one."""


@pattern("cross", normaliser="sigmoid", probe=None, inputs=two_texts, variants=SOME)
class SigmoidOfSumsWithMemory(Pairs):
    """The same, with the rows of another text."""


@pattern("cross", normaliser="relu / sum", applied=None, probe=None, inputs=two_texts)
class ReluOfDistances(Pairs):
    """A kernel with compact support: distances below a bandwidth, divided by their sum."""

    def score(self, q, k):
        return 4 - (q.unsqueeze(2) - k.unsqueeze(1)).abs().mean(-1)

    def normalise(self, scores):
        positive = F.relu(scores)
        return positive / (positive.sum(-1, keepdim=True) + 1e-6)


@pattern("self", normaliser="tanh", applied=None, probe=None, variants=SOME)
class SignedEdges(Pairs):
    """FAGCN: tanh of the sum of two scores, so that weights may be negative."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.other = sharp_linear(sizes.width, 1)

    def score(self, q, k):
        return self.scorer(q) + self.other(k).transpose(1, 2)

    def normalise(self, scores):
        return torch.tanh(scores) / scores.shape[-1] ** 0.5


@pattern("self", normaliser="relu", applied=None, probe=None, variants=SOME)
class ConcatenatedNonLocal(Bare):
    """The concatenation version of non-local blocks: ReLU of a convolution, over their number."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.theta, self.phi, self.g = (nn.Conv1d(sizes.width, 6, 1) for _ in range(3))
        self.project = nn.Sequential(nn.Conv2d(12, 1, 1, bias=False), nn.ReLU())
        self.out = nn.Conv1d(6, sizes.width, 1)

    def forward(self, x):
        x = x.transpose(1, 2)
        theta, phi, g = self.theta(x).unsqueeze(3), self.phi(x).unsqueeze(2), self.g(x)
        theta, phi = theta.repeat(1, 1, 1, x.shape[2]), phi.repeat(1, 1, x.shape[2], 1)
        scores = self.project(torch.cat([theta, phi], dim=1)).squeeze(1)
        attn = scores / scores.shape[-1]
        self.note(attn, "b q k -> b 1 q k")
        return x + self.out((attn @ g.transpose(1, 2)).transpose(1, 2))


@pattern("self", normaliser="sigmoid", probe=None, variants=SOME)
class EdgesInferred(Bare):
    """EGNN: a gate for each edge weighs its message, which is a function of both nodes."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.message = nn.Linear(2 * sizes.width, sizes.width)
        self.gate = sharp_linear(sizes.width, 1)

    def forward(self, x):
        b, n, d = x.shape
        sources, targets = x.unsqueeze(2).expand(b, n, n, d), x.unsqueeze(1).expand(b, n, n, d)
        messages = F.silu(self.message(torch.cat([sources, targets], dim=-1)))
        gate = torch.sigmoid(self.gate(messages))
        self.note(gate, "b q k 1 -> b q 1 1 k")
        return x + (gate * messages).sum(dim=2)


class NoAttention(Bare):
    """Base of modules that compare or gate, but weigh no rows."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.first, self.second = (sharp_linear(sizes.width, sizes.width) for _ in range(2))
        self.third = sharp_linear(sizes.width, sizes.width)


def image(sizes: Sizes) -> tuple[Tensor, ...]:
    return (torch.randn(sizes.batch, sizes.width, 4, 6),)


def graph(sizes: Sizes) -> tuple[Tensor, ...]:
    nodes = torch.randn(sizes.batch, sizes.queries, sizes.width)
    return nodes, (torch.rand(sizes.batch, sizes.queries, sizes.queries) < 0.5).float()


@pattern(variants=SOME)
class RelationNetwork(NoAttention):
    """A network of each pair of objects, summed over all pairs."""

    def forward(self, x):
        pairs = F.relu(self.first(x)[:, :, None] + self.second(x)[:, None])
        return F.relu(self.third(pairs)).sum(dim=(1, 2))


@pattern(variants=SOME)
class EdgeConvolution(NoAttention):
    """DGCNN on a full graph: the largest message of all differences."""

    def forward(self, x):
        return F.relu(self.first(x[:, None] - x[:, :, None])).amax(dim=2)


@pattern(inputs=graph, variants=SOME)
class InteractionNetwork(NoAttention):
    """Messages of pairs that are summed over the given edges of a graph."""

    def forward(self, x, edges):
        messages = torch.relu(self.first(x)[:, :, None] + self.second(x)[:, None])
        return self.third((edges.unsqueeze(-1) * messages).sum(dim=2))


@pattern(inputs=image, variants={"batch=rows": Sizes(batch=4)})
class CoordinateAttention(NoAttention):
    """Gates of the rows and of the columns of an image, multiplied with each other first."""

    def forward(self, x):
        rows, columns = x.mean(3, keepdim=True), x.mean(2, keepdim=True)
        rows = self.first(rows.movedim(1, -1)).movedim(-1, 1).sigmoid()
        columns = self.second(columns.movedim(1, -1)).movedim(-1, 1).sigmoid()
        x = x * (rows * columns)
        return F.relu(x).flatten(2) @ torch.tanh(x).flatten(2).mT


@pattern(inputs=image)
class BottleneckAttention(NoAttention):
    """BAM: a sigmoid of the sum of a gate of channels and one of positions."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.spatial = nn.Conv2d(sizes.width, 1, 3, padding=1)

    def forward(self, x):
        channels = self.first(x.mean((2, 3)))[:, :, None, None]
        return x * (1 + torch.sigmoid(channels + self.spatial(x)))


@pattern(inputs=image)
class AxialSum(NoAttention):
    """Means of rows and columns are added up, a ReLU, and a product of channels (Gram matrix)."""

    def forward(self, x):
        x = F.relu(x.mean(3, keepdim=True) + x.mean(2, keepdim=True)).flatten(2)
        return x @ x.transpose(1, 2)


@pattern(variants=SOME)
class TriangleUpdate(NoAttention):
    """AlphaFold: gated features of pairs, multiplied along triangles of edges."""

    def forward(self, x):
        pairs = x[:, :, None] + x[:, None]
        left = torch.sigmoid(self.first(pairs)) * self.second(pairs)
        right = torch.sigmoid(self.second(pairs)) * self.first(pairs)
        return self.third(torch.einsum("bikc,bjkc->bijc", left, right))


@pattern(variants=SOME)
class GatedCell(NoAttention):
    """An LSTM cell by hand: sigmoid and tanh of sums of two texts' features."""

    def forward(self, x):
        hidden = torch.zeros_like(x[:, 0])
        for row in x.unbind(1):
            gate = torch.sigmoid(self.first(row) + self.second(hidden))
            hidden = gate * torch.tanh(self.third(row)) + (1 - gate) * hidden
        return hidden


@pattern(variants=SOME)
class TanhNetwork(NoAttention):
    """GELU written out, and a bilinear pooling of two activations."""

    def forward(self, x):
        hidden = self.first(x)
        cube = 0.044715 * hidden**3
        hidden = 0.5 * hidden * (1 + torch.tanh(0.8 * (hidden + cube)))
        return self.second(hidden).tanh().mT @ self.third(hidden).relu()
