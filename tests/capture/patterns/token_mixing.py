"""Weights that compare nothing, predicted or learned, and token mixing without a normaliser."""

import torch
import torch.nn.functional as F
from torch import nn

from capture.patterns.base import Attention, Bare, Sizes, pattern, sharp_linear


class Mixing(Bare):
    """Base: a projection to values, and a learned matrix of all pairs of positions."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.values = nn.Linear(sizes.width, sizes.width)
        self.matrix = nn.Parameter(torch.randn(sizes.queries, sizes.queries))


@pattern("self", variants=("batch=queries", "batch_of_1"))
class DenseSynthesizer(Mixing):
    """Synthesizer: each position predicts its weights over all positions."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.hidden = nn.Linear(sizes.width, sizes.width)
        self.predict = sharp_linear(sizes.width, sizes.heads * sizes.queries)

    def forward(self, x):
        scores = self.predict(F.relu(self.hidden(x))).unflatten(-1, (self.heads, -1))
        attn = scores.transpose(1, 2).softmax(dim=-1)
        self.note(attn)
        values = self.values(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        return (attn @ values).transpose(1, 2).flatten(2)


@pattern("self", variants=("batch=heads", "batch_of_1"))
class RandomSynthesizer(Mixing):
    """Synthesizer: a softmax of a learned matrix for each head, the same for all items."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.scores = nn.Parameter(torch.randn(1, sizes.heads, sizes.queries, sizes.queries))

    def forward(self, x):
        attn = F.softmax(self.scores.expand(len(x), -1, -1, -1), dim=-1)
        self.note(attn)
        values = self.values(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        return torch.einsum("bhij,bhjd->bhid", attn, values).transpose(1, 2).flatten(2)


@pattern("self", inputs=lambda sizes: (torch.randn(1, sizes.queries, sizes.width),))
class FactorisedSynthesizer(Mixing):
    """Synthesizer: the learned matrix is a product of two smaller ones."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.left = nn.Parameter(torch.randn(sizes.queries, 2))
        self.right = nn.Parameter(torch.randn(2, sizes.queries))

    def forward(self, x):
        attn = (self.left @ self.right).softmax(dim=-1)
        self.note(attn, "q k -> 1 1 q k")
        return attn @ self.values(x)


@pattern()
class TokenMixer(Mixing):
    """MLP-Mixer: a network over the positions of each channel, of linear layers."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.up, self.down = nn.Linear(sizes.queries, 9), nn.Linear(9, sizes.queries)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(x.transpose(1, 2)))).transpose(1, 2)


@pattern()
class MixerByMatrices(Mixing):
    """The same with parameters, a ReLU, and the transpose of the first matrix."""

    def forward(self, x):
        return x + (F.relu(x.mT @ self.matrix) @ self.matrix.T).mT


@pattern()
class AffineMixer(Mixing):
    """ResMLP: a learned matrix times the rows, by einsum."""

    def forward(self, x):
        return x + torch.einsum("nm,bmd->bnd", self.matrix, self.values(x))


@pattern()
class SpatialGate(Mixing):
    """gMLP: half of the channels, mixed over positions, gates the other half."""

    def forward(self, x):
        gated, gate = F.gelu(self.values(x)).chunk(2, dim=-1)
        return gated * torch.einsum("nm,bmd->bnd", self.matrix, gate)


@pattern()
class FourierMixer(Mixing):
    """FNet: Fourier transforms over channels and positions."""

    def forward(self, x):
        return torch.fft.fft(torch.fft.fft(x, dim=-1), dim=-2).real


@pattern()
class ActivatedMatrix(Mixing):
    """A learned adjacency: sigmoid or ReLU of a parameter, times the rows."""

    def forward(self, x):
        return torch.sigmoid(self.matrix) @ self.values(x) + F.relu(self.matrix) @ x


@pattern("causal")
class ForgetGates(Attention):
    """Forgetting Transformer: sums of log gates are a bias of the scores."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.gate = nn.Linear(sizes.width, sizes.heads)

    def forward(self, x):
        q, k, v = (
            layer(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for layer in (self.to_q, self.to_k, self.to_v)
        )
        sums = F.logsigmoid(self.gate(x)).transpose(1, 2).cumsum(dim=-1)
        scores = q @ k.mT * self.scale + (sums[..., :, None] - sums[..., None, :])
        future = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        attn = scores.masked_fill(future, -torch.inf).softmax(dim=-1)
        self.note(attn)
        return self.to_out((attn @ v).transpose(1, 2).flatten(2))


@pattern(values_not_found=("StickBreaking",), probe=None)
class StickBreaking(Attention):
    """Stick-breaking attention: exponentials of sums of log sigmoids, which nothing divides."""

    def forward(self, x):
        q, k, v = (
            layer(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for layer in (self.to_q, self.to_k, self.to_v)
        )
        scores = q @ k.mT * self.scale
        past = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril(-1)
        rest = F.logsigmoid(-scores).masked_fill(~past, 0)
        rest = rest.flip(-1).cumsum(-1).flip(-1) - rest
        attn = (F.logsigmoid(scores) + rest).masked_fill(~past, -1e9).exp()
        return self.to_out((attn @ v).transpose(1, 2).flatten(2))


@pattern("self")
class GateWithMemory(Attention):
    """Infini-attention: a gate adds what linear attention reads from a memory to the context."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.memory = nn.Parameter(torch.randn(sizes.heads, sizes.head_width, sizes.head_width))
        self.gate = nn.Parameter(torch.zeros(1, sizes.heads, 1, 1))

    def forward(self, x):
        q, k, v = (
            layer(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for layer in (self.to_q, self.to_k, self.to_v)
        )
        attn = (q @ k.mT * self.scale).softmax(dim=-1)
        self.note(attn)
        gate, read = torch.sigmoid(self.gate), (F.elu(q) + 1) @ self.memory
        out = 2 * ((1 - gate) * (attn @ v) + gate * read)
        return self.to_out(out.transpose(1, 2).flatten(2))


@pattern(not_attention=("ProductKeyMemory",))
class ProductKeyMemory(Mixing):
    """Product keys: a softmax over the best sums of two scores, as weights of an embedding bag."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.keys = nn.Parameter(torch.randn(2, 4, sizes.width // 2))
        self.bag = nn.EmbeddingBag(16, sizes.width, mode="sum")

    def forward(self, x):
        halves = self.values(x).flatten(0, 1).chunk(2, dim=-1)
        pairs = zip(halves, self.keys, strict=True)
        (first, i), (second, j) = ((half @ keys.T).topk(2) for half, keys in pairs)
        scores = (first[:, :, None] + second[:, None]).flatten(1)
        index = (4 * i[:, :, None] + j[:, None]).flatten(1)
        best, chosen = scores.topk(2)
        out = self.bag(index.gather(1, chosen), per_sample_weights=best.softmax(dim=-1))
        return out.view_as(x)
