"""Attention without values, or without a (query, key) layout: listed, never silent."""

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
    two_texts,
)


def graph(sizes: Sizes) -> tuple[Tensor, ...]:
    sources = torch.tensor([0, 1, 2, 3, 4, 5, 6, 0, 2, 4])
    targets = torch.tensor([1, 1, 1, 2, 2, 3, 4, 5, 6, 0])
    return torch.randn(sizes.keys, sizes.width), torch.stack([sources, targets])


def image(sizes: Sizes) -> tuple[Tensor, ...]:
    return (torch.randn(sizes.batch, sizes.heads, 4, sizes.keys),)


@pattern(inputs=two_texts, values_not_found=("PointerNetwork",))
class PointerNetwork(Bare):
    """Vinyals et al. 2015: the softmax over positions is the output itself."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.W1, self.W2 = (nn.Linear(sizes.width, 8) for _ in range(2))
        self.v = nn.Linear(8, 1)

    def forward(self, state, memory):
        scores = self.v(torch.tanh(self.W1(memory).unsqueeze(1) + self.W2(state).unsqueeze(2)))
        return F.softmax(scores.squeeze(-1), dim=-1)


@pattern(inputs=two_texts, values_not_found=("PointerDot",))
class PointerDot(Bare):
    """A pointer by dot products, of which the best position is taken."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.q, self.k = (sharp_linear(sizes.width, sizes.width) for _ in range(2))

    def forward(self, state, memory):
        probs = torch.softmax(self.q(state) @ self.k(memory).mT, dim=-1)
        best = probs.argmax(-1)
        return probs, best


@pattern(inputs=one_long_text, values_not_found=("SpanHead",))
class SpanHead(Bare):
    """Extractive question answering: softmax of start and end over positions."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.qa_outputs = sharp_linear(sizes.width, 2)

    def forward(self, x):
        start, end = self.qa_outputs(x).split(1, dim=-1)
        return F.softmax(start.squeeze(-1), dim=-1), F.softmax(end.squeeze(-1), dim=-1)


@pattern(inputs=one_long_text, values_not_found=("WeightsReturned",))
class WeightsReturned(Bare):
    """A module that returns weights only; nothing multiplies them."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.q, self.k = (sharp_linear(sizes.width, sizes.width) for _ in range(2))

    def forward(self, x):
        q, k = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in (self.q(x), self.k(x)))
        return (q @ k.mT * self.scale).softmax(-1)


@pattern(inputs=one_long_text, values_not_found=("GatheredTopOne",))
class GatheredTopOne(Bare):
    """Hard attention: the best position's row is gathered."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.score = sharp_linear(sizes.width, 1)

    def forward(self, x):
        probs = self.score(x).squeeze(-1).softmax(-1)
        return x[torch.arange(len(x)), probs.argmax(-1)]


@pattern(inputs=one_long_text, values_not_found=("NumpyProduct",))
class NumpyProduct(Bare):
    """The product with values is computed in NumPy, where no torch function is seen."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.q, self.k = (sharp_linear(sizes.width, sizes.width) for _ in range(2))

    def forward(self, x):
        weights = torch.softmax(self.q(x) @ self.k(x).mT * self.scale, dim=-1)
        return torch.from_numpy(weights.detach().numpy() @ x.detach().numpy())


def scatter_softmax(scores, index, number):
    """Return a softmax over the edges that have the same target, as in PyG."""
    shape = number, *scores.shape[1:]
    expanded = index.view(-1, *[1] * (scores.ndim - 1)).expand_as(scores)
    largest = torch.full(shape, -torch.inf).scatter_reduce(0, expanded, scores, "amax")
    exp = (scores - largest.index_select(0, index)).exp()
    total = torch.zeros(shape).scatter_add(0, expanded, exp) + 1e-16
    return exp / total.index_select(0, index)


@pattern(inputs=graph, listed=("GraphAttention",))
class GraphAttention(Bare):
    """GAT in PyG's style: weights of edges, without a (query, key) layout."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.lin = sharp_linear(sizes.width, sizes.width)
        self.att_src = nn.Parameter(torch.randn(1, sizes.heads, sizes.head_width))
        self.att_dst = nn.Parameter(torch.randn(1, sizes.heads, sizes.head_width))

    def forward(self, x, edges):
        source, target = edges
        x = self.lin(x).view(-1, self.heads, self.head_width)
        scores = (x * self.att_src).sum(-1)[source] + (x * self.att_dst).sum(-1)[target]
        alpha = scatter_softmax(F.leaky_relu(scores, 0.2), target, len(x))
        messages = x[source] * alpha.unsqueeze(-1)
        return torch.zeros_like(x).index_add(0, target, messages).flatten(1)


@pattern(inputs=graph, listed=("GraphTransformer",))
class GraphTransformer(Bare):
    """TransformerConv in PyG's style: dot products of edges, scatter_add of messages."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.q, self.k, self.v = (sharp_linear(sizes.width, sizes.width) for _ in range(3))

    def forward(self, x, edges):
        source, target = edges
        q, k, v = (layer(x).view(-1, self.heads, 4) for layer in (self.q, self.k, self.v))
        scores = (q[target] * k[source]).sum(dim=-1) * self.scale
        alpha = scatter_softmax(scores, target, len(x))
        messages = v[source] * alpha.unsqueeze(-1)
        index = target.view(-1, 1, 1).expand_as(messages)
        return torch.zeros_like(v).scatter_add_(0, index, messages)


@pattern("self")
class DenseGraphAttention(Bare):
    """GAT over a dense adjacency (pyGAT): masked scores of all pairs; this has a layout."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.W = sharp_linear(sizes.width, 8)
        self.a = nn.Parameter(torch.randn(16, 1))

    def forward(self, x):
        Wh = self.W(x)
        e = F.leaky_relu(Wh @ self.a[:8] + (Wh @ self.a[8:]).mT, 0.2)
        adjacency = torch.ones(5, 5) - torch.eye(5)[[1, 2, 3, 4, 0]]
        attention = torch.where(adjacency > 0, e, -9e15 * torch.ones_like(e))
        attention = F.softmax(attention, dim=-1)
        self.note(attention, "b q k -> b 1 q k")
        return torch.matmul(attention, Wh)


@pattern(inputs=image, is_open=True)
class EfficientAttention(Bare):
    """Shen et al. 2018: softmax of keys over positions and of queries over features."""

    def forward(self, x):
        q, k = x.softmax(dim=-2), x.softmax(dim=-1)
        context = torch.einsum("b h d n, b h e n -> b h d e", k, x)
        return torch.einsum("b h d e, b h d n -> b h e n", context, q)


@pattern(is_open=True, probe=None)
class Nystrom(Attention):
    """Nyströmformer: three softmaxes with landmarks, and a pseudo-inverse between them."""

    def forward(self, x):
        q, k, v = (
            layer(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for layer in (self.to_q, self.to_k, self.to_v)
        )
        q_landmarks, k_landmarks = (t[:, :, :4].unflatten(2, (2, 2)).mean(3) for t in (q, k))
        kernel_1 = F.softmax(q @ k_landmarks.mT * self.scale, dim=-1)
        kernel_2 = F.softmax(q_landmarks @ k_landmarks.mT * self.scale, dim=-1)
        kernel_3 = F.softmax(q_landmarks @ k.mT * self.scale, dim=-1)
        out = kernel_1 @ torch.linalg.pinv(kernel_2) @ (kernel_3 @ v)
        return self.to_out(out.transpose(1, 2).flatten(2))


@pattern(is_open=True, probe=None)
class ProductOfWeights(Attention):
    """Two-hop attention: the weights are squared by a product with themselves first."""

    def forward(self, x):
        q, k, v = (
            layer(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for layer in (self.to_q, self.to_k, self.to_v)
        )
        attn = (q @ k.mT * self.scale).softmax(-1)
        return self.to_out((attn @ attn @ v).transpose(1, 2).flatten(2))


@pattern(is_open=True)
class ColumnSoftmaxProduct(Bare):
    """Sinkhorn: rows and columns are normalised in turn, by logsumexp."""

    def forward(self, x):
        scores = x @ x.mT / 12**0.5
        for _ in range(4):
            scores = scores - torch.logsumexp(scores, dim=-1, keepdim=True)
            scores = scores - torch.logsumexp(scores, dim=-2, keepdim=True)
        return scores.exp() @ x
