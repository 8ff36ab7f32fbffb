"""Attention over the edges of a graph: weights that are normalised and summed by index."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from capture.patterns.base import Bare, Sizes, pattern, sharp_linear

SOURCES = torch.tensor([0, 1, 2, 3, 4, 5, 6, 0, 2, 4])
TARGETS = torch.tensor([1, 1, 1, 2, 2, 3, 4, 5, 6, 0])
RING = torch.tensor([[0, 1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6, 0]])
GRAPHS = {"heads=1": Sizes(heads=1), "edges=heads": Sizes(heads=10, width=20)}


def graph(sizes: Sizes) -> tuple[Tensor, ...]:
    return torch.randn(sizes.keys, sizes.width), torch.stack([SOURCES, TARGETS])


def as_many_edges_as_nodes(sizes: Sizes) -> tuple[Tensor, ...]:
    edges = torch.tensor([[0, 1, 2, 3, 4, 5, 5], [1, 1, 2, 2, 3, 4, 6]])
    return torch.randn(sizes.keys, sizes.width), edges


def ring(sizes: Sizes) -> tuple[Tensor, ...]:
    return torch.randn(sizes.keys, sizes.width), RING


def multigraph(sizes: Sizes) -> tuple[Tensor, ...]:
    x, edges = graph(sizes)
    return x, torch.cat([edges, edges[:, :3]], dim=1)


def two_graphs(sizes: Sizes) -> tuple[Tensor, ...]:
    return torch.randn(sizes.keys, sizes.width), torch.tensor([0, 0, 0, 1, 1, 2, 2])


def bipartite(sizes: Sizes) -> tuple[Tensor, ...]:
    edges = torch.tensor([[0, 1, 2, 3, 4, 5, 6, 0, 2], [1, 1, 1, 2, 2, 3, 4, 0, 0]])
    return torch.randn(sizes.keys, sizes.width), torch.randn(sizes.queries, sizes.width), edges


def graph_with_features(sizes: Sizes) -> tuple[Tensor, ...]:
    """Return a graph and features of its edges."""
    x, edges = graph(sizes)
    return x, edges, torch.randn(edges.shape[1], 4)


def scatter(source: Tensor, index: Tensor, number: int, reduce: str = "sum") -> Tensor:
    """Reduce by index along the first axis, as in PyG."""
    expanded = index.view(-1, *[1] * (source.ndim - 1)).expand_as(source)
    zeros = source.new_zeros(number, *source.shape[1:])
    if reduce == "sum":
        return zeros.scatter_add_(0, expanded, source)
    return zeros.scatter_reduce_(0, expanded, source, reduce, include_self=False)


def scatter_softmax(scores: Tensor, index: Tensor, number: int) -> Tensor:
    """Return a softmax over the edges that have the same target, as in PyG."""
    largest = scatter(scores.detach(), index, number, "amax")
    exp = (scores - largest.index_select(0, index)).exp()
    total = scatter(exp, index, number) + 1e-16
    return exp / total.index_select(0, index)


class Graph(Bare):
    """Base of graph attention: notes weights of edges as a matrix."""

    def note_edges(
        self, weights: Tensor, queries: Tensor, keys: Tensor, num_queries: int, num_keys: int
    ) -> None:
        if self.truth is not None:
            dense = torch.zeros(1, self.heads, num_queries, num_keys)
            for edge, (query, key) in enumerate(zip(queries, keys, strict=True)):
                dense[0, :, query, key] += weights[edge].detach()
            self.note(dense)


def graph_pattern(*kinds: str, inputs=graph, **options):
    options = {"normaliser": "scatter softmax", "sums_to_one": False, **options}
    return pattern(*kinds, inputs=inputs, **options)


@graph_pattern("self", variants=GRAPHS)
class GraphAttention(Graph):
    """GAT in PyG's style: scores of sources and targets, weights of edges."""

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
        self.note_edges(alpha, target, source, len(x), len(x))
        messages = alpha.unsqueeze(-1) * x[source]
        return torch.zeros_like(x).index_add(0, target, messages).flatten(1)


@graph_pattern("self", inputs=as_many_edges_as_nodes)
class AsManyEdgesAsNodes(GraphAttention):
    """Edges are counted like nodes; only the indices tell them apart."""


@graph_pattern("self", inputs=ring)
class RingGraph(GraphAttention):
    """The sources of the edges are all nodes in order, the targets a permutation."""


@graph_pattern("self", inputs=multigraph)
class Multigraph(GraphAttention):
    """Two edges between the same nodes: their weights add up."""


@graph_pattern("self", variants=GRAPHS)
class GraphTransformer(Graph):
    """TransformerConv in PyG's style: dot products of edges, scatter_add of messages."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.q, self.k, self.v = (sharp_linear(sizes.width, sizes.width) for _ in range(3))

    def forward(self, x, edges):
        source, target = edges
        q, k, v = (layer(x).view(-1, self.heads, self.head_width) for layer in self.layers())
        scores = (q[target] * k[source]).sum(dim=-1) * self.scale
        alpha = self.normalise(scores, target, len(x))
        self.note_edges(alpha, target, source, len(x), len(x))
        return self.propagate(alpha, v.index_select(0, source), target, len(x))

    def layers(self):
        return self.q, self.k, self.v

    def normalise(self, scores, target, number):
        return scatter_softmax(scores, target, number)

    def propagate(self, alpha, values, target, number):
        messages = values * alpha.view(-1, self.heads, 1)
        return scatter(messages, target, number)


@graph_pattern("self", inputs=multigraph)
class MessagesFlattened(GraphTransformer):
    """HGTConv: heads and width of the messages are flattened before they are summed."""

    def propagate(self, alpha, values, target, number):
        messages = (values * alpha.view(-1, self.heads, 1)).view(-1, self.heads * self.head_width)
        return scatter(messages, target, number)


@graph_pattern("self")
class MessagesByEinsum(GraphTransformer):
    """Scores and messages are einsums that sum over no edge."""

    def forward(self, x, edges):
        source, target = edges
        q, k, v = (layer(x).view(-1, self.heads, self.head_width) for layer in self.layers())
        scores = torch.einsum("ehd,ehd->eh", q[target], k[source]) * self.scale
        alpha = scatter_softmax(scores, target, len(x))
        self.note_edges(alpha, target, source, len(x), len(x))
        messages = torch.einsum("eh,ehd->ehd", alpha, v[source])
        return torch.zeros_like(v).index_add_(0, target, messages)


@graph_pattern("self")
class MessagesByIndexPut(GraphTransformer):
    """Messages are accumulated by index_put_."""

    def propagate(self, alpha, values, target, number):
        out = torch.zeros(number, self.heads, self.head_width)
        return out.index_put_((target,), values * alpha[..., None], accumulate=True)


@graph_pattern("self")
class MessagesByScatterReduce(GraphTransformer):
    """Messages are summed by scatter_reduce."""

    def propagate(self, alpha, values, target, number):
        messages = values * alpha[..., None]
        index = target.view(-1, 1, 1).expand_as(messages)
        zeros = torch.zeros(number, self.heads, self.head_width)
        return zeros.scatter_reduce(0, index, messages, reduce="sum", include_self=True)


@graph_pattern("self")
class ExponentialsWithoutMaximum(GraphTransformer):
    """GraphGPS-like softmax by hand: exp, a sum per target, and a division."""

    def normalise(self, scores, target, number):
        exp = scores.clamp(-5, 5).exp()
        return exp / torch.zeros(number, self.heads).index_add_(0, target, exp)[target]


@graph_pattern("self")
class EdgeFeatures(Graph):
    """Features of the edges are added to keys and values."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.q, self.k, self.v = (sharp_linear(sizes.width, sizes.width) for _ in range(3))
        self.edge = nn.Linear(4, sizes.width)

    def forward(self, x, edges):
        source, target = edges
        features = self.edge(torch.arange(40.0).view(10, 4).sin())
        q, k, v = (layer(x) for layer in (self.q, self.k, self.v))
        q, k, v, features = (t.view(-1, self.heads, self.head_width) for t in (q, k, v, features))
        alpha = scatter_softmax((q[target] * (features + k[source])).sum(-1), target, len(x))
        self.note_edges(alpha, target, source, len(x), len(x))
        return scatter((features + v[source]) * alpha.unsqueeze(-1), target, len(x)).flatten(1)


@graph_pattern("self", inputs=graph_with_features)
class EdgeFeaturesJoined(Graph):
    """HEATConv: values are projected from the source's features and the edge's, joined."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.score = sharp_linear(2 * sizes.width + 4, sizes.heads)
        self.v = nn.Linear(sizes.width + 4, sizes.width)

    def forward(self, x, edges, features):
        source, target = edges
        scores = self.score(torch.cat([x[target], x[source], features], dim=-1))
        alpha = scatter_softmax(nn.functional.leaky_relu(scores), target, len(x))
        self.note_edges(alpha, target, source, len(x), len(x))
        values = self.v(torch.cat([x[source], features], dim=-1))
        values = values.view(-1, self.heads, self.head_width)
        return scatter(values * alpha.unsqueeze(-1), target, len(x)).flatten(1)


@graph_pattern("self")
class RelationalGraph(Graph):
    """RGATConv: the projection of a source is picked by the type of the edge."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.weight = nn.Parameter(torch.randn(3, sizes.width, sizes.width))
        self.q, self.k = (nn.Parameter(torch.randn(sizes.width, sizes.heads)) for _ in range(2))

    def forward(self, x, edges):
        source, target = edges
        w = torch.index_select(self.weight, 0, torch.arange(10) % 3)
        own = torch.bmm(x.index_select(0, target).unsqueeze(1), w).squeeze(-2)
        values = torch.bmm(x.index_select(0, source).unsqueeze(1), w).squeeze(-2)
        scores = nn.functional.leaky_relu(own @ self.q + values @ self.k)
        alpha = scatter_softmax(scores, target, len(x))
        self.note_edges(alpha, target, source, len(x), len(x))
        values = values.view(-1, self.heads, self.head_width)
        return scatter(alpha.view(-1, self.heads, 1) * values, target, len(x)).flatten(1)


@graph_pattern("cross", inputs=bipartite)
class BipartiteGraph(GraphTransformer):
    """Nodes of one kind attend to those of another."""

    def forward(self, x, y, edges):
        source, target = edges
        q = self.q(y).view(-1, self.heads, self.head_width)
        k, v = (layer(x).view(-1, self.heads, self.head_width) for layer in (self.k, self.v))
        scores = (q[target] * k[source]).sum(dim=-1) * self.scale
        alpha = scatter_softmax(scores, target, len(y))
        self.note_edges(alpha, target, source, len(y), len(x))
        return scatter(v[source] * alpha.unsqueeze(-1), target, len(y))


@graph_pattern("cross", inputs=two_graphs, sizes=Sizes(heads=1))
class GraphPooling(Graph):
    """AttentionalAggregation: a softmax over the nodes of each graph, and their weighted sum."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.gate = sharp_linear(sizes.width, 1)

    def forward(self, x, index):
        alpha = scatter_softmax(self.gate(x), index, 3)
        self.note_edges(alpha, index, torch.arange(len(x)), 3, len(x))
        return scatter(alpha * x, index, 3)


@pattern(inputs=two_graphs, values_not_found=("PoolingPerChannel",))
class PoolingPerChannel(Graph):
    """SoftmaxAggregation: each channel has weights of its own."""

    def forward(self, x, index):
        alpha = scatter_softmax(x, index, 3)
        return scatter(alpha * x, index, 3)


@pattern(inputs=graph, not_attention=("RoutedNodes",))
class RoutedNodes(Bare):
    """Experts of a graph's nodes, whose outputs are summed by index: no weights of edges."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.gate, self.expert = sharp_linear(sizes.width, 4), nn.Linear(sizes.width, sizes.width)

    def forward(self, x, edges):
        source, target = edges
        gates = self.gate(x).softmax(-1)
        messages = self.expert(x)[source] * gates[source, 1, None]
        return scatter(messages, target, len(x))
