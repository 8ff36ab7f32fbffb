"""A decoder that spells the name of a digit while it looks at the patches of its image."""

from typing import NamedTuple

import torch
from einops import rearrange
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from regard.attention import MultiHeadAttention
from regard.gallery.one_thread import one_thread
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
LETTERS = (" ", *sorted(set("".join(NAMES))))  # a blank comes before the first and after the last
LONGEST = 1 + max(map(len, NAMES))
HELD_OUT = 360  # images


class Digits(NamedTuple):
    """Images (image, 8, 8) of numbers from 0 to 1, and the digits that they show."""

    images: Tensor
    shown: Tensor


def digits() -> tuple[Digits, Digits]:
    """Give digits that people wrote: those to learn from, and those held out."""
    images, shown = map(torch.tensor, load_digits(return_X_y=True))
    order = torch.randperm(len(shown), generator=torch.Generator().manual_seed(0))
    images = images.view(-1, 8, 8).float() / 16
    learned, held = order[HELD_OUT:], order[:HELD_OUT]
    return Digits(images[learned], shown[learned]), Digits(images[held], shown[held])


class Speller(nn.Module):
    """Patches of 2 × 2 pixels, and one layer of a decoder whose letters look at them."""

    def __init__(self, width: int = 64, heads: int = 4) -> None:
        super().__init__()
        self.patch, self.places = nn.Linear(4, width), Learned(16, width)
        self.around, self.change = Residual(width), FeedForward(width, 2 * width)
        self.letters = Embedding(len(LETTERS), width, Sinusoidal(width))
        back, cross = MultiHeadAttention(width, heads), MultiHeadAttention(width, heads)
        self.decoder = Decoder(
            [TransformerLayer(back, FeedForward(width, 2 * width), cross, dropout=0.1)]
        )
        self.last = nn.Linear(width, len(LETTERS))

    def forward(self, images: Tensor, letters: Tensor) -> Tensor:
        """Return the logits of the letter that follows each."""
        logits: Tensor = self.last(self.decoder(self.letters(letters), self._encode(images)))
        return logits

    def forward_with_weights(self, images: Tensor, letters: Tensor) -> tuple[Tensor, Tensor]:
        """Return the logits, and the cross-attention weights (image, head, letter, patch)."""
        source = self._encode(images)
        states, weights = self.decoder(self.letters(letters), source, return_weights=True)
        return self.last(states), weights.cross[0]

    def _encode(self, images: Tensor) -> EncodedSource:
        patches = rearrange(images, "b (r y) (c x) -> b (r c) (y x)", y=2, x=2)
        rows = self.around(self.places(self.patch(patches)), self.change)
        mask = torch.ones(rows.shape[:2], dtype=torch.bool)
        return self.decoder.project_source(rows, mask)

    @one_thread()
    @torch.inference_mode()
    def spell(self, images: Tensor, seen: int = LONGEST) -> tuple[list[str], Tensor]:
        """Give the names, and where each letter of them looked: (image, head, letter, patch).

        Only the first so many letters see the image; the others, an empty one.
        """
        written = torch.zeros(len(images), 1, dtype=torch.long)
        for step in range(LONGEST):
            image = images if step < seen else torch.zeros_like(images)
            logits, weights = self.forward_with_weights(image, written)
            likeliest = logits[:, -1:].argmax(dim=-1)
            written = torch.cat([written, likeliest], dim=1)
        names = ["".join(LETTERS[letter] for letter in row) for row in written[:, 1:].tolist()]
        return [name.partition(" ")[0] for name in names], weights


@one_thread()
def learn(examples: Digits, steps: int = 800, rate: float = 5e-3) -> Speller:
    """Train a speller to go on with the name of each digit, letter by letter."""
    spelled = [[LETTERS.index(letter) for letter in name.ljust(LONGEST)] for name in NAMES]
    names = nn.functional.pad(torch.tensor(spelled), (1, 0))  # a blank, and the name
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = Speller()
        optimizer = torch.optim.Adam(model.parameters(), rate, betas=(0.9, 0.98))
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, steps)
        for _ in range(steps):
            some = torch.randint(len(examples.shown), (64,))
            wanted = names[examples.shown[some]]
            scores = model(examples.images[some], wanted[:, :-1])
            loss = cross_entropy(scores.flatten(0, 1), wanted[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    return model.eval()


def right(names: list[str], shown: Tensor) -> float:
    """Give the share of names that are those of the digits shown."""
    wanted: list[str] = [NAMES[digit] for digit in shown.tolist()]
    return sum(a == b for a, b in zip(names, wanted, strict=True)) / len(wanted)
