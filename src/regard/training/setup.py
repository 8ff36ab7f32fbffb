"""Setup of a run: its settings, its folder, tokenizers and encoded pairs.

The corpus is read four times before the first step, and never held in memory: to count and
fingerprint it (`scan_corpus`), to collect the held-out pairs (`HoldoutSplit`), to train the
tokenizers (once more if they are separate) and to encode it. A given validation corpus saves the
second pass; a resumed run needs the first one only.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import torch

from regard._support.progress import track
from regard.config import DataConfig, RunConfig
from regard.data import (
    UNK,
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
from regard.models import build
from regard.runs import RunFolder
from regard.training.defaults import defaults_for_size

DUPLICATE_SOURCE = "source also among the held-out pairs"

Updates = Sequence[Mapping[str, Any]]
"""Settings `{section: {key: value}}`; later ones override earlier ones."""


class CorpusSummary(NamedTuple):
    """What one pass over a corpus finds out."""

    pairs: int
    has_links: bool  # whether some pair has word alignments
    fingerprint: str  # digest of all pairs, whatever files they are in


@dataclass(frozen=True, slots=True)
class TrainingData:
    """Settings, tokenizers and encoded pairs of a run."""

    config: RunConfig
    tokenizers: Tokenizers
    train: EncodedPairs
    valid: EncodedPairs


def scan_corpus(corpus: Corpus) -> CorpusSummary:
    """Read a corpus once: count its pairs, look for links, and compute its fingerprint."""
    count, has_links, digest = 0, False, sha256()
    for pair in track(corpus.read(), "pairs read"):
        count, has_links = count + 1, has_links or bool(pair.links)
        digest.update(repr(pair).encode())
    if count == 0:
        raise RegardError(f"{' and '.join(corpus.names)} must have pairs, but there are none")
    return CorpusSummary(count, has_links, digest.hexdigest())


def resolve_config(summary: CorpusSummary, updates: Updates) -> RunConfig:
    """Return the defaults for the size of a corpus with all updates, checked."""
    config = RunConfig.from_dict(defaults_for_size(summary.pairs))
    for update in updates:
        config = config.update(update)
    if not config.data.joint:  # the same id is one word in the source and another in the target
        config = config.update({"model": {"share_embeddings": False}})
    check_config(config)
    if config.train.alignment_loss_weight and not summary.has_links:
        raise RegardError(
            "train.alignment_loss_weight needs pairs with alignments, but there are none; "
            "--alignments names a file of them"
        )
    return config


def check_config(config: RunConfig) -> None:
    """Raise an error for settings that cannot be trained, before any time is spent on them."""
    model, train = config.model, config.train
    with torch.device("meta"):  # shapes without memory
        build(model, (UNK + 1, UNK + 1))
    layers = model.layers if model.kind == "transformer" else 1
    if train.alignment_loss_weight and train.alignment_layer >= layers:
        raise RegardError(
            f"train.alignment_layer must be below {layers}, but it is {train.alignment_layer}"
        )
    if train.precision == "bfloat16" and not torch.cuda.is_available():
        raise RegardError("train.precision must be 'float32' without a GPU, but it is 'bfloat16'")
    needed = config.data.max_length + 1
    has_table = model.kind == "transformer" and model.positions == "learned"
    if has_table and model.max_positions < needed:
        raise RegardError(
            f"model.max_positions must be {needed} or more, for data.max_length tokens and BOS, "
            f"but it is {model.max_positions}; data.max_length={model.max_positions - 1} would "
            "also work"
        )


def claim_folder(folder: RunFolder, config: RunConfig, origin: Mapping[str, Any]) -> bool:
    """Write the settings into the folder of a new run; return whether the run existed already.

    A folder that belongs to another run or to something else raises an error. But a run without
    any parameters, such as one that failed at once, has nothing to lose and is replaced.
    """
    if folder.settings.exists():
        known_config, known_origin = folder.read_settings()
        try:
            _check_same_config(folder.path, known_config, config)
            _check_same_corpus(folder.path, known_origin, origin)
        except RegardError:
            if folder.has_parameters:
                raise
            folder.clear()
        else:
            return True
    elif not folder.is_empty:
        raise RegardError(f"{folder.path} exists and is not a run; --out must be a new folder")
    folder.write_settings(config, origin)
    return False


def _check_same_corpus(path: Path, known: Mapping[str, Any], requested: Mapping[str, Any]) -> None:
    if known["fingerprints"] != requested["fingerprints"]:
        raise RegardError(
            f"{path} is a run with another corpus ({', '.join(known['texts'])}, or these files "
            "have changed); --out with another folder would start a new run"
        )


def _check_same_config(path: Path, known: RunConfig, requested: RunConfig) -> None:
    before, after = known.to_dict(), requested.to_dict()
    for section, settings in before.items():
        for key, value in settings.items():
            if value != after[section][key]:
                raise RegardError(
                    f"{path} is a run with {section}.{key} = {value!r}, not "
                    f"{after[section][key]!r}; --out with another folder would start a new run"
                )


def prepare_data(
    folder: RunFolder, config: RunConfig, corpus: Corpus, valid: Corpus | None, num_pairs: int
) -> None:
    """Train the tokenizers and encode all pairs, unless an earlier start did."""
    if EncodedPairs.is_complete(folder.data / "valid"):
        return
    split = HoldoutSplit(corpus, valid, num_pairs, config)
    train_tokenizers(split.train_pairs, config.data, num_pairs).save(folder.tokenizer)
    tokenizers = Tokenizers.load(folder.tokenizer)
    dropped: dict[str, int] = {}
    pairs = track(split.train_pairs(dropped), "pairs encoded", num_pairs)
    bpe_dropout = None
    if config.data.bpe_dropout_samples:
        bpe_dropout = PairBPEDropout(tokenizers, config.data, config.train.seed)
    encode_pairs(pairs, tokenizers, config.data, folder.data / "train", bpe_dropout, dropped)
    encode_pairs(split.validation_pairs(), tokenizers, config.data, folder.data / "valid")


def open_data(folder: RunFolder, config: RunConfig) -> TrainingData:
    """Open what `prepare_data` wrote."""
    train, valid = (EncodedPairs.load(folder.data / name) for name in ("train", "valid"))
    for name, pairs in (("training", train), ("validation", valid)):
        if len(pairs) == 0:
            reasons = ", ".join(f"{count} {reason}" for reason, count in pairs.dropped.items())
            raise RegardError(f"no {name} pair is left: {reasons or 'there was none'}")
    return TrainingData(config, Tokenizers.load(folder.tokenizer), train, valid)


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
    pair are left out of the training pairs.
    """

    def __init__(
        self, corpus: Corpus, valid: Corpus | None, num_pairs: int, config: RunConfig
    ) -> None:
        self._corpus, self._valid = corpus, valid
        self._held_out: dict[int, Pair] = {}
        if valid is None:
            indices = _sample_indices(num_pairs, config)
            self._held_out = {i: pair for i, pair in enumerate(corpus.read()) if i in indices}
        self._held_out_sources = {pair.source for pair in self._held_out.values()}

    def train_pairs(self, dropped: dict[str, int] | None = None) -> Iterator[Pair]:
        """Yield the training pairs; count those with a held-out source in `dropped`."""
        for index, pair in enumerate(self._corpus.read()):
            if pair.source not in self._held_out_sources:
                yield pair
            elif dropped is not None and index not in self._held_out:
                dropped[DUPLICATE_SOURCE] = dropped.get(DUPLICATE_SOURCE, 0) + 1

    def validation_pairs(self) -> Iterator[Pair]:
        """Yield the validation pairs."""
        return iter(self._held_out.values()) if self._valid is None else self._valid.read()


def _sample_indices(num_pairs: int, config: RunConfig) -> frozenset[int]:
    """Choose the pairs to hold out: `data.validation_pairs`, but at most a tenth."""
    count = min(config.data.validation_pairs, num_pairs // 10)
    if count == 0:
        raise RegardError(
            f"10 or more pairs are needed to hold some out for validation, but there are "
            f"{num_pairs}; --valid names validation pairs"
        )
    return frozenset(Random(config.train.seed).sample(range(num_pairs), count))
