"""Softmaxes that are no attention: over experts, codes, classes, features or layers."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from capture.patterns.base import Bare, Sizes, pattern, sharp_linear


def token_ids(sizes: Sizes) -> tuple[Tensor, ...]:
    return (torch.randint(0, 9, (sizes.batch, sizes.queries)),)


class Experts(Bare):
    """Base of mixtures of experts: four of them, or as many as there are tokens."""

    number = 4

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.gate = sharp_linear(sizes.width, self.number)
        self.experts = nn.ModuleList(
            [nn.Linear(sizes.width, sizes.width) for _ in range(self.number)]
        )


@pattern(not_attention=("ExpertsEinsum",))
class ExpertsEinsum(Experts):
    """Soft mixture of experts: an einsum over stacked outputs."""

    def forward(self, x):
        gates = F.softmax(self.gate(x), dim=-1)
        outputs = torch.stack([expert(x) for expert in self.experts], dim=-2)
        return torch.einsum("bne,bned->bnd", gates, outputs)


@pattern(not_attention=("ExpertsAsManyAsTokens",))
class ExpertsAsManyAsTokens(ExpertsEinsum):
    """As many experts as tokens: only where they come from tells them apart."""

    number = 5


@pattern(not_attention=("TopExpert",))
class TopExpert(Experts):
    """Switch routing: the softmax over the best expert alone is 1."""

    def forward(self, x):
        best, index = self.gate(x).topk(1, dim=-1)
        gate = best.softmax(dim=-1)
        outputs = torch.stack([expert(x) for expert in self.experts], dim=-1)
        chosen = outputs.gather(-1, index.unsqueeze(-2).expand(*x.shape, 1))
        return chosen.squeeze(-1) * gate


@pattern(not_attention=("ExpertsMulSum",), variants={"batch=experts": Sizes(batch=4)})
class ExpertsMulSum(Experts):
    """MMoE: gates times stacked outputs, summed over the experts."""

    def forward(self, x):
        x = x.mean(1)
        outputs = torch.stack([expert(x) for expert in self.experts], dim=1)
        gates = torch.softmax(self.gate(x), dim=1)
        return (gates.unsqueeze(-1) * outputs).sum(dim=1)


@pattern(not_attention=("ExpertsBmm",), variants={"batch=experts": Sizes(batch=4)})
class ExpertsBmm(Experts):
    """The same for one row per item, by bmm of (batch, 1, expert) with stacked outputs."""

    def forward(self, x):
        x = x.mean(1)
        outputs = torch.stack([expert(x) for expert in self.experts], dim=1)
        gates = self.gate(x).softmax(-1).unsqueeze(1)
        return torch.bmm(gates, outputs).squeeze(1)


@pattern(not_attention=("ExpertsLoop",))
class ExpertsLoop(Experts):
    """Sparse routing of Mixtral: top two, renormalised, a loop with index_add_."""

    def forward(self, x):
        rows = x.flatten(0, 1)
        routing = F.softmax(self.gate(rows), dim=1, dtype=torch.float)
        routing, selected = torch.topk(routing, 2, dim=-1)
        routing = routing / routing.sum(dim=-1, keepdim=True)
        out = torch.zeros_like(rows)
        for n, expert in enumerate(self.experts):
            row, place = torch.where(selected == n)
            out.index_add_(0, row, expert(rows[row]) * routing[row, place, None])
        return out.view_as(x)


@pattern("self", may_be_listed=True)
class SortedRouting(Experts):
    """JetMoE: tokens are sorted by their expert, whose outputs are added by index."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.q, self.k, self.v = (sharp_linear(sizes.width, sizes.width) for _ in range(3))

    def forward(self, x):
        rows = x.flatten(0, 1)
        scores, chosen = self.gate(rows).topk(1, dim=1)
        gates = scores.softmax(dim=1)
        order = chosen.flatten().sort(0).indices
        outputs = self.experts[0](rows[order]) * gates.flatten()[order][:, None]
        x = torch.zeros_like(rows).index_add(0, order, outputs).view_as(x)
        q, k, v = (
            layer(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for layer in (self.q, self.k, self.v)
        )
        attn = (q @ k.mT * self.scale).softmax(-1)
        self.note(attn)
        return (attn @ v).transpose(1, 2).flatten(2)


@pattern(not_attention=("SwitchRouting",))
class SwitchRouting(Experts):
    """Switch Transformer: the probability of the best expert scales its output."""

    def forward(self, x):
        probs = self.gate(x).softmax(-1)
        gate, index = probs.max(dim=-1)
        outputs = torch.stack([expert(x) for expert in self.experts], dim=-2)
        chosen = outputs.gather(-2, index[..., None, None].expand(*index.shape, 1, x.shape[-1]))
        return chosen.squeeze(-2) * gate.unsqueeze(-1)


@pattern(not_attention=("ExpertWeights",))
class ExpertWeights(Bare):
    """Conditional convolution: a softmax mixes the parameters of experts."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.router = sharp_linear(sizes.width, 4)
        self.weight = nn.Parameter(torch.randn(4, sizes.width, sizes.width))

    def forward(self, x):
        routing = self.router(x.mean(1)).softmax(-1)
        kernels = torch.einsum("be,eio->bio", routing, self.weight)
        return torch.bmm(x, kernels)


@pattern(not_attention=("SoftCodebook",), variants={"codes=tokens": Sizes(queries=9)})
class SoftCodebook(Bare):
    """Soft vector quantisation: a codebook that is a parameter."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.codebook = nn.Parameter(torch.randn(9, sizes.width))

    def forward(self, x):
        probs = F.softmax(-torch.cdist(x, self.codebook.expand(len(x), -1, -1)), dim=-1)
        return probs @ self.codebook


@pattern(not_attention=("SoftCodebookBuffer",), variants={"codes=tokens": Sizes(queries=9)})
class SoftCodebookBuffer(Bare):
    """A codebook that is a buffer, updated by moving averages."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.register_buffer("embed", torch.randn(9, sizes.width))

    def forward(self, x):
        logits = torch.einsum("bnd,cd->bnc", x, self.embed)
        return torch.einsum("bnc,cd->bnd", logits.softmax(dim=-1), self.embed)


@pattern(not_attention=("GumbelCodebook",), train=True)
class GumbelCodebook(Bare):
    """Discrete VAE: F.gumbel_softmax over codes, times the codebook's weight."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.codebook = nn.Embedding(9, sizes.width)
        self.to_logits = sharp_linear(sizes.width, 9)

    def forward(self, x):
        one_hot = F.gumbel_softmax(self.to_logits(x), tau=0.9, dim=-1)
        return torch.einsum("b n c, c d -> b n d", one_hot, self.codebook.weight)


@pattern(not_attention=("Classifier",))
class Classifier(Bare):
    """Probabilities of classes are the output."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.head = nn.Linear(sizes.width, 9)

    def forward(self, x):
        return F.softmax(self.head(x.mean(1)), dim=-1)


@pattern(not_attention=("ClassLoss",))
class ClassLoss(Bare):
    """Softmax over classes in a hand-written loss."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.head = nn.Linear(sizes.width, 9)

    def forward(self, x):
        probs = torch.softmax(self.head(x), dim=-1)
        target = torch.arange(x.shape[1]).expand(x.shape[:2])
        return -torch.log(probs.gather(-1, target.unsqueeze(-1)) + 1e-9).mean()


@pattern(may_be_listed=True)
class DistillationLoss(Bare):
    """KL divergence between a teacher's and a student's distribution over the vocabulary."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.teacher, self.student = nn.Linear(sizes.width, 9), nn.Linear(sizes.width, 9)

    def forward(self, x):
        log_student = F.log_softmax(self.student(x) / 2, dim=-1)
        return F.kl_div(log_student, F.softmax(self.teacher(x) / 2, dim=-1), reduction="batchmean")


@pattern(may_be_listed=True)
class CrossEntropy(Bare):
    """F.cross_entropy, which has its own softmax inside."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.head = nn.Linear(sizes.width, 9)

    def forward(self, x):
        target = torch.arange(x.shape[0] * x.shape[1]) % 9
        return F.cross_entropy(self.head(x).flatten(0, 1), target)


@pattern(not_attention=("FeatureGate",), variants={"features=tokens": Sizes(queries=12)})
class FeatureGate(Bare):
    """Softmax over features as a gate."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.gate = nn.Linear(sizes.width, sizes.width)

    def forward(self, x):
        return x * F.softmax(self.gate(x), dim=-1)


@pattern(not_attention=("CrossCovariance",))
class CrossCovariance(Bare):
    """XCiT: attention between channels, over features rather than positions."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.qkv = sharp_linear(sizes.width, 3 * sizes.width)
        self.temperature = nn.Parameter(torch.ones(sizes.heads, 1, 1))

    def forward(self, x):
        B, N, C = x.shape
        qkv = self.qkv(x).reshape(B, N, 3, self.heads, C // self.heads).permute(2, 0, 3, 4, 1)
        q, k, v = qkv.unbind(0)
        q, k = F.normalize(q, dim=-1), F.normalize(k, dim=-1)
        attn = (q @ k.transpose(-2, -1)) * self.temperature
        attn = attn.softmax(dim=-1)
        return (attn @ v).permute(0, 3, 1, 2).reshape(B, N, C)


@pattern(not_attention=("CrossCovarianceOfEqualSizes",), sizes=Sizes(queries=4))
class CrossCovarianceOfEqualSizes(CrossCovariance):
    """As many tokens as channels of a head."""


@pattern(not_attention=("ChannelAttention",), variants={"channels=tokens": Sizes(queries=12)})
class ChannelAttention(Bare):
    """DANet's channel module: softmax over channels of an image."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.conv = nn.Conv1d(sizes.width, sizes.width, 1)

    def forward(self, x):
        x = self.conv(x.transpose(1, 2))
        energy = torch.bmm(x, x.permute(0, 2, 1))
        energy = torch.max(energy, -1, keepdim=True)[0].expand_as(energy) - energy
        return torch.bmm(F.softmax(energy, dim=-1), x) + x


@pattern(may_be_listed=True)
class SqueezeExcite(Bare):
    """SE: a sigmoid gate of channels from their means."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.fc = nn.Sequential(
            nn.Linear(sizes.width, 4), nn.ReLU(), nn.Linear(4, sizes.width), nn.Sigmoid()
        )

    def forward(self, x):
        return x * self.fc(x.mean(1)).unsqueeze(1)


@pattern(may_be_listed=True)
class GatedLinearUnit(Bare):
    """GLU and SwiGLU: elementwise gates, sigmoid and relu everywhere."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.up, self.down = nn.Linear(sizes.width, 16), nn.Linear(8, sizes.width)

    def forward(self, x):
        a, gate = self.up(x).chunk(2, dim=-1)
        return self.down(a * torch.sigmoid(gate)) + F.relu(x)


@pattern(may_be_listed=True)
class ReluNetwork(Bare):
    """A feed-forward layer by matmul: relu followed by a product is no relu attention."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.w1 = nn.Parameter(torch.randn(sizes.width, 5))
        self.w2 = nn.Parameter(torch.randn(5, sizes.width))

    def forward(self, x):
        return torch.relu(x @ self.w1) @ self.w2


@pattern(may_be_listed=True)
class GraphConvolution(Bare):
    """GCN: relu of rows, times a fixed normalised adjacency: no weights from scores."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.fc = nn.Linear(sizes.width, sizes.width)
        self.register_buffer("adjacency", torch.rand(sizes.queries, sizes.queries))

    def forward(self, x):
        adjacency = self.adjacency / self.adjacency.sum(-1, keepdim=True)
        return adjacency @ torch.relu(self.fc(x))


@pattern(not_attention=("ExpectedEmbedding",), inputs=token_ids)
class ExpectedEmbedding(Bare):
    """A language model's probabilities, and the expectation over its embedding matrix."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.embedding = nn.Embedding(9, sizes.width)
        self.lm_head = nn.Linear(sizes.width, 9, bias=False)
        self.lm_head.weight = self.embedding.weight

    def forward(self, tokens):
        probs = self.lm_head(self.embedding(tokens)).softmax(dim=-1)
        return torch.matmul(probs, self.embedding.weight)


@pattern(not_attention=("LearnedVectors",), variants={"vectors=tokens": Sizes(queries=6)})
class LearnedVectors(Bare):
    """A soft mixture of learned vectors, expanded to the batch."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.select = sharp_linear(sizes.width, 6)
        self.bank = nn.Parameter(torch.randn(6, sizes.width))

    def forward(self, x):
        weights = torch.softmax(self.select(x), dim=-1)
        bank = self.bank.unsqueeze(0).expand(x.shape[0], -1, -1)
        return torch.bmm(weights, bank)


@pattern(not_attention=("StyleTokens",))
class StyleTokens(Bare):
    """Global style tokens: tanh of a learned bank, read by dot products with its own keys."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.bank = nn.Parameter(torch.randn(6, sizes.width))
        self.query, self.key = (sharp_linear(sizes.width, 8) for _ in range(2))

    def forward(self, x):
        tokens = torch.tanh(self.bank)
        scores = self.query(x.mean(1)) @ self.key(tokens).T
        return F.softmax(scores, dim=-1) @ tokens


@pattern(not_attention=("ScalarMix",))
class ScalarMix(Bare):
    """ELMo: softmax over a parameter per layer, a sum in a loop."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.layers = nn.ModuleList([nn.Linear(sizes.width, sizes.width) for _ in range(4)])
        self.scalars = nn.Parameter(torch.randn(4))

    def forward(self, x):
        states = []
        for layer in self.layers:
            x = torch.tanh(layer(x))
            states.append(x)
        weights = F.softmax(self.scalars, dim=0)
        return sum(weight * state for weight, state in zip(weights, states, strict=True))


@pattern(not_attention=("ScalarMixStacked",), variants={"layers=batch": Sizes(batch=4)})
class ScalarMixStacked(Bare):
    """Layer weights over a stack of hidden states, by broadcasting or einsum."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.layers = nn.ModuleList([nn.Linear(sizes.width, sizes.width) for _ in range(4)])
        self.scalars = nn.Parameter(torch.randn(4))

    def forward(self, x):
        states = torch.stack([layer(x) for layer in self.layers], dim=0)
        weights = torch.softmax(self.scalars, dim=-1)
        return torch.einsum("l,lbnd->bnd", weights, states)


@pattern(not_attention=("SelectiveKernel",))
class SelectiveKernel(Bare):
    """SKNet: softmax over branches, per channel, times stacked branches, summed."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.branches = nn.ModuleList(
            [nn.Conv1d(sizes.width, sizes.width, n, padding=n // 2) for n in (1, 3, 5)]
        )
        self.fc = nn.Linear(sizes.width, 3 * sizes.width)

    def forward(self, x):
        x = x.transpose(1, 2)
        branches = torch.stack([branch(x) for branch in self.branches], dim=1)
        scores = self.fc(branches.sum(1).mean(-1)).unflatten(-1, (3, -1))
        weights = scores.softmax(dim=1).unsqueeze(-1)
        return (branches * weights).sum(dim=1)


@pattern(not_attention=("DistributionalHead",))
class DistributionalHead(Bare):
    """C51 and DFL: expectation of fixed bins, a softmax times a buffer."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.head = sharp_linear(sizes.width, 9)
        self.register_buffer("bins", torch.linspace(-1, 1, 9))

    def forward(self, x):
        return (F.softmax(self.head(x), dim=-1) * self.bins).sum(-1)


@pattern(not_attention=("DistributionalHeadMatmul",))
class DistributionalHeadMatmul(Bare):
    """The same with a matrix product, F.linear with the bins."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.head = sharp_linear(sizes.width, 9)
        self.register_buffer("bins", torch.linspace(-1, 1, 9))

    def forward(self, x):
        return F.linear(F.softmax(self.head(x), dim=-1), self.bins[None])


@pattern("self", not_attention=("AttentionAndClassifier",))
class AttentionAndClassifier(Bare):
    """A model with both: self-attention is recorded, the class probabilities are not."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.q, self.k, self.v = (sharp_linear(sizes.width, sizes.width) for _ in range(3))
        self.head = nn.Linear(sizes.width, 9)

    def forward(self, x):
        attn = (self.q(x) @ self.k(x).mT * self.scale).softmax(-1)
        self.note(attn, "b q k -> b 1 q k")
        return (attn @ self.v(x) @ self.head.weight.T).mean(1).softmax(-1)


@pattern("cross", not_attention=("PointerGenerator",))
class PointerGenerator(Bare):
    """See et al. 2017: attention, and a softmax over the vocabulary mixed with copies."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.vocabulary, self.p_gen = nn.Linear(sizes.width, 9), nn.Linear(sizes.width, 1)

    def forward(self, x, memory):
        attn = torch.bmm(x, memory.transpose(1, 2)).softmax(-1)
        self.note(attn, "b q k -> b 1 q k")
        context = torch.bmm(attn, memory)
        p_gen = torch.sigmoid(self.p_gen(context))
        index = (torch.arange(memory.shape[1]) % 9).expand(attn.shape)
        probs = F.softmax(self.vocabulary(context), dim=-1) * p_gen
        return probs.scatter_add(2, index, (1 - p_gen) * attn)


class Lambda(Bare):
    """LambdaNetworks: keys pool the values per feature, and queries are multiplied with that."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.qkv = nn.Conv2d(sizes.width, sizes.heads * 4 + 4 + sizes.head_width, 1, bias=False)
        self.position = nn.Conv3d(1, 4, (3, 3, 1), padding=(1, 1, 0))

    def forward(self, x):
        b, c, h, w = x.shape
        q, k, v = self.qkv(x).split([self.heads * 4, 4, self.head_width], dim=1)
        q = q.reshape(b, self.heads, 4, h * w).transpose(-1, -2)
        v = v.reshape(b, self.head_width, h * w).transpose(-1, -2)
        k = F.softmax(k.reshape(b, 4, h * w), dim=-1)
        content = q @ (k @ v).unsqueeze(1)
        position = self.position(v.reshape(b, 1, h, w, self.head_width))
        position = position.reshape(b, 1, 4, h * w, self.head_width).transpose(2, 3)
        position = (q.unsqueeze(-2) @ position).squeeze(-2)
        return (content + position).transpose(-1, -2).reshape(b, c, h, w)


def channels_first(sizes: Sizes) -> tuple[Tensor, ...]:
    return (torch.randn(sizes.batch, sizes.width, 3, 5),)


@pattern(inputs=channels_first, not_attention=("0", "4"))
class LambdaNetwork(nn.Sequential):
    """Lambda layers with an activation and a convolution between them."""

    def __init__(self, sizes: Sizes) -> None:
        convolution = nn.Conv2d(sizes.width, sizes.width, 3, padding=1)
        norm = nn.BatchNorm2d(sizes.width)
        super().__init__(Lambda(sizes), norm, nn.ReLU(), convolution, Lambda(sizes))
