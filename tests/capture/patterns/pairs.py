"""Which rows are compared: of one text or two, with keys of their own, or with their summaries."""

import torch
import torch.nn.functional as F
from einops import repeat
from torch import Tensor, nn

from capture.patterns.base import Attention, Bare, Sizes, pattern, sharp_linear, two_texts

SAME_LENGTH = Sizes(queries=6, keys=6)


def split_heads(rows: Tensor, heads: int) -> Tensor:
    return rows.unflatten(-1, (heads, -1)).transpose(1, 2)


@pattern("self", probe=None, is_traced=True, variants=("batch_of_1", "batch=heads"))
class NullKey(Attention):
    """A learned key and value before those of the text, which no mask hides."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.null = nn.Parameter(torch.randn(2, sizes.heads, sizes.head_width))

    def forward(self, x):
        q, k, v = (split_heads(layer(x), self.heads) for layer in (self.to_q, self.to_k, self.to_v))
        k, v = (
            torch.cat([repeat(null, "h d -> b h 1 d", b=len(x)), t], dim=2)
            for null, t in zip(self.null, (k, v), strict=True)
        )
        attn = (q @ k.mT * self.scale).softmax(dim=-1)
        self.note(attn)
        return self.to_out((attn @ v).transpose(1, 2).flatten(2))


@pattern("causal", probe=None)
class NullKeyCausal(NullKey):
    """The same with a causal mask, which leaves the learned key visible."""

    def forward(self, x):
        q, k, v = (split_heads(layer(x), self.heads) for layer in (self.to_q, self.to_k, self.to_v))
        k, v = (
            torch.cat([repeat(null, "h d -> b h 1 d", b=len(x)), t], dim=2)
            for null, t in zip(self.null, (k, v), strict=True)
        )
        scores = q @ k.mT * self.scale
        hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(2)
        attn = scores.masked_fill(hidden, -torch.inf).softmax(dim=-1)
        self.note(attn)
        return self.to_out((attn @ v).transpose(1, 2).flatten(2))


@pattern("cross", "cross", probe=None)
class AgentTokens(Attention):
    """Agents, which are means of queries, look at the text, and its rows at the agents."""

    def forward(self, x, y):
        q, k, v = (split_heads(t, self.heads) for t in (self.to_q(x), self.to_k(y), self.to_v(y)))
        agents = F.adaptive_avg_pool1d(q.flatten(0, 1).mT, 3).mT.view(*q.shape[:2], 3, -1)
        gathering = (agents @ k.mT * self.scale).softmax(dim=-1)
        spreading = (q @ agents.mT * self.scale).softmax(dim=-1)
        self.note(gathering)
        self.note(spreading)
        return self.to_out((spreading @ (gathering @ v)).transpose(1, 2).flatten(2))


@pattern("cross", inputs=two_texts, sizes=SAME_LENGTH)
class AdditiveVector(Bare):
    """Additive scores of all pairs of two texts as long as each other, by a learned vector."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.left, self.right = sharp_linear(sizes.width, 8), sharp_linear(sizes.width, 8)
        self.vector = nn.Parameter(torch.randn(8))

    def forward(self, x, y):
        sums = self.left(x).unsqueeze(2) + self.right(y).unsqueeze(1)
        attn = torch.einsum("bqkd,d->bqk", sums.tanh(), self.vector).softmax(dim=-1)
        self.note(attn, "b q k -> b 1 q k")
        return attn @ y


@pattern("cross", "cross", inputs=two_texts, sizes=Sizes(queries=7, keys=5))
class CoAttentionByAffinity(Bare):
    """An affinity matrix of two texts, of which one is projected, normalised both ways."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.weight = nn.Parameter(torch.randn(sizes.width, sizes.width))

    def forward(self, x, y):
        affinity = x @ self.weight @ y.mT
        rows, columns = affinity.softmax(dim=2), affinity.mT.softmax(dim=2)
        self.note(rows, "b q k -> b 1 q k")
        self.note(columns, "b q k -> b 1 q k")
        return torch.bmm(rows, y), torch.bmm(columns, x)


@pattern("cross", "cross", inputs=two_texts, sizes=SAME_LENGTH)
class SoftAlignment(Bare):
    """Natural language inference: two inputs of one length are compared without projections."""

    def forward(self, x, y):
        energies = x @ y.mT
        left, right = energies.softmax(dim=-1), energies.softmax(dim=1)
        self.note(left, "b q k -> b 1 q k")
        self.note(right, "b k q -> b 1 q k")
        return left @ y, right.mT @ x
