"""What turns scores into weights: spellings of softmax, and what is used instead of it."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from capture.patterns.base import Attention, Sizes, one_text, pattern


class Causeless(Attention):
    """Base: heads are split, `normalise` is what differs."""

    def forward(self, x):
        q, k, v = (
            layer(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for layer in (self.to_q, self.to_k, self.to_v)
        )
        attn = self.normalise(q @ k.transpose(-2, -1) * self.scale)
        self.note(attn)
        return self.to_out((attn @ v).transpose(1, 2).flatten(2))

    def normalise(self, scores: Tensor) -> Tensor:
        raise NotImplementedError


@pattern("self")
class SoftmaxFunction(Causeless):
    """F.softmax."""

    def normalise(self, scores):
        return F.softmax(scores, dim=-1)


@pattern("self")
class SoftmaxMethod(Causeless):
    """The method, with a positional axis counted from the front."""

    def normalise(self, scores):
        return scores.softmax(3)


@pattern("self", names=None)
class SoftmaxModule(Causeless):
    """nn.Softmax as a submodule: the attention is that of the module which multiplies."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.attend = nn.Softmax(dim=-1)

    def normalise(self, scores):
        return self.attend(scores)


@pattern("self")
class SoftmaxSpecial(Causeless):
    """torch.special.softmax by keywords."""

    def normalise(self, scores):
        return torch.special.softmax(input=scores, dim=-1)


@pattern("self")
class SoftmaxByName(Causeless):
    """torch.softmax with the axis "dim" by name and a dtype."""

    def normalise(self, scores):
        return torch.softmax(scores, dim=-1, dtype=torch.float64).to(scores.dtype)


@pattern("self")
class SoftmaxFloat32(Causeless):
    """Softmax in float32, then cast back to the dtype of the queries."""

    def normalise(self, scores):
        return F.softmax(scores.float(), dim=-1).type_as(scores)


@pattern("self", normaliser=("softmax", "log_softmax / exp", "exp"), applied=None)
class LogSoftmaxExp(Causeless):
    """log_softmax, then exp."""

    def normalise(self, scores):
        return F.log_softmax(scores, dim=-1).exp()


@pattern("self", normaliser="exp / sum")
class ExpOverSum(Causeless):
    """By hand: exp divided by its sum."""

    def normalise(self, scores):
        numerator = torch.exp(scores)
        return numerator / numerator.sum(dim=-1, keepdim=True)


@pattern("self", normaliser="exp / sum")
class ExpOverSumStable(Causeless):
    """By hand with the maximum subtracted, as in interviews."""

    def normalise(self, scores):
        scores = scores - scores.max(dim=-1, keepdim=True).values
        exp = torch.exp(scores)
        return exp / torch.sum(exp, dim=-1, keepdim=True)


@pattern("self", normaliser="exp / sum", applied=None)
class LogSumExp(Causeless):
    """exp(scores - logsumexp(scores))."""

    def normalise(self, scores):
        return torch.exp(scores - torch.logsumexp(scores, dim=-1, keepdim=True))


@pattern("causal", normaliser="exp / sum", sums_to_one=True, applied=None)
class MaskedExp(Causeless):
    """AllenNLP-like masked softmax: exp times mask over its sum plus a small number."""

    def normalise(self, scores):
        mask = torch.ones(scores.shape[-2:]).tril()
        exp = torch.exp(scores - scores.amax(-1, keepdim=True)) * mask
        return exp / (exp.sum(-1, keepdim=True) + 1e-13)


@pattern("self", normaliser="sigmoid")
class Sigmoid(Causeless):
    """Apple's sigmoid attention, with a bias of minus log n."""

    def normalise(self, scores):
        return torch.sigmoid(scores - torch.tensor(float(scores.shape[-1])).log())


@pattern("self", normaliser="tanh", applied=None)
class Tanh(Causeless):
    """Weights of both signs: tanh over the root of the number of keys."""

    def normalise(self, scores):
        return torch.tanh(scores) / scores.shape[-1] ** 0.5


@pattern("self", normaliser="relu", applied=None)
class Relu(Causeless):
    """ViT with relu attention: relu divided by the number of keys."""

    def normalise(self, scores):
        return F.relu(scores) / scores.shape[-1]


@pattern("self", normaliser=("relu", "relu / sum"), applied=None)
class ReluOverSum(Causeless):
    """relu divided by its sum."""

    def normalise(self, scores):
        positive = F.relu(scores)
        return positive / (positive.sum(-1, keepdim=True) + 1e-6)


@pattern("self", normaliser=("relu", "relu²", "relu squared", "square"), applied=None)
class SquaredRelu(Causeless):
    """FLASH and Primer in lucidrains' style: squared relu over the number of keys."""

    def normalise(self, scores):
        return F.relu(scores / scores.shape[-1]) ** 2


@pattern("causal", normaliser=("relu", "relu²", "relu squared", "square"), applied=None)
class SquaredReluCausal(Causeless):
    """GAU: squared relu, masked with zeros afterwards."""

    def normalise(self, scores):
        attn = F.relu(scores / scores.shape[-1]).square()
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        return attn.masked_fill(mask, 0.0)


@pattern("self", normaliser=("sparsemax", "clamp"), applied=None)
class Sparsemax(Causeless):
    """Martins & Astudillo 2016 by sort and cumsum."""

    def normalise(self, scores):
        ordered, _ = torch.sort(scores, dim=-1, descending=True)
        sums = ordered.cumsum(-1)
        rank = torch.arange(1, scores.shape[-1] + 1, dtype=scores.dtype)
        size = (1 + rank * ordered > sums).sum(-1, keepdim=True)
        threshold = (sums.gather(-1, size - 1) - 1) / size
        return torch.clamp(scores - threshold, min=0)


class EntmaxBisect(torch.autograd.Function):
    """1.5-entmax by bisection."""

    @staticmethod
    def forward(ctx, scores):
        scores = scores / 2
        low = scores.amax(-1, keepdim=True) - 1
        width = 1.0
        for _ in range(40):
            width /= 2
            middle = low + width
            mass = (scores - middle).clamp(min=0).square().sum(-1, keepdim=True)
            low = torch.where(mass >= 1, middle, low)
        weights = (scores - low).clamp(min=0).square()
        weights = weights / weights.sum(-1, keepdim=True)
        ctx.save_for_backward(weights)
        return weights

    @staticmethod
    def backward(ctx, grad):
        (weights,) = ctx.saved_tensors
        root = weights.sqrt()
        return root * (grad - (grad * root).sum(-1, True) / root.sum(-1, True))


@pattern("self", normaliser=("EntmaxBisect", "clamp", "entmax", "EntmaxBisect.apply"), applied=None)
class Entmax(Causeless):
    """deep-spin's entmax: an autograd.Function, which hides what it computes."""

    def normalise(self, scores):
        return EntmaxBisect.apply(scores)


@pattern("self", sums_to_one=False, applied=None)
class SinkColumn(Causeless):
    """gpt-oss: one logit per head is appended, and sliced off after the softmax."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.sinks = nn.Parameter(torch.randn(sizes.heads))

    def normalise(self, scores):
        b, _, n, _ = scores.shape
        sinks = self.sinks.reshape(1, -1, 1, 1).expand(b, -1, n, -1)
        combined = torch.cat([scores, sinks], dim=-1)
        combined = combined - combined.max(dim=-1, keepdim=True).values
        probs = F.softmax(combined, dim=-1, dtype=combined.dtype)
        return probs[..., :-1]


@pattern("self", normaliser=("exp / sum", "softmax1", "exp"), applied=None)
class SoftmaxOne(Causeless):
    """Evan Miller's softmax1: exp over one plus the sum."""

    def normalise(self, scores):
        shift = scores.amax(-1, keepdim=True).clamp(min=0)
        exp = torch.exp(scores - shift)
        return exp / (torch.exp(-shift) + exp.sum(-1, keepdim=True))


@pattern("cross", normaliser="exp / sum", applied=None, inputs=one_text, probe=None)
class RestrictedSoftmax(Attention):
    """DNAConv: the sum has one more exponential, of a margin, and there is a single query."""

    def forward(self, x):
        q, k, v = (
            layer(y).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for layer, y in ((self.to_q, x[:, -1:]), (self.to_k, x), (self.to_v, x))
        )
        scores = q @ k.mT * self.scale
        largest = scores.max(dim=-1, keepdim=True)[0].clamp(min=0.0)
        exp = (scores - largest).exp()
        attn = exp / (exp.sum(dim=-1, keepdim=True) + (0.0 - largest).exp())
        self.note(attn)
        return self.to_out((attn @ v).transpose(1, 2).flatten(2))


@pattern("self", normaliser="softplus / sum", applied=None, sums_to_one=True)
class SoftplusOverSum(Causeless):
    """Softplus divided by its sum: positive weights without exponentials."""

    def normalise(self, scores):
        positive = F.softplus(scores)
        return positive / positive.sum(-1, keepdim=True)


@pattern("self")
class LearnedTemperature(Causeless):
    """ViT for small datasets: a learned temperature, and the diagonal masked."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.temperature = nn.Parameter(torch.tensor(0.3))

    def normalise(self, scores):
        scores = scores * self.temperature.exp()
        mask = torch.eye(scores.shape[-1], dtype=torch.bool)
        return scores.masked_fill(mask, -torch.finfo(scores.dtype).max).softmax(dim=-1)


@pattern("self")
class SoftcapTanh(Causeless):
    """Gemma 2: scores are capped by tanh before the softmax."""

    def normalise(self, scores):
        scores = torch.tanh(scores / 5.0) * 5.0
        return F.softmax(scores, dim=-1)


@pattern("self")
class TopKBeforeSoftmax(Causeless):
    """lucidrains' sparse top-k: all but the largest scores are masked before the softmax."""

    def normalise(self, scores):
        top, _ = scores.topk(3, dim=-1)
        smallest = top[..., -1:].expand_as(scores)
        return scores.masked_fill(scores < smallest, -torch.finfo(scores.dtype).max).softmax(-1)


@pattern("self", applied=True, sums_to_one=True)
class TopKAfterSoftmax(Causeless):
    """Top-k after the softmax: others are set to zero, the rest is renormalised."""

    def normalise(self, scores):
        attn = scores.softmax(-1)
        index = attn.topk(3, dim=-1).indices
        mask = torch.zeros_like(attn).scatter_(-1, index, 1.0)
        attn = attn * mask
        return attn / attn.sum(-1, keepdim=True)


@pattern("self", train=True, probe=None, normaliser="gumbel_softmax", sums_to_one=True)
class GumbelHard(Causeless):
    """Straight-through Gumbel: F.gumbel_softmax(hard=True), one-hot weights."""

    def normalise(self, scores):
        return F.gumbel_softmax(scores, tau=1.0, hard=True, dim=-1)


@pattern("self", applied=None, sums_to_one=True)
class StraightThroughOneHot(Causeless):
    """By hand: one_hot(argmax) - soft.detach() + soft, which is the one-hot up to rounding."""

    def normalise(self, scores):
        soft = scores.softmax(-1)
        hard = F.one_hot(soft.argmax(-1), soft.shape[-1]).to(soft.dtype)
        return hard - soft.detach() + soft


@pattern("self")
class SoftmaxOverFlatKeys(Causeless):
    """Scores are flattened to rows for the softmax, and back."""

    def normalise(self, scores):
        b, h, n, m = scores.shape
        return F.softmax(scores.view(-1, m), dim=1).view(b, h, n, m)


@pattern("causal")
class MaskFromNegativeInfinity(Causeless):
    """A tutorial's causal mask: a float matrix of minus infinity, added."""

    def normalise(self, scores):
        n = scores.shape[-1]
        return (scores + torch.full((n, n), float("-inf")).triu(diagonal=1)).softmax(-1)


@pattern("causal")
class MaskByWhere(Causeless):
    """GPT-2 in transformers: torch.where with the smallest number."""

    def normalise(self, scores):
        n = scores.shape[-1]
        allowed = torch.ones(n, n, dtype=torch.bool).tril().view(1, 1, n, n)
        smallest = torch.full([], torch.finfo(scores.dtype).min, dtype=scores.dtype)
        return F.softmax(torch.where(allowed, scores, smallest), dim=-1)


@pattern("self", applied=True)
class TopKScattered(Causeless):
    """The softmax of the largest scores, scattered to their places among all keys."""

    def normalise(self, scores):
        largest, index = scores.topk(2, dim=-1)
        return torch.zeros_like(scores).scatter(-1, index, largest.softmax(-1))
