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


def image(sizes: Sizes) -> tuple[Tensor, ...]:
    return (torch.randn(sizes.batch, sizes.heads, 4, sizes.keys),)


def sparse_graph(sizes: Sizes) -> tuple[Tensor, ...]:
    return (torch.randn(7, sizes.width), torch.randint(0, 7, (2, 17)).unique(dim=1))


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


@pattern(values_not_found=("OnlineSoftmax",), probe=None)
class OnlineSoftmax(Attention):
    """FlashAttention in Python: blocks of keys rescale the sums; no tensor has the weights."""

    def forward(self, x):
        q, k, v = (
            layer(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for layer in (self.to_q, self.to_k, self.to_v)
        )
        largest, total, out = (
            torch.full_like(q[..., :1], -1e30),
            torch.zeros(1),
            torch.zeros_like(q),
        )
        for start in range(0, x.shape[1], 2):
            scores = q @ k[:, :, start : start + 2].mT * self.scale
            new = torch.maximum(largest, scores.amax(-1, keepdim=True))
            weights, factor = (scores - new).exp(), (largest - new).exp()
            total = total * factor + weights.sum(-1, keepdim=True)
            out = out * factor + weights @ v[:, :, start : start + 2]
            largest = new
        return self.to_out((out / total).transpose(1, 2).flatten(2))


@pattern(values_not_found=("SparseMatrixProduct",), inputs=sparse_graph)
class SparseMatrixProduct(Bare):
    """A graph layer that normalises a sparse matrix and multiplies with it."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.layer, self.score = nn.Linear(sizes.width, 8), nn.Linear(16, 1)

    def forward(self, x, edges):
        rows, number = self.layer(x), len(x)
        scores = self.score(torch.cat([rows[edges[0]], rows[edges[1]]], dim=1)).squeeze(-1)
        size = (number, number)
        matrix = torch.sparse_coo_tensor(edges, scores, size, check_invariants=True)
        return torch.sparse.mm(torch.sparse.softmax(matrix, dim=1), rows)
