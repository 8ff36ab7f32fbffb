"""BPE-dropout: random segmentations of words into BPE pieces, as regularisation.

While the merges of BPE are applied to a word, each is skipped with some probability (Provilkov et
al. 2020, "BPE-Dropout: Simple and Effective Subword Regularization"), so that a model meets the
parts of words, too, and a small corpus goes further. `tokenizers.models.BPE(dropout=...)` does the
same but draws from a generator that cannot be seeded; here equal seeds give equal segmentations.
"""

from collections.abc import Iterator
from itertools import pairwise
from random import Random

from regard.config import DataConfig
from regard.data.corpus import Pair
from regard.data.tokenizer import Tokenizer, Tokenizers

SAMPLES_PER_WORD = 32  # segmentations cached per word; after that they are drawn from the cache
MAX_CACHED_WORDS = 20_000  # the first words of a corpus, which include the frequent ones

EncodedPair = tuple[list[int], list[int]]
"""Token ids of a source and of its target."""


class BPEDropout:
    """Samples segmentations of texts for one tokenizer.

    Args:
        tokenizer: a tokenizer of kind "bpe".
        dropout: probability that a merge is skipped.
        rng: source of randomness.
        samples_per_word: segmentations cached per word.
        max_cached_words: words whose segmentations are cached.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        dropout: float,
        rng: Random,
        *,
        samples_per_word: int = SAMPLES_PER_WORD,
        max_cached_words: int = MAX_CACHED_WORDS,
    ) -> None:
        self._tokenizer = tokenizer
        self._ranks = {merge: rank for rank, merge in enumerate(tokenizer.merges)}
        self._dropout = dropout
        self._rng = rng
        self._samples_per_word = samples_per_word
        self._max_cached_words = max_cached_words
        self._cache: dict[str, list[list[int]]] = {}

    def sample(self, text: str, count: int) -> Iterator[list[int]]:
        """Yield the token ids of `count` segmentations of a text."""
        words = self._tokenizer.pre_tokenize(text)
        for _ in range(count):
            yield [token for word in words for token in self._sample_word(word)]

    def _sample_word(self, word: str) -> list[int]:
        """Segment a word, or reuse one of its segmentations once the cache has enough of them."""
        cached = self._cache.get(word, [])
        if len(cached) == self._samples_per_word:
            return cached[int(self._rng.random() * len(cached))]
        ids = [token for piece in self._merge(word) for token in self._tokenizer.encode_word(piece)]
        if cached or len(self._cache) < self._max_cached_words:
            self._cache[word] = [*cached, ids]
        return ids

    def _merge(self, word: str) -> list[str]:
        """Apply the merges in the order they were learned, skipping some at each step."""
        pieces = list(word)
        while True:
            candidates = [
                (self._ranks[pair], position)
                for position, pair in enumerate(pairwise(pieces))
                if pair in self._ranks and self._rng.random() >= self._dropout
            ]
            if not candidates:
                return pieces
            _, position = min(candidates)
            pieces[position : position + 2] = [pieces[position] + pieces[position + 1]]


class PairBPEDropout:
    """Samples segmentations of pairs, as `data.bpe_dropout_samples` and `data.bpe_dropout` say.

    Args:
        tokenizers: BPE tokenizers of both sides.
        settings: number of samples per pair, dropout and maximal length.
        seed: seed of the segmentations.
    """

    def __init__(self, tokenizers: Tokenizers, settings: DataConfig, seed: int) -> None:
        rng = Random(seed)
        self._count = settings.bpe_dropout_samples
        self._max_length = settings.max_length
        self._source = BPEDropout(tokenizers.source, settings.bpe_dropout, rng)
        self._target = BPEDropout(tokenizers.target, settings.bpe_dropout, rng)

    def sample(self, pair: Pair, default: EncodedPair) -> Iterator[EncodedPair]:
        """Yield segmentations of a pair; the default one in place of any that is too long."""
        sources = self._source.sample(pair.source, self._count)
        targets = self._target.sample(pair.target, self._count)
        for source, target in zip(sources, targets, strict=True):
            fits = max(len(source), len(target)) <= self._max_length
            yield (source, target) if fits else default
