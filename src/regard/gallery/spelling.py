"""A decoder that spells the name of a digit with cross-attention to patches of its image."""

from typing import NamedTuple

import torch
from einops import rearrange
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from regard._support.extras import needs_extra
from regard.attention import MultiHeadAttention
from regard.gallery.single_thread import single_thread
from regard.models import (
    Decoder,
    Embedding,
    EncodedSource,
    FeedForward,
    Residual,
    TransformerLayer,
)
from regard.positions import Learned, Sinusoidal

NAMES = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
LETTERS = (" ", *sorted(set("".join(NAMES))))  # a blank is both start and end token
MAX_LENGTH = 1 + max(map(len, NAMES))
TEST_IMAGES = 360


class Digits(NamedTuple):
    """Images (image, 8, 8) with values from 0 to 1, and their labels."""

    images: Tensor
    labels: Tensor


def load_split() -> tuple[Digits, Digits]:
    """Return handwritten digits: the training and the test images."""
    with needs_extra("gallery", "the images need"):
        from sklearn.datasets import load_digits  # takes seconds

    images, labels = map(torch.tensor, load_digits(return_X_y=True))
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    images = images.view(-1, 8, 8).float() / 16
    train, test = order[TEST_IMAGES:], order[:TEST_IMAGES]
    return Digits(images[train], labels[train]), Digits(images[test], labels[test])


class Speller(nn.Module):
    """An embedding of 2 × 2 patches, and a one-layer decoder with cross-attention to them."""

    def __init__(self, width: int = 64, heads: int = 4) -> None:
        super().__init__()
        self.patch, self.positions = nn.Linear(4, width), Learned(16, width)
        self.residual, self.feed_forward = Residual(width), FeedForward(width, 2 * width)
        self.letters = Embedding(len(LETTERS), width, Sinusoidal(width))
        self_attention, cross = MultiHeadAttention(width, heads), MultiHeadAttention(width, heads)
        self.decoder = Decoder(
            [TransformerLayer(self_attention, FeedForward(width, 2 * width), cross, dropout=0.1)]
        )
        self.output = nn.Linear(width, len(LETTERS))

    def forward(self, images: Tensor, letters: Tensor) -> Tensor:
        """Return the logits of the letter that follows each."""
        logits: Tensor = self.output(self.decoder(self.letters(letters), self._encode(images)))
        return logits

    def forward_with_weights(self, images: Tensor, letters: Tensor) -> tuple[Tensor, Tensor]:
        """Return the logits, and the cross-attention weights (image, head, letter, patch)."""
        source = self._encode(images)
        states, weights = self.decoder(self.letters(letters), source, return_weights=True)
        return self.output(states), weights.cross[0]

    def _encode(self, images: Tensor) -> EncodedSource:
        patches = rearrange(images, "b (r y) (c x) -> b (r c) (y x)", y=2, x=2)
        states = self.residual(self.positions(self.patch(patches)), self.feed_forward)
        mask = torch.ones(states.shape[:2], dtype=torch.bool)
        return self.decoder.project_source(states, mask)

    @single_thread()
    @torch.inference_mode()
    def spell(self, images: Tensor, visible_letters: int = MAX_LENGTH) -> tuple[list[str], Tensor]:
        """Return the names and the cross-attention weights (image, head, letter, patch).

        Args:
            visible_letters: how many letters, from the first, see the image; the others see an
                empty one.
        """
        letters = torch.zeros(len(images), 1, dtype=torch.long)
        for step in range(MAX_LENGTH):
            image = images if step < visible_letters else torch.zeros_like(images)
            logits, weights = self.forward_with_weights(image, letters)
            letters = torch.cat([letters, logits[:, -1:].argmax(dim=-1)], dim=1)
        names = ["".join(LETTERS[letter] for letter in row) for row in letters[:, 1:].tolist()]
        return [name.partition(" ")[0] for name in names], weights


@single_thread()
def train_speller(examples: Digits, steps: int = 800, learning_rate: float = 5e-3) -> Speller:
    """Train a speller with teacher forcing on the names of the digits."""
    spellings = [[LETTERS.index(letter) for letter in name.ljust(MAX_LENGTH)] for name in NAMES]
    names = nn.functional.pad(torch.tensor(spellings), (1, 0))  # start token, name, end token
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = Speller()
        optimizer = torch.optim.Adam(model.parameters(), learning_rate, betas=(0.9, 0.98))
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, learning_rate, steps)
        for _ in range(steps):
            batch = torch.randint(len(examples.labels), (64,))
            target = names[examples.labels[batch]]
            logits = model(examples.images[batch], target[:, :-1])
            loss = cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    return model.eval()


def accuracy(names: list[str], labels: Tensor) -> float:
    """Return the share of correctly spelled names."""
    references = [NAMES[label] for label in labels.tolist()]
    matches = [name == reference for name, reference in zip(names, references, strict=True)]
    return float(sum(matches) / len(matches))
