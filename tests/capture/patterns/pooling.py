"""Pooling of a text by attention: learned queries, scores by a Linear layer, several hops."""

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


def unbatched(sizes: Sizes) -> tuple[Tensor, ...]:
    return (torch.randn(sizes.keys, sizes.width),)


@pattern("cross", inputs=one_long_text, probe=None, variants=("batch=heads", "batch_of_1"))
class LearnedQuery(Attention):
    """timm's AttentionPoolLatent: a learned query with heads."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.latent = nn.Parameter(torch.randn(1, 1, sizes.width))

    def forward(self, x):
        b, n, c = x.shape
        q = self.to_q(self.latent.expand(b, -1, -1)).reshape(b, 1, self.heads, -1).transpose(1, 2)
        k, v = (
            layer(x).reshape(b, n, self.heads, -1).transpose(1, 2)
            for layer in (self.to_k, self.to_v)
        )
        attn = (q * self.scale @ k.transpose(-2, -1)).softmax(dim=-1)
        self.note(attn)
        return self.to_out((attn @ v).transpose(1, 2).reshape(b, c))


@pattern("cross", inputs=one_long_text, probe=None)
class LearnedQuerySdpa(Attention):
    """SigLIP-like head: a learned query in the fused kernel."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.probe = nn.Parameter(torch.randn(1, 1, sizes.width))

    def forward(self, x):
        probe = self.probe.repeat(x.shape[0], 1, 1)
        q, k, v = (
            t.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for t in (self.to_q(probe), self.to_k(x), self.to_v(x))
        )
        self.note_dot_product(q, k)
        out = F.scaled_dot_product_attention(q, k, v)
        return self.to_out(out.transpose(1, 2).flatten(2))[:, 0]


@pattern("cross", inputs=one_long_text)
class ContextVector(Bare):
    """Hierarchical attention networks: tanh, matmul with a context vector, mul and sum."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.fc = sharp_linear(sizes.width, 8)
        self.context = nn.Parameter(torch.randn(8))

    def forward(self, x):
        scores = torch.matmul(torch.tanh(self.fc(x)), self.context)
        weights = F.softmax(scores, dim=1)
        self.note(weights, "b k -> b 1 1 k")
        return torch.sum(x * weights.unsqueeze(-1), dim=1)


@pattern("cross", inputs=one_long_text)
class LinearToOne(Bare):
    """Kaggle's attention head: Sequential of Linear, Tanh, Linear to one, Softmax."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.attention = nn.Sequential(
            nn.Linear(sizes.width, 8), nn.Tanh(), sharp_linear(8, 1), nn.Softmax(dim=1)
        )

    def forward(self, x):
        weights = self.attention(x)
        self.note(weights, "b k 1 -> b 1 1 k")
        return torch.sum(weights * x, dim=1)


@pattern("cross", inputs=one_long_text)
class LinearToOneEinsum(Bare):
    """Sequence pooling of the compact transformer: matmul of transposed weights."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.attention_pool = sharp_linear(sizes.width, 1)

    def forward(self, x):
        weights = F.softmax(self.attention_pool(x), dim=1)
        self.note(weights, "b k 1 -> b 1 1 k")
        return torch.matmul(weights.transpose(-1, -2), x).squeeze(-2)


@pattern("cross", inputs=one_long_text)
class WeightsByBmm(Bare):
    """Weights (batch, token), unsqueezed for bmm."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.score = sharp_linear(sizes.width, 1)

    def forward(self, x):
        weights = torch.softmax(self.score(x).squeeze(-1), dim=-1)
        self.note(weights, "b k -> b 1 1 k")
        return torch.bmm(weights.unsqueeze(1), x).squeeze(1)


@pattern("cross", inputs=one_long_text)
class WeightsByEinsum(Bare):
    """Weights (batch, token) in an einsum with the text."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.score = sharp_linear(sizes.width, 1)

    def forward(self, x):
        weights = self.score(x)[..., 0].softmax(-1)
        self.note(weights, "b k -> b 1 1 k")
        return torch.einsum("bn,bnd->bd", weights, x)


@pattern("cross", inputs=one_long_text)
class MaskedPooling(Bare):
    """Padding is masked before the softmax, weights are expanded to the width."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.score = sharp_linear(sizes.width, 1)

    def forward(self, x):
        mask = torch.arange(x.shape[1]) < torch.tensor([[7], [4]])
        scores = self.score(x).squeeze(-1).masked_fill(~mask, float("-inf"))
        weights = scores.softmax(-1)
        self.note(weights, "b k -> b 1 1 k")
        return (weights.unsqueeze(-1).expand_as(x) * x).sum(1)


@pattern("cross", inputs=one_long_text, variants=("batch=heads", "all_equal"))
class StructuredHops(Bare):
    """Lin et al. 2017: several hops by two Linear layers; hops are heads."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.W_s1 = nn.Linear(sizes.width, 8, bias=False)
        self.W_s2 = nn.Linear(8, sizes.heads, bias=False)
        nn.init.normal_(self.W_s2.weight)

    def forward(self, H):
        scores = self.W_s2(torch.tanh(self.W_s1(H)))
        A = F.softmax(scores.permute(0, 2, 1), dim=2)
        self.note(A, "b h k -> b h 1 k")
        return torch.bmm(A, H).flatten(1)


@pattern("cross", inputs=one_long_text, probe=None)
class PmaSeeds(Attention):
    """Set Transformer's PMA: seed vectors as queries."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.S = nn.Parameter(torch.randn(1, 4, sizes.width))

    def forward(self, x):
        seeds = self.S.repeat(x.size(0), 1, 1)
        q, k, v = self.to_q(seeds), self.to_k(x), self.to_v(x)
        q, k, v = (torch.cat(t.split(self.head_width, 2), 0) for t in (q, k, v))
        a = torch.softmax(q.bmm(k.transpose(1, 2)) * self.scale, 2)
        self.note(a, "(h b) q k -> b h q k", h=self.heads)
        return self.to_out(torch.cat(a.bmm(v).split(x.size(0), 0), 2))


@pattern("cross", inputs=unbatched)
class MultipleInstance(Bare):
    """Ilse et al. 2018: gated attention over a bag of instances, without batch."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.attention_V, self.attention_U = (sharp_linear(sizes.width, 8) for _ in range(2))
        self.attention_w = nn.Linear(8, 1)

    def forward(self, bag):
        gated = torch.tanh(self.attention_V(bag)) * torch.sigmoid(self.attention_U(bag))
        A = self.attention_w(gated)
        A = F.softmax(torch.transpose(A, 1, 0), dim=1)
        self.note(A, "1 k -> 1 1 1 k")
        return torch.mm(A, bag)


@pattern("cross", inputs=one_long_text)
class ClipAttentionPool(Bare):
    """CLIP's AttentionPool2d: the mean as query, over the mean and all pixels."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.q_proj, self.k_proj = (sharp_linear(sizes.width, sizes.width) for _ in range(2))
        self.v_proj = nn.Linear(sizes.width, sizes.width)

    def forward(self, x):
        x = torch.cat([x.mean(dim=1, keepdim=True), x], dim=1)
        q, k, v = (
            t.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for t in (self.q_proj(x[:, :1]), self.k_proj(x), self.v_proj(x))
        )
        attn = torch.softmax(q @ k.mT * self.scale, dim=-1)
        self.note(attn)
        return (attn @ v).transpose(1, 2).flatten(1)


@pattern("cross", inputs=one_long_text)
class GlobalContextBlock(Bare):
    """GCNet: a 1x1 convolution scores positions, matmul of channels with weights."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.conv_mask = nn.Conv1d(sizes.width, 1, 1)
        nn.init.normal_(self.conv_mask.weight)

    def forward(self, x):
        x = x.transpose(1, 2)
        mask = self.conv_mask(x).softmax(dim=2)
        self.note(mask, "b 1 k -> b 1 1 k")
        context = torch.matmul(x, mask.transpose(1, 2))
        return x + context


@pattern(inputs=one_long_text, listed=("SpeakerStatisticsPooling",))
class SpeakerStatisticsPooling(Bare):
    """ECAPA-like: weights per channel over time; mean and deviation, element by element."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.conv = nn.Conv1d(sizes.width, sizes.width, 1)
        nn.init.normal_(self.conv.weight)

    def forward(self, x):
        x = x.transpose(1, 2)
        alpha = torch.softmax(self.conv(x), dim=2)
        mean = torch.sum(alpha * x, dim=2)
        residuals = torch.sum(alpha * x**2, dim=2) - mean**2
        return torch.cat([mean, residuals.clamp(min=1e-9).sqrt()], dim=1)
