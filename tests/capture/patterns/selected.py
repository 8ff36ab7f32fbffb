"""Rows and heads that were selected, sorted, split or stacked on the way to the values."""

from warnings import catch_warnings

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from capture.patterns.base import Attention, Bare, FusedAttention, Sizes, pattern, sharp_linear

EIGHT_TOKENS = Sizes(queries=8)


def image(sizes: Sizes) -> tuple[Tensor, ...]:
    return (torch.randn(sizes.batch, sizes.width, 4, 6),)


def points(sizes: Sizes) -> tuple[Tensor, ...]:
    return (torch.randn(sizes.batch, sizes.queries, sizes.width),)


def edges(sizes: Sizes) -> tuple[Tensor, ...]:
    return (torch.randn(7, sizes.width), torch.randint(0, 7, (2, 17)))


@pattern("self", variants=("batch=heads", "batch_of_1", "all_equal"), probe="b q (h d)")
class HeadsStackedLast(Attention):
    """Scores of the heads are stacked last, and each head multiplies its part of the values."""

    def forward(self, x):
        q, k, v = (
            layer(x).chunk(self.heads, dim=-1) for layer in (self.to_q, self.to_k, self.to_v)
        )
        scores = torch.stack([a @ b.mT * self.scale for a, b in zip(q, k, strict=True)], dim=-1)
        attn = scores.softmax(dim=2)
        self.note(attn, "b q k h -> b h q k")
        return self.to_out(torch.cat([attn[..., n] @ v[n] for n in range(self.heads)], dim=-1))


@pattern("self", variants=("batch=heads", "batch_of_1", "heads_of_1"), probe=None)
class BestKeysGathered(Attention):
    """Each query gathers the values of its best keys, among which its weights are normalised."""

    def forward(self, x):
        q, k, v = (
            layer(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for layer in (self.to_q, self.to_k, self.to_v)
        )
        best, index = (q @ k.mT * self.scale).topk(3, dim=-1)
        attn = best.softmax(dim=-1)
        self.note(attn, "b h q k -> b q h 1 k")
        copies = v.unsqueeze(2).expand(-1, -1, q.shape[2], -1, -1)
        picked = copies.gather(3, index.unsqueeze(-1).expand(*index.shape, v.shape[-1]))
        return self.to_out((attn.unsqueeze(-1) * picked).sum(dim=3).transpose(1, 2).flatten(2))


@pattern("causal", variants=True, probe=None)
class KeysChosenByIndexer(Attention):
    """DeepSeek's sparse attention: a weighted sum over heads of ReLU scores chooses the keys."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.index_queries = nn.Linear(sizes.width, sizes.width)
        self.index_keys = nn.Linear(sizes.width, sizes.width // sizes.heads)
        self.head_weights = nn.Linear(sizes.width, sizes.heads)

    def forward(self, x):
        index_queries = self.index_queries(x).unflatten(-1, (self.heads, -1))
        scores = F.relu(index_queries @ self.index_keys(x).mT.unsqueeze(1))
        chosen = (self.head_weights(x).unsqueeze(-2) @ scores).squeeze(-2)
        future = torch.ones(chosen.shape[1:], dtype=torch.bool).triu(1)
        best = chosen.masked_fill(future, -torch.inf).topk(3, dim=-1).indices
        hidden = torch.ones_like(chosen, dtype=torch.bool).scatter(-1, best, False) | future
        q, k, v = (
            layer(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for layer in (self.to_q, self.to_k, self.to_v)
        )
        scores = (q @ k.mT * self.scale).masked_fill(hidden[:, None], -torch.inf)
        attn = scores.softmax(dim=-1)
        self.note(attn)
        return self.to_out((attn @ v).transpose(1, 2).flatten(2))


@pattern("cross", inputs=points, sizes=Sizes(queries=7), probe=None)
class ChosenQueries(Attention):
    """Informer: some queries were chosen, and the mask hides what is after their positions."""

    def forward(self, x):
        q, k, v = (
            layer(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for layer in (self.to_q, self.to_k, self.to_v)
        )
        chosen = torch.tensor([0, 2, 3]).expand(*q.shape[:2], -1)
        scores = q.gather(2, chosen.unsqueeze(-1).expand(*chosen.shape, q.shape[-1])) @ k.mT
        future = torch.arange(q.shape[2]) > chosen.unsqueeze(-1)
        attn = (scores * self.scale).masked_fill(future, -torch.inf).softmax(dim=-1)
        self.note(attn)
        context = v.cumsum(dim=2).scatter(
            2, chosen.unsqueeze(-1).expand(*chosen.shape, v.shape[-1]), attn @ v
        )
        return self.to_out(context.transpose(1, 2).flatten(2))


@pattern("self", sizes=EIGHT_TOKENS, probe=None)
class SortedChunks(FusedAttention):
    """Reformer: rows are sorted by a hash of their own in each head, and attend in chunks."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.register_buffer("rotation", torch.randn(sizes.head_width))

    def forward(self, x):
        q, k, v = (
            t.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for t in self.to_qkv(x).chunk(3, dim=-1)
        )
        order = (q @ self.rotation).argsort(dim=-1)[..., None].expand_as(q)
        q, k, v = (t.gather(2, order).unflatten(2, (-1, 4)) for t in (q, k, v))
        attn = (q @ k.mT * self.scale).softmax(dim=-1)
        self.note(attn, "b h w q k -> b w h q k")
        out = (attn @ v).flatten(2, 3).gather(2, order.argsort(dim=2))
        return self.to_out(out.transpose(1, 2).flatten(2))


@pattern(
    sizes=EIGHT_TOKENS,
    probe=None,
    values_not_found=("RoundsOfSortedChunks",),
    not_attention=("RoundsOfSortedChunks",),
)
class RoundsOfSortedChunks(SortedChunks):
    """Reformer: rounds of hashes, whose contexts are put back in order and rescaled."""

    def forward(self, x):
        contexts, sums = zip(*(self.round(x, sign) for sign in (1, -1)), strict=True)
        context, sums = torch.stack(contexts, dim=1), torch.stack(sums, dim=1)
        shares = torch.exp(sums - torch.logsumexp(sums, dim=1, keepdim=True))
        out = torch.sum(context * shares, dim=1)
        return self.to_out(out.transpose(1, 2).flatten(2))

    def round(self, x, sign):
        q, k, v = (
            t.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for t in self.to_qkv(x).chunk(3, dim=-1)
        )
        order = (sign * (q @ self.rotation)).argsort(dim=-1)[..., None]
        q, k, v = (t.gather(2, order.expand_as(t)).unflatten(2, (-1, 4)) for t in (q, k, v))
        scores = q @ k.mT * self.scale
        sums = torch.logsumexp(scores, dim=-1, keepdim=True)
        context = (torch.exp(scores - sums) @ v).flatten(2, 3)
        before = order.argsort(dim=2)
        return context.gather(2, before.expand_as(context)), sums.flatten(2, 3).gather(2, before)


@pattern("self", "self", inputs=image, probe=None, sums_to_one=False)
class RowsAndColumns(Bare):
    """Criss-cross attention: one softmax over a pixel's row and column, split between them."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.q, self.k, self.v = (nn.Conv2d(sizes.width, sizes.width, 1) for _ in range(3))

    def forward(self, x):
        q, k, v = self.q(x), self.k(x), self.v(x)
        scores = (
            torch.einsum("b c y x, b c z x -> b y x z", q, k),
            torch.einsum("b c y x, b c y z -> b y x z", q, k),
        )
        both = torch.cat(scores, dim=-1).softmax(dim=-1)
        column, row = both.split(x.shape[2:], dim=-1)
        self.note(column, "b y x z -> b x 1 y z")
        self.note(row, "b y x z -> b y 1 x z")
        return torch.einsum("b y x z, b c z x -> b c y x", column, v) + torch.einsum(
            "b y x z, b c y z -> b c y x", row, v
        )


@pattern("self", inputs=image, probe=None, variants=("batch_of_1", "batch=heads"))
class ImageRows(Bare):
    """Axial attention over the rows of an image, merged with a batch that may be of one."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.qkv = nn.Conv2d(sizes.width, 3 * sizes.width, 1)

    def forward(self, x):
        rows = self.qkv(x).transpose(1, 2).flatten(0, 1).mT
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in rows.chunk(3, -1))
        attn = (q @ k.mT).softmax(dim=-1)
        self.note(attn, "(b y) h q k -> b y h q k", y=x.shape[2])
        return (attn @ v).transpose(1, 2).flatten(2).mT.unflatten(0, (len(x), -1)).transpose(1, 2)


@pattern("self", normaliser="softmin", sums_to_one=True)
class Softmin(Attention):
    """A softmin of negative scores."""

    def forward(self, x):
        q, k, v = (
            layer(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for layer in (self.to_q, self.to_k, self.to_v)
        )
        attn = F.softmin(-(q @ k.mT) * self.scale, dim=-1)
        self.note(attn)
        return self.to_out((attn @ v).transpose(1, 2).flatten(2))


@pattern("self")
class SafeSoftmax(Attention):
    """The softmax behind fused kernels, and the product of torch.linalg."""

    def forward(self, x):
        q, k, v = (
            layer(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for layer in (self.to_q, self.to_k, self.to_v)
        )
        scores = torch.linalg.matmul(q, k.mT) * self.scale
        attn = torch.ops.aten._safe_softmax(scores, -1)
        self.note(attn)
        return self.to_out(torch.linalg.matmul(attn, v).transpose(1, 2).flatten(2))


@pattern("self")
class MaskedSoftmax(Attention):
    """The softmax of nested encoders, which takes a mask of what to hide."""

    def forward(self, x):
        q, k, v = (
            layer(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for layer in (self.to_q, self.to_k, self.to_v)
        )
        scores = q @ k.mT * self.scale
        attn = torch._masked_softmax(scores, torch.zeros_like(scores, dtype=torch.bool), -1)
        self.note(attn)
        return self.to_out(
            (attn.unsqueeze(-1) * v.unsqueeze(2)).nansum(dim=3).transpose(1, 2).flatten(2)
        )


@pattern("self", normaliser="pow / sum", sums_to_one=True)
class SquaresOverSum(Attention):
    """Squares of scores, divided by their sum."""

    def forward(self, x):
        q, k, v = (
            layer(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for layer in (self.to_q, self.to_k, self.to_v)
        )
        squares = (q @ k.mT * self.scale) ** 2
        attn = squares / squares.sum(dim=-1, keepdim=True)
        self.note(attn)
        return self.to_out((attn @ v).transpose(1, 2).flatten(2))


@pattern("self", normaliser="scatter softmax", inputs=edges, probe=None, sums_to_one=False)
class SqueezedExponentials(Bare):
    """A sparse graph layer whose exponentials lose an axis before they are summed by index."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.layer, self.score = nn.Linear(sizes.width, 8), sharp_linear(16, 1)

    def forward(self, x, edges):
        rows, (source, target) = self.layer(x), edges
        pairs = torch.cat([rows[source], rows[target]], dim=1)
        numerators = torch.exp(F.leaky_relu(self.score(pairs), 0.2)).squeeze(-1)
        sums = torch.zeros(len(x)).index_add(0, target, numerators)
        attn = numerators / sums[target]
        dense = torch.zeros(len(x), len(x)).index_put((target, source), attn, accumulate=True)
        self.note(dense, "q k -> 1 1 q k")
        return torch.zeros_like(rows).index_add(0, target, attn[:, None] * rows[source])


def atoms(sizes: Sizes) -> tuple[Tensor, ...]:
    return (
        torch.randn(sizes.batch, sizes.queries, sizes.width),
        torch.randn(sizes.batch, sizes.queries, 3),
    )


@pattern("self", "self", inputs=atoms, probe=None, applied=None, sums_to_one=True)
class CoordinatesToo(Attention):
    """The mean of the heads moves coordinates, before each head multiplies values."""

    def forward(self, x, coordinates):
        q, k, v = (
            layer(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for layer in (self.to_q, self.to_k, self.to_v)
        )
        attn = (q @ k.mT * self.scale).softmax(dim=-1)
        shifts = coordinates.unsqueeze(2) - coordinates.unsqueeze(1)
        self.note(attn.mean(1), "b q k -> b 1 q k")
        self.note(attn)
        moved = (attn.mean(1).unsqueeze(-1) * shifts).sum(dim=2)
        return moved, self.to_out((attn @ v).transpose(1, 2).flatten(2))


def flattened_tanh(scores: Tensor) -> Tensor:
    return scores.tanh().flatten()


with catch_warnings(action="ignore", category=DeprecationWarning):
    scripted_tanh = torch.jit.script(flattened_tanh)


@pattern("cross", inputs=points, probe=None, variants={"points=heads": Sizes(queries=3)})
class FlatScores(Bare):
    """Scores of neighbours, of which a scripted function makes a flat list that is split again."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.to_v, self.score = (
            sharp_linear(sizes.width, sizes.width),
            sharp_linear(sizes.width, sizes.heads),
        )

    def forward(self, x):
        neighbours = x[:, :, None] - x[:, None, :2]
        flat = scripted_tanh(self.score(neighbours).transpose(2, 3) * 3)
        attn = flat.view(*x.shape[:2], self.heads, 2).softmax(dim=-1)
        self.note(attn, "b n h k -> b n h 1 k")
        v = self.to_v(neighbours).unflatten(-1, (self.heads, -1))
        return torch.einsum("bnhk,bnkhd->bnhd", attn, v)
