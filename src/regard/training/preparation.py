"""Preparation of a run's data: tokenizers, held-out pairs and encoded pairs.

The corpus is read four times before the first step, and never held in memory: to count and
fingerprint it (`scan_corpus` in `setup`), to collect the held-out pairs (`HoldoutSplit`), to train
the tokenizers (once more if they are separate) and to encode it. A given validation corpus saves
the second pass; a resumed run needs the first one only.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from random import Random
from typing import TypeVar

from regard._support.progress import track
from regard.config import DataConfig, RunConfig
from regard.data import (
    MIN_SPLIT_PAIRS,
    Corpus,
    EncodedPairs,
    Pair,
    PairBPEDropout,
    Tokenizers,
    encode_pairs,
    is_plausible,
    train_tokenizer,
)
from regard.errors import RegardError
from regard.runs import RunFolder, parameters
from regard.training.setup import check_memory

DUPLICATE_SOURCE = "source also among the held-out pairs"

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class TrainingData:
    """Settings, tokenizers and encoded pairs of a run."""

    config: RunConfig
    tokenizers: Tokenizers
    train: EncodedPairs
    valid: EncodedPairs
    run_id: str = ""

    @property
    def identity(self) -> dict[str, str | int]:
        """What the parameters trained on this data belong to."""
        return parameters.identify(self.run_id, self.tokenizers)


def prepare_data(
    folder: RunFolder,
    config: RunConfig,
    corpus: Corpus,
    valid: Corpus | None,
    num_pairs: int,
    echo: Callable[[str], None] = lambda line: None,
) -> TrainingData:
    """Train the tokenizers and encode all pairs, as far as an earlier start did not.

    What an earlier start left and is damaged is made again from the texts.

    Args:
        folder: the run folder.
        config: all settings.
        corpus: the training pairs.
        valid: the validation pairs; None holds some out.
        num_pairs: number of pairs of the corpus.
        echo: receives a line for each file that is made again.
    """
    run_id = _run_id(folder)
    preparation = _Preparation(folder, config, corpus, valid, num_pairs, run_id)
    tokenizers = _load_or_make(
        folder.tokenizer,
        lambda: Tokenizers.load(folder.tokenizer, run_id),
        preparation.make_tokenizers,
        echo,
    )
    train, valid_pairs = (
        _load_or_make(
            folder.data / name,
            partial(_load_pairs, folder, name, run_id, tokenizers),
            partial(encode, tokenizers),
            echo,
        )
        for name, encode in (
            ("train", preparation.encode_train),
            ("valid", preparation.encode_valid),
        )
    )
    return TrainingData(config, tokenizers, train, valid_pairs, run_id)


def _load_or_make(
    path: Path, load: Callable[[], Result], make: Callable[[], Result], echo: Callable[[str], None]
) -> Result:
    """Load what an earlier start made; make it if it is missing or damaged."""
    if path.exists():
        try:
            return load()
        except RegardError as problem:
            echo(f"{problem}; making it again from the texts")
    return make()


class _Preparation:
    """Makes the tokenizers and the encoded pairs of a run from its texts."""

    def __init__(
        self,
        folder: RunFolder,
        config: RunConfig,
        corpus: Corpus,
        valid: Corpus | None,
        num_pairs: int,
        run_id: str,
    ) -> None:
        self.folder, self.config, self.run_id = folder, config, run_id
        self.corpus, self.valid, self.num_pairs = corpus, valid, num_pairs

    @cached_property
    def split(self) -> "HoldoutSplit":
        return HoldoutSplit(self.corpus, self.valid, self.num_pairs, self.config)

    def make_tokenizers(self) -> Tokenizers:
        path, pairs = self.folder.tokenizer, self.split.train_pairs
        train_tokenizers(pairs, self.config.data, self.num_pairs).save(path, self.run_id)
        return Tokenizers.load(path, self.run_id)

    def encode_train(self, tokenizers: Tokenizers) -> EncodedPairs:
        data, dropped = self.config.data, dict[str, int]()
        pairs = track(self.split.train_pairs(dropped), "pairs encoded", self.num_pairs)
        bpe_dropout = None
        if data.bpe_dropout_samples:
            bpe_dropout = PairBPEDropout(tokenizers, data, self.config.train.seed)
        identity = _data_identity("train", self.run_id, tokenizers)
        path = self.folder.data / "train"
        return encode_pairs(pairs, tokenizers, data, path, bpe_dropout, dropped, identity)

    def encode_valid(self, tokenizers: Tokenizers) -> EncodedPairs:
        identity = _data_identity("valid", self.run_id, tokenizers)
        pairs, path = self.split.validation_pairs(), self.folder.data / "valid"
        return encode_pairs(pairs, tokenizers, self.config.data, path, identity=identity)


def _data_identity(part: str, run_id: str, tokenizers: Tokenizers) -> dict[str, str | int]:
    return {"part": part, **parameters.identify(run_id, tokenizers)}


def _load_pairs(folder: RunFolder, part: str, run_id: str, tokenizers: Tokenizers) -> EncodedPairs:
    return EncodedPairs.load(folder.data / part, _data_identity(part, run_id, tokenizers))


def _run_id(folder: RunFolder) -> str:
    return folder.read_id() if folder.settings.exists() else ""


def open_data(folder: RunFolder, config: RunConfig) -> TrainingData:
    """Open what `prepare_data` wrote."""
    run_id = _run_id(folder)
    tokenizers = Tokenizers.load(folder.tokenizer, run_id)
    train, valid = (_load_pairs(folder, part, run_id, tokenizers) for part in ("train", "valid"))
    return check_data(TrainingData(config, tokenizers, train, valid, run_id))


def check_data(data: TrainingData) -> TrainingData:
    """Raise an error if all training or validation pairs were dropped, or memory is too small."""
    for name, pairs in (("training", data.train), ("validation", data.valid)):
        if len(pairs) == 0:
            reasons = "; ".join(
                f"dropped {count:,} ({reason})" for reason, count in pairs.dropped.items()
            )
            raise RegardError(f"no {name} pair is left: {reasons or 'there was none'}")
        pairs.check_ids(data.tokenizers.vocab_sizes)
    check_memory(data.config, data.tokenizers.vocab_sizes)
    return data


def train_tokenizers(
    read: Callable[[], Iterator[Pair]], config: DataConfig, num_pairs: int | None = None
) -> Tokenizers:
    """Train one tokenizer for both languages (one pass), or one for each (two passes).

    Args:
        read: starts a pass over the training pairs.
        config: kind and size of the vocabulary.
        num_pairs: about how many pairs there are, for the progress bar.
    """

    def plausible_pairs(purpose: str) -> Iterator[Pair]:
        pairs = track(read(), f"pairs read for the {purpose}", num_pairs)
        return (pair for pair in pairs if is_plausible(pair, config))

    if config.joint:
        pairs = plausible_pairs("vocabulary")
        texts = (text for pair in pairs for text in (pair.source, pair.target))
        joint = train_tokenizer(texts, config.tokenizer, config.vocab_size)
        return Tokenizers(joint, joint)
    tokenizers = []
    for side in ("source", "target"):
        texts = (getattr(pair, side) for pair in plausible_pairs(f"{side} vocabulary"))
        tokenizers.append(train_tokenizer(texts, config.tokenizer, config.vocab_size))
    return Tokenizers(*tokenizers)


class HoldoutSplit:
    """Training and validation pairs; without a validation corpus, some are held out at random.

    A source sentence that is validated must not be trained on: pairs with the source of a held-out
    pair are left out of the training pairs. Empty sources are dropped later, for that reason.
    """

    def __init__(
        self, corpus: Corpus, valid: Corpus | None, num_pairs: int, config: RunConfig
    ) -> None:
        self._corpus, self._valid = corpus, valid
        self._held_out: dict[int, Pair] = {}
        if valid is None:
            indices = _sample_indices(num_pairs, config)
            self._held_out = {i: pair for i, pair in enumerate(corpus.read()) if i in indices}
        sources = (pair.source for pair in self._held_out.values())
        self._held_out_sources = {source for source in sources if source.strip()}

    def train_pairs(self, dropped: dict[str, int] | None = None) -> Iterator[Pair]:
        """Yield the training pairs; count those with a held-out source in `dropped`."""
        for index, pair in enumerate(self._corpus.read()):
            if index in self._held_out:
                continue
            if pair.source not in self._held_out_sources:
                yield pair
            elif dropped is not None:
                dropped[DUPLICATE_SOURCE] = dropped.get(DUPLICATE_SOURCE, 0) + 1

    def validation_pairs(self) -> Iterator[Pair]:
        """Yield the validation pairs."""
        return iter(self._held_out.values()) if self._valid is None else self._valid.read()


def _sample_indices(num_pairs: int, config: RunConfig) -> frozenset[int]:
    """Choose the pairs to hold out: `data.validation_pairs`, but at most a tenth."""
    count = min(config.data.validation_pairs, num_pairs // MIN_SPLIT_PAIRS)
    if count == 0:
        raise RegardError(
            f"{MIN_SPLIT_PAIRS} or more pairs are needed to hold some out for validation, but the "
            f"corpus has {num_pairs}; valid= names validation pairs"
        )
    return frozenset(Random(config.train.seed).sample(range(num_pairs), count))
