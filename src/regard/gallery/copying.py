"""A model of two attention layers that learns to copy: texts in which a passage occurs twice."""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from regard import masks
from regard.attention import MultiHeadAttention
from regard.gallery.single_thread import single_thread

LETTERS = "abcdefghijklmnopqrstuvwxyz"
LENGTH = 32
PASSAGE_LENGTHS, MAX_GAP = (8, 13), 4  # at most 12 letters twice, and 3 before and between
SPARSITY = 0.2  # of heads; without it, all heads of the second layer share the copying


class RepeatedTexts(NamedTuple):
    """Random letters (text, position) in which a passage occurs twice."""

    letters: Tensor
    is_copy: Tensor  # letters of the second occurrence but the first, which nothing predicts


def random_texts(count: int, generator: torch.Generator) -> RepeatedTexts:
    """Return texts: random letters, a passage, random letters, the passage again, and others.

    Lengths are random, so that the passage is not found by counting positions.
    """

    def draw(low: int, high: int) -> Tensor:
        return torch.randint(low, high, (count, 1), generator=generator)

    letters = torch.randint(len(LETTERS), (count, LENGTH), generator=generator)
    length, first = draw(*PASSAGE_LENGTHS), draw(0, MAX_GAP)
    second = first + length + draw(0, MAX_GAP)
    position = torch.arange(LENGTH)[None]
    is_second = (position >= second) & (position < second + length)
    source = torch.where(is_second, position - second + first, position)
    return RepeatedTexts(letters.gather(1, source), is_second & (position > second))


class AttentionLayer(nn.Module):
    """Causal self-attention with a residual connection, and no feed-forward network."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm, self.attention = nn.LayerNorm(width), MultiHeadAttention(width, heads)

    def forward(self, states: Tensor) -> Tensor:
        """Add what the heads read."""
        context: Tensor = self.attention(self.norm(states), mask=masks.causal())
        return states + context

    def head_norms(self) -> Tensor:
        """Return the norm of each head's part of the output projection."""
        out = self.attention.out.weight.unflatten(1, (self.attention.heads, -1))
        norms: Tensor = torch.linalg.vector_norm(out, dim=(0, 2))
        return norms


class Copier(nn.Module):
    """Embeddings, two attention layers, and logits of the next letter."""

    def __init__(self, width: int = 64, heads: int = 4) -> None:
        super().__init__()
        self.letters = nn.Embedding(len(LETTERS), width)
        self.positions = nn.Embedding(LENGTH, width)
        for embedding in (self.letters, self.positions):
            nn.init.normal_(embedding.weight, std=0.5)
        self.layers = nn.Sequential(*(AttentionLayer(width, heads) for _ in range(2)))
        self.norm, self.output = nn.LayerNorm(width), nn.Linear(width, len(LETTERS), bias=False)

    def forward(self, letters: Tensor) -> Tensor:
        """Return the logits of the letter that follows each."""
        states = self.letters(letters) + self.positions.weight[: letters.shape[1]]
        logits: Tensor = self.output(self.norm(self.layers(states)))
        return logits

    def head_norms(self) -> Tensor:
        """Return the norms of all heads' parts of the output projections."""
        layers = (layer for layer in self.layers if isinstance(layer, AttentionLayer))
        return torch.cat([layer.head_norms() for layer in layers])

    @single_thread()
    @torch.inference_mode()
    def accuracy(self, texts: RepeatedTexts) -> float:
        """Return the share of repeated letters that are predicted."""
        predicted = self(texts.letters)[:, :-1].argmax(-1)
        is_right = predicted == texts.letters[:, 1:]
        return float(is_right[texts.is_copy[:, 1:]].float().mean())


@single_thread()
def train_copier(steps: int = 800, learning_rate: float = 5e-3, seed: int = 0) -> Copier:
    """Train to predict the repeated letters; takes seconds.

    A penalty on the square root of the heads' norms leaves only the heads that are needed (as in
    Voita et al. 2019, "Specialized Heads Do the Heavy Lifting", who relax an L0 penalty).
    """
    generator = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Copier()
    optimizer = torch.optim.Adam(model.parameters(), learning_rate, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, learning_rate, steps)
    for _ in range(steps):
        letters, is_copy = random_texts(64, generator)
        logits, copied = model(letters[:, :-1]), is_copy[:, 1:]
        loss = cross_entropy(logits[copied], letters[:, 1:][copied])
        penalty = (model.head_norms() + 1e-3).sqrt().sum()
        optimizer.zero_grad()
        (loss + SPARSITY * penalty).backward()
        optimizer.step()
        schedule.step()
    return model.eval()
