"""Other ways to cut a text into BPE pieces, by chance, so that a small corpus says more.

Merges are left out at random while a word is put together, after Provilkov et al. (2020), so
that a model learns what the parts of words mean, too. The same seed gives the same cuts.
"""

from collections.abc import Iterator
from itertools import pairwise
from random import Random

from regard.config import DataConfig
from regard.data.corpus import Pair
from regard.data.tokenizer import Tokenizer, Tokenizers

KEPT = 32  # cuts of one word, after which they come again
WORDS = 20_000  # whose cuts are kept: the first ones, among which the frequent ones are

BothSides = tuple[list[int], list[int]]
"""The numbers of the pieces of a source and of its target."""


class BPEDropout:
    """Draws cuts of texts for one tokenizer."""

    def __init__(self, tokenizer: Tokenizer, skipped: float, chance: Random) -> None:
        self._tokenizer = tokenizer
        self._ranks = {merge: rank for rank, merge in enumerate(tokenizer.merges)}
        self._skipped = skipped
        self._chance = chance
        self._known: dict[str, list[list[int]]] = {}

    def draw(self, text: str, count: int) -> Iterator[list[int]]:
        """Give the numbers of a text's pieces, cut in so many ways."""
        parts = self._tokenizer.pre_tokenize(text)
        for _ in range(count):
            yield [number for part in parts for number in self._drawn(part)]

    def _drawn(self, part: str) -> list[int]:
        """Cut a word anew, or as it was cut before if that was often."""
        known = self._known.get(part, [])
        if len(known) == KEPT:
            return known[int(self._chance.random() * KEPT)]
        cut = [n for piece in self._merged(part) for n in self._tokenizer.encode_word(piece)]
        if known or len(self._known) < WORDS:
            self._known[part] = [*known, cut]
        return cut

    def _merged(self, part: str) -> list[str]:
        """Merge letters in the order that was learned, leaving out some merges each time."""
        pieces = list(part)
        while True:
            found = [
                (self._ranks[pair], n)
                for n, pair in enumerate(pairwise(pieces))
                if pair in self._ranks and self._chance.random() >= self._skipped
            ]
            if not found:
                return pieces
            _, n = min(found)
            pieces[n : n + 2] = [pieces[n] + pieces[n + 1]]


class PairBPEDropout:
    """Draws as many cuts of a pair as the settings say."""

    def __init__(self, tokenizers: Tokenizers, settings: DataConfig, seed: int) -> None:
        chance = Random(seed)
        self._count = settings.bpe_dropout_samples
        self._longest = settings.max_length
        self._source = BPEDropout(tokenizers.source, settings.bpe_dropout, chance)
        self._target = BPEDropout(tokenizers.target, settings.bpe_dropout, chance)

    def draw(self, pair: Pair, usual: BothSides) -> Iterator[BothSides]:
        """Give cuts of both sides; those that are too long to be learned from are as usual."""
        sources = self._source.draw(pair.source, self._count)
        targets = self._target.draw(pair.target, self._count)
        for source, target in zip(sources, targets, strict=True):
            fits = max(len(source), len(target)) <= self._longest
            yield (source, target) if fits else usual
