"""What happens to weights between the softmax and the values."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from capture.patterns.base import Attention, Bare, Sizes, pattern, sharp_linear


class Heads(Attention):
    """Base: heads are split, `change` is what differs."""

    def forward(self, x):
        q, k, v = (
            layer(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for layer in (self.to_q, self.to_k, self.to_v)
        )
        attn = self.change((q @ k.transpose(-2, -1) * self.scale).softmax(dim=-1))
        self.note_changed(attn)
        return self.to_out((attn @ v).transpose(1, 2).flatten(2))

    def change(self, attn: Tensor) -> Tensor:
        raise NotImplementedError

    def note_changed(self, attn: Tensor) -> None:
        self.note(attn)


class Dropped(Heads):
    """Base of dropout: the truth is the weights before it."""

    def note_changed(self, attn):
        pass


@pattern("self", train=True, probe=None)
class DropoutModule(Dropped):
    """nn.Dropout in training mode: weights are those before it."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.attn_drop = nn.Dropout(0.4)

    def change(self, attn):
        self.note(attn)
        return self.attn_drop(attn)


@pattern("self", train=True, probe=None)
class DropoutFunction(Dropped):
    """F.dropout with training=True, in place."""

    def change(self, attn):
        self.note(attn)
        return F.dropout(attn, p=0.4, training=self.training, inplace=True)


@pattern("self", train=True, probe=None)
class DropoutInternal(Dropped):
    """torch.dropout, the function beneath F.dropout."""

    def change(self, attn):
        self.note(attn)
        return torch.dropout(attn, 0.4, True)


@pattern("self", probe=None)
class DropoutInEval(Heads):
    """nn.Dropout in eval mode: nothing happens."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.attn_drop = nn.Dropout(0.4)

    def change(self, attn):
        return self.attn_drop(attn)


@pattern("self", applied=True, variants=("batch=heads", "heads=queries", "all_equal"))
class TalkingHeadsLinear(Heads):
    """CaiT: Linear over the heads, by permute, after the softmax."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.proj_w = nn.Linear(sizes.heads, sizes.heads)

    def change(self, attn):
        return self.proj_w(attn.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


@pattern("self", applied=True, variants=("batch=heads", "all_equal"))
class TalkingHeadsConv(Heads):
    """x-transformers: a 1x1 convolution over the heads."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.post_talking = nn.Conv2d(sizes.heads, sizes.heads, 1, bias=False)

    def change(self, attn):
        return self.post_talking(attn)


@pattern("self", applied=True, variants=("batch=heads", "heads=queries", "all_equal"))
class TalkingHeadsEinsum(Heads):
    """lucidrains' CaiT: einsum over a square parameter of heads."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.mix = nn.Parameter(torch.randn(sizes.heads, sizes.heads))

    def change(self, attn):
        return torch.einsum("b h i j, h g -> b g i j", attn, self.mix)


@pattern("self")
class TalkingHeadsBefore(Attention):
    """Talking heads before the softmax only: the weights are a plain softmax."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.proj_l = nn.Linear(sizes.heads, sizes.heads)

    def forward(self, x):
        q, k, v = (
            layer(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for layer in (self.to_q, self.to_k, self.to_v)
        )
        scores = self.proj_l((q @ k.mT * self.scale).permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        attn = scores.softmax(-1)
        self.note(attn)
        return self.to_out((attn @ v).transpose(1, 2).flatten(2))


@pattern("self", applied=True)
class ReAttention(Heads):
    """DeepViT: heads are mixed by an einsum, and layer-normed over heads."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.reattn_weights = nn.Parameter(torch.randn(sizes.heads, sizes.heads))
        self.norm = nn.LayerNorm(sizes.heads)

    def change(self, attn):
        attn = torch.einsum("b h i j, h g -> b g i j", attn, self.reattn_weights)
        return self.norm(attn.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


@pattern("self", applied=True)
class ReAttentionBatchNorm(Heads):
    """DeepViT as released: convolution over heads, BatchNorm2d, and a scale."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.reatten_matrix = nn.Conv2d(sizes.heads, sizes.heads, 1)
        self.var_norm = nn.BatchNorm2d(sizes.heads)

    def change(self, attn):
        return self.var_norm(self.reatten_matrix(attn)) * 0.5


class Pairs(Bare):
    """Base of differential attention: twice the heads for queries and keys."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.q_proj, self.k_proj = (sharp_linear(sizes.width, 2 * sizes.width) for _ in range(2))
        self.to_v, self.to_out = (nn.Linear(sizes.width, sizes.width) for _ in range(2))
        self.lambda_ = nn.Parameter(torch.tensor(0.4))

    def split(self, x):
        q, k = (
            layer(x).unflatten(-1, (2 * self.heads, -1)) for layer in (self.q_proj, self.k_proj)
        )
        v = self.to_v(x).unflatten(-1, (self.heads, -1))
        return (t.transpose(1, 2) for t in (q, k, v))


@pattern("self", applied=True)
class DifferentialView(Pairs):
    """Differential Transformer: one softmax of twice the heads, viewed as pairs, subtracted."""

    def forward(self, x):
        b, n, _ = x.shape
        q, k, v = self.split(x)
        attn = F.softmax(torch.matmul(q * self.scale, k.transpose(-1, -2)), dim=-1)
        attn = attn.view(b, self.heads, 2, n, n)
        attn = attn[:, :, 0] - self.lambda_ * attn[:, :, 1]
        self.note(attn)
        return self.to_out(torch.matmul(attn, v).transpose(1, 2).reshape(b, n, -1))


@pattern("self", applied=True)
class DifferentialTwoSoftmaxes(Pairs):
    """Differential Transformer in its paper's pseudo-code: two softmaxes, one record."""

    def forward(self, x):
        q, k, v = self.split(x)
        q1, q2 = q.chunk(2, dim=1)
        k1, k2 = k.chunk(2, dim=1)
        a1 = (q1 @ k1.transpose(-1, -2) * self.scale).softmax(-1)
        a2 = (q2 @ k2.transpose(-1, -2) * self.scale).softmax(-1)
        attn = a1 - self.lambda_ * a2
        self.note(attn)
        return self.to_out((attn @ v).transpose(1, 2).flatten(2))


@pattern("self", applied=True, sums_to_one=True)
class ConvitGate(Attention):
    """ConViT: content and position attention, gated per head, renormalised."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.gating_param = nn.Parameter(torch.randn(sizes.heads))
        self.pos_proj = nn.Linear(2, sizes.heads)

    def forward(self, x):
        b, n, _ = x.shape
        q, k, v = (
            layer(x).reshape(b, n, self.heads, -1).permute(0, 2, 1, 3)
            for layer in (self.to_q, self.to_k, self.to_v)
        )
        distance = (torch.arange(n)[None, :] - torch.arange(n)[:, None]).float()
        pos_score = torch.stack([distance, distance.square()], dim=-1).expand(b, -1, -1, -1)
        pos_score = self.pos_proj(pos_score).permute(0, 3, 1, 2).softmax(dim=-1)
        patch_score = (q @ k.transpose(-2, -1)) * self.scale
        patch_score = patch_score.softmax(dim=-1)
        gating = self.gating_param.view(1, -1, 1, 1)
        attn = (1.0 - torch.sigmoid(gating)) * patch_score + torch.sigmoid(gating) * pos_score
        attn = attn / attn.sum(dim=-1).unsqueeze(-1)
        self.note(attn)
        return self.to_out((attn @ v).transpose(1, 2).reshape(b, n, -1))


@pattern("self", applied=True, sums_to_one=True)
class PriorRenormalised(Heads):
    """Location-aware speech models: a Gaussian prior over distances, then renormalised."""

    def change(self, attn):
        n = attn.shape[-1]
        distance = (torch.arange(n)[None, :] - torch.arange(n)[:, None]).float()
        attn = attn * torch.exp(-distance.square() / 4)
        return attn / attn.sum(dim=-1, keepdim=True)


@pattern("self", applied=True, sums_to_one=True)
class Smoothed(Heads):
    """Label smoothing of attention: plus eps, renormalised by F.normalize(p=1)."""

    def change(self, attn):
        return F.normalize(attn + 0.05, p=1, dim=-1)


@pattern("cross", "cross", applied=True, sums_to_one=True)
class SlotAttention(Bare):
    """Locatello et al.: softmax over the slots, then normalised over the inputs; iterated."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        width = sizes.width
        self.q_proj, self.k_proj = sharp_linear(width, width), sharp_linear(width, width)
        self.v_proj = nn.Linear(width, width)
        self.gru = nn.GRUCell(width, width)

    def forward(self, slots, inputs):
        k, v = self.k_proj(inputs), self.v_proj(inputs)
        for _ in range(2):
            q = self.q_proj(slots)
            dots = torch.einsum("bid,bjd->bij", q, k) * self.scale
            attn = dots.softmax(dim=1) + 1e-8
            attn = attn / attn.sum(dim=-1, keepdim=True)
            self.note(attn, "b q k -> b 1 q k")
            updates = torch.einsum("bjd,bij->bid", v, attn)
            slots = self.gru(updates.flatten(0, 1), slots.flatten(0, 1)).view_as(slots)
        return slots


class Residual(Heads):
    """A layer whose weights are averaged with those of the layer before."""

    def forward(self, x, prev=None):
        q, k, v = (
            layer(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for layer in (self.to_q, self.to_k, self.to_v)
        )
        attn = (q @ k.transpose(-2, -1) * self.scale).softmax(dim=-1)
        if prev is not None:
            attn = 0.5 * attn + 0.5 * prev
        self.note(attn)
        return x + self.to_out((attn @ v).transpose(1, 2).flatten(2)), attn


@pattern("self", "self", names=("layers.0", "layers.1"), applied=None, sums_to_one=True)
class ResidualAttention(nn.Module):
    """EA-Transformer: weights averaged with those of the previous layer."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Residual(sizes), Residual(sizes)])

    def forward(self, x):
        prev = None
        for layer in self.layers:
            x, prev = layer(x, prev)
        return x


class RealFormerLayer(Attention):
    """A layer that adds the scores of the layer before."""

    def forward(self, x, prev=None):
        q, k, v = (
            layer(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for layer in (self.to_q, self.to_k, self.to_v)
        )
        scores = q @ k.transpose(-2, -1) * self.scale
        scores = scores if prev is None else scores + prev
        attn = scores.softmax(-1)
        self.note(attn)
        return x + self.to_out((attn @ v).transpose(1, 2).flatten(2)), scores


@pattern("self", "self", names=("layers.0", "layers.1"))
class RealFormer(nn.Module):
    """RealFormer: residual scores, before the softmax."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.layers = nn.ModuleList([RealFormerLayer(sizes), RealFormerLayer(sizes)])

    def forward(self, x):
        prev = None
        for layer in self.layers:
            x, prev = layer(x, prev)
        return x


@pattern("causal", normaliser="sigmoid", applied=None)
class StickBreaking(Attention):
    """Stick-breaking attention: sigmoid times the cumulative product of what is left."""

    def forward(self, x):
        q, k, v = (
            layer(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for layer in (self.to_q, self.to_k, self.to_v)
        )
        n = x.shape[1]
        beta = torch.sigmoid(q @ k.mT * self.scale) * torch.ones(n, n).tril()
        left = torch.cumprod((1 - beta).flip(-1), dim=-1).flip(-1)
        left = torch.cat([left[..., 1:], torch.ones_like(left[..., :1])], dim=-1)
        attn = beta * left
        self.note(attn)
        return self.to_out((attn @ v).transpose(1, 2).flatten(2))


@pattern("self", "self", names=("layers.0", "layers.1"), applied=None, probe=None)
class CumulativeProduct(nn.Module):
    """Attention rollout inside the model: weights times those of the layer before."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.layers = nn.ModuleList([RolledOut(sizes), RolledOut(sizes)])

    def forward(self, x):
        prev = None
        for layer in self.layers:
            x, prev = layer(x, prev)
        return x


class RolledOut(Attention):
    """A layer whose weights are multiplied with those of the layer before, elementwise."""

    def forward(self, x, prev=None):
        q, k, v = (
            layer(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for layer in (self.to_q, self.to_k, self.to_v)
        )
        attn = (q @ k.transpose(-2, -1) * self.scale).softmax(dim=-1)
        if prev is not None:
            attn = attn * prev
            attn = attn / attn.sum(-1, keepdim=True)
        self.note(attn)
        return x + self.to_out((attn @ v).transpose(1, 2).flatten(2)), attn


@pattern("causal", applied=None)
class MaskedAfterwards(Heads):
    """Causal mask multiplied after the softmax, without renormalising."""

    def change(self, attn):
        return attn * torch.ones(attn.shape[-2:]).tril()


@pattern("self", applied=None)
class NanToNum(Heads):
    """Guard against fully masked rows: nan_to_num after the softmax."""

    def change(self, attn):
        return torch.nan_to_num(attn, nan=0.0)


@pattern("self", applied=None)
class PaddedQueriesZeroed(Heads):
    """A mask of padded queries, filled with zeros after the softmax."""

    def change(self, attn):
        padded = torch.arange(attn.shape[-2]) >= 4
        return attn.masked_fill(padded[:, None], 0.0)


@pattern("self", applied=True)
class HeadGate(Heads):
    """Michel et al. 2019: a learned or masking number for each head."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.gate = nn.Parameter(torch.rand(sizes.heads))

    def change(self, attn):
        return attn * self.gate.view(1, -1, 1, 1)


@pattern("self", applied=True)
class IdentityAdded(Heads):
    """Value residual by the weights: plus the identity, halved."""

    def change(self, attn):
        return (attn + torch.eye(attn.shape[-1])) / 2


@pattern("self", applied=True)
class ConvolvedWeights(Heads):
    """Evolving attention: a 3x3 convolution over the picture of the weights."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.conv = nn.Conv2d(sizes.heads, sizes.heads, 3, padding=1)

    def change(self, attn):
        return 0.5 * attn + 0.5 * self.conv(attn)


@pattern("self", applied=True)
class MeanCentred(Heads):
    """Centred weights: minus one over the number of keys."""

    def change(self, attn):
        return attn - 1 / attn.shape[-1]
