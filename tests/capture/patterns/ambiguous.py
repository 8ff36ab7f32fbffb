"""Where features, queries and heads are easily confused: named, put right, or listed."""

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


def words_of_sentences(sizes: Sizes) -> tuple[Tensor, ...]:
    return (torch.randn(sizes.batch, sizes.keys, sizes.queries, sizes.width),)


@pattern("self", "cross", inputs=words_of_sentences, variants=True)
class HierarchicalAttention(Bare):
    """Words of each sentence, then sentences: axes of one input, whose last one is projected."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.words, self.sentences = (
            nn.Sequential(nn.Linear(sizes.width, 8), nn.Tanh(), sharp_linear(8, 1))
            for _ in range(2)
        )

    def forward(self, x):
        weights = self.words(x).softmax(2)
        self.note(weights, "b s k 1 -> b s 1 1 k")
        sentences = (weights * x).sum(2)
        weights = self.sentences(sentences).softmax(1)
        self.note(weights, "b k 1 -> b 1 1 k")
        return (weights * sentences).sum(1)


@pattern("cross", inputs=one_long_text, normaliser="exp / sum", sums_to_one=True, variants=True)
class MaskedExponentialsOfScores(Bare):
    """Kaggle's attention layer: exponentials of learned scores, times a mask, over their sum."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.score = sharp_linear(sizes.width, 1)

    def forward(self, x):
        weights = torch.exp(torch.tanh(self.score(x)).squeeze(-1))
        weights = weights * (torch.arange(x.shape[1]) > 0)
        weights = weights / (weights.sum(1, keepdim=True) + 1e-10)
        self.note(weights, "b k -> b 1 1 k")
        return (x * weights.unsqueeze(-1)).sum(1)


def with_coordinates(sizes: Sizes) -> tuple[Tensor, ...]:
    shape = sizes.batch, sizes.queries
    return torch.randn(*shape, sizes.width), torch.randn(*shape, 3)


@pattern("self", inputs=with_coordinates, probe=None, variants=True)
class RelativeValues(Attention):
    """Weights of all pairs times a vector for each pair: queries were compared with keys."""

    def forward(self, x, coordinates):
        relative = coordinates[:, :, None] - coordinates[:, None]
        weights = (self.to_q(x) @ self.to_k(x).mT * 0.3).softmax(-1)
        self.note(weights, "b q k -> b 1 q k")
        return (weights.unsqueeze(-1) * relative).sum(2)


@pattern("self", normaliser="erf", applied=True, sums_to_one=False, variants=True)
class LaplaceAttention(Attention):
    """Mega's Laplace function, by erf."""

    def forward(self, x):
        q, k, v = (
            layer(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for layer in (self.to_q, self.to_k, self.to_v)
        )
        attn = 0.5 * (1 + torch.erf((q @ k.mT * self.scale - 0.7) / 0.4))
        self.note(attn)
        return self.to_out((attn @ v).transpose(1, 2).flatten(2))


@pattern("self", not_attention=("LabelPropagation",), probe=None, variants=True)
class LabelPropagation(Attention):
    """Values are probabilities of classes: no weights over positions."""

    def forward(self, x):
        weights = (self.to_q(x) @ self.to_k(x).mT * 0.3).softmax(-1)
        self.note(weights, "b q k -> b 1 q k")
        return weights @ self.to_v(x).softmax(-1)


def eight_tokens(sizes: Sizes) -> tuple[Tensor, ...]:
    return (torch.randn(sizes.batch, 8, sizes.width),)


@pattern("cross", inputs=eight_tokens, probe=None, may_be_listed=True)
class IterativeInverse(Attention):
    """Nyströmformer: landmarks attend to the text; an inverse of weights is no values."""

    def forward(self, x):
        q, k, v = (
            layer(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for layer in (self.to_q, self.to_k, self.to_v)
        )
        q_landmarks, k_landmarks = (t.unflatten(2, (2, 4)).mean(3) for t in (q, k))
        to_landmarks = (q @ k_landmarks.mT * self.scale).softmax(-1)
        between = (q_landmarks @ k_landmarks.mT * self.scale).softmax(-1)
        of_landmarks = (q_landmarks @ k.mT * self.scale).softmax(-1)
        self.note(of_landmarks)
        inverse, one = between.mT / between.sum(-2).amax(), torch.eye(2)
        for _ in range(3):
            product = between @ inverse
            inverse = 0.25 * inverse @ (13 * one - product @ (15 * one - product))
        out = (to_landmarks @ inverse) @ (of_landmarks @ v)
        return self.to_out(out.transpose(1, 2).flatten(2))


@pattern(values_not_found=("RepeatedForFeatures",), probe=None, variants=True)
class RepeatedForFeatures(Attention):
    """Fastformer: weights are expanded to the width of an einsum, as if features had their own."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.score = sharp_linear(sizes.width, 1)

    def forward(self, x):
        q = self.to_q(x)
        weights = self.score(q).softmax(1)
        return torch.einsum("bnd,bnd->bd", weights.expand(-1, -1, q.shape[-1]), q)


@pattern(values_not_found=("AttentionFreeTransformer",), probe=None, variants=True)
class AttentionFreeTransformer(Attention):
    """AFT: exponentials of positions and of keys, with weights of its own for each channel."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.positions = nn.Parameter(torch.randn(sizes.queries, sizes.queries))

    def forward(self, x):
        positions, keys = self.positions.exp(), self.to_k(x).exp()
        context = (positions @ (keys * self.to_v(x))) / (positions @ keys)
        return self.to_out(torch.sigmoid(self.to_q(x)) * context)


@pattern("self", normaliser="abs / sum", sums_to_one=True, variants=True)
class NormalisedAbsolutes(Attention):
    """Absolute values of scores, normalised by torch.nn.functional.normalize."""

    def forward(self, x):
        q, k, v = (
            layer(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for layer in (self.to_q, self.to_k, self.to_v)
        )
        attn = F.normalize((q @ k.mT).abs(), p=1, dim=-1)
        self.note(attn)
        return self.to_out((attn @ v).transpose(1, 2).flatten(2))


@pattern(not_attention=("MarkovModel",), variants={"states=tokens": Sizes(queries=6)})
class MarkovModel(Bare):
    """The forward algorithm: transitions are a softmax of parameters, states are no positions."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.transitions, self.emissions = (
            nn.Parameter(torch.randn(n, 6)) for n in (6, sizes.width)
        )

    def forward(self, x):
        transitions = self.transitions.softmax(-1)
        states = torch.ones(len(x), 6) / 6
        for row in x.unbind(1):
            states = (states @ transitions) * (row @ self.emissions).softmax(-1)
            states = states / states.sum(-1, keepdim=True)
        return states


@pattern(values_not_found=("VectorAttention",), probe=None, variants=True)
class VectorAttention(Attention):
    """Point Transformer: each feature has weights of its own, in an einsum."""

    def forward(self, x):
        scores = self.to_q(x)[:, :, None] - self.to_k(x)[:, None]
        return torch.einsum("bijd,bjd->bid", scores.softmax(2), self.to_v(x))
