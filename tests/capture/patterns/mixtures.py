"""Mixtures that resemble attention: branches, block sizes, coordinates, capsules, linear forms."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from capture.patterns.base import Bare, Sizes, pattern, sharp_linear


def image(sizes: Sizes) -> tuple[Tensor, ...]:
    return (torch.randn(sizes.batch, 3, 4, 6),)


def capsules(sizes: Sizes) -> tuple[Tensor, ...]:
    return (torch.randn(sizes.batch, sizes.keys, sizes.width),)


@pattern(not_attention=("Modalities",), variants={"modalities=batch": Sizes(batch=3)})
class Modalities(Bare):
    """Late fusion: each modality has an encoder, and a score of its own encoding."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.encoders = nn.ModuleList(nn.Linear(sizes.width, 8) for _ in range(3))
        self.score = sharp_linear(8, 1)

    def forward(self, x):
        encoded = torch.stack([encoder(x.mean(1)).relu() for encoder in self.encoders], dim=1)
        weights = self.score(encoded).softmax(dim=1)
        return (weights * encoded).sum(dim=1)


@pattern(not_attention=("JoinedExperts",), variants={"experts=tokens": Sizes(queries=4)})
class JoinedExperts(Bare):
    """Experts whose outputs are joined along a new axis, by cat rather than by stack."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.experts = nn.ModuleList(nn.Linear(sizes.width, 8) for _ in range(4))
        self.gate = sharp_linear(sizes.width, 4)

    def forward(self, x):
        outputs = torch.cat([expert(x).unsqueeze(2) for expert in self.experts], dim=2)
        return (self.gate(x).softmax(dim=-1).unsqueeze(-1) * outputs).sum(dim=2)


@pattern(not_attention=("BlockSizes",), variants={"sizes=batch": Sizes(batch=3)})
class BlockSizes(Bare):
    """Charformer: for each character, a mixture of means over blocks of several sizes."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.score = sharp_linear(sizes.width, 1)

    def forward(self, x):
        means = [F.avg_pool1d(x.mT, 2 * n + 1, stride=1, padding=n).mT for n in range(3)]
        blocks = torch.stack(means, dim=2)
        weights = F.softmax(self.score(blocks).squeeze(-1), dim=2)
        return (blocks * weights.unsqueeze(-1)).sum(dim=2)


@pattern(not_attention=("SinglePath",))
class SinglePath(Bare):
    """Semantic attention over the paths of a graph, of which there is only one."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.layer, self.score = nn.Linear(sizes.width, 8), nn.Linear(8, 1)

    def forward(self, x):
        paths = torch.stack([self.layer(x)])
        weights = self.score(paths.tanh().mean(dim=2)).softmax(dim=0)
        return (weights.unsqueeze(-1) * paths).sum(dim=0)


@pattern(not_attention=("ExpectedCoordinates",), inputs=image)
class ExpectedCoordinates(Bare):
    """Key points: a softmax over the pixels of each channel, times the grid of coordinates."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.conv = nn.Conv2d(3, 5, 1)

    def forward(self, x):
        heat = self.conv(x).flatten(2).softmax(dim=-1)
        sides = [torch.linspace(-1, 1, size) for size in x.shape[2:]]
        grid = torch.stack(torch.meshgrid(*sides, indexing="ij"), dim=-1)
        return heat @ grid.flatten(0, 1)


@pattern(not_attention=("Capsules",), inputs=capsules)
class Capsules(Bare):
    """Dynamic routing: a softmax over the capsules above, of which each input has a vote."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.votes = nn.Parameter(torch.randn(sizes.keys, 4, 6, sizes.width))

    def forward(self, x):
        votes = torch.einsum("icdw,biw->bicd", self.votes, x)
        logits = torch.zeros(len(x), x.shape[1], 4)
        for _ in range(3):
            routing = logits.softmax(dim=2)
            above = torch.tanh((routing.unsqueeze(-1) * votes).sum(dim=1))
            logits = logits + (votes * above.unsqueeze(1)).sum(dim=-1)
        return above


@pattern(not_attention=("LinearMemory",))
class LinearMemory(Bare):
    """Linear attention of learned memories, by copies of parameters: both sides are normalised."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.memory = nn.Parameter(torch.randn(4, sizes.width))
        self.to_q, self.to_k, self.to_v = (
            nn.Parameter(torch.randn(sizes.width, sizes.width)) for _ in range(3)
        )

    def forward(self, x):
        memory = F.layer_norm(self.memory, self.memory.shape[-1:]).expand(len(x), -1, -1)
        rows = torch.cat([memory, x], dim=1)
        q, k, v = (
            torch.einsum("bnd,de->bne", t, torch.clone(w)).unflatten(-1, (self.heads, -1))
            for t, w in ((memory, self.to_q), (rows, self.to_k), (rows, self.to_v))
        )
        context = torch.einsum("bnhd,bnhe->bhde", k.softmax(dim=1), v)
        return torch.einsum("bnhd,bhde->bnhe", q.softmax(dim=-1), context)


@pattern(may_be_listed=True)
class TransportCost(Bare):
    """Optimal transport: iterations of Sinkhorn's multiply a kernel with vectors of its sums."""

    def forward(self, x):
        costs = torch.cdist(x, x.flip(1))
        kernel = torch.exp(-costs)
        rows = torch.ones_like(kernel[..., :1])
        for _ in range(3):
            columns = 1 / (kernel.mT @ rows)
            rows = 1 / (kernel @ columns)
        return (rows * kernel * columns.mT * costs).sum(dim=(1, 2))
