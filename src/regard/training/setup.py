"""From texts to what a training needs: settings that fit, tokenizers, encoded pairs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

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
from regard.training import defaults

ALIKE = "source also among the pairs held out"

Updates = Sequence[Mapping[str, Any]]
"""Settings to change, later ones over earlier ones."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """What a training needs."""

    settings: RunConfig
    tokenizers: Tokenizers
    train: EncodedPairs
    valid: EncodedPairs


def settle(corpus: Corpus, updates: Updates, valid: Corpus | None = None) -> tuple[RunConfig, int]:
    """Give the settings for a corpus, and how many pairs it has; read all pairs once."""
    count, linked = _read(corpus)
    if valid is not None:
        _read(valid)
    settings = RunConfig()
    for some in (defaults.defaults_for_size(count), *updates):
        settings = settings.update(some)
    if not settings.data.joint:  # a number means one word here and another one there
        settings = settings.update({"model": {"share_embeddings": False}})
    check(settings)
    if settings.train.alignment_loss_weight and not linked:
        raise RegardError(
            "train.guide needs pairs with alignments, but there are none; "
            "--alignments names a file of them"
        )
    return settings, count


def _read(corpus: Corpus) -> tuple[int, bool]:
    """Count the pairs, and tell whether some have links; refuse what cannot be read."""
    count, linked = 0, False
    for pair in track(corpus.read(), "pairs read"):
        count, linked = count + 1, linked or bool(pair.links)
    if count == 0:
        raise RegardError(f"{' and '.join(corpus.names)} must have pairs, but there are none")
    return count, linked


def check(settings: RunConfig) -> None:
    """Refuse what cannot be trained, before any time is spent on it."""
    model, train = settings.model, settings.train
    with torch.device("meta"):  # the shapes alone
        build(model, (UNK + 1, UNK + 1))
    layers = model.layers if model.kind == "transformer" else 1
    if train.alignment_loss_weight and train.alignment_layer >= layers:
        raise RegardError(
            f"train.alignment_layer must be below {layers}, but it is {train.alignment_layer}"
        )
    if train.precision == "bfloat16" and not torch.cuda.is_available():
        raise RegardError("train.precision must be 'float32' without a GPU, but it is 'bfloat16'")
    needed = settings.data.max_length + 1
    if (
        model.kind == "transformer"
        and model.positions == "learned"
        and model.max_positions < needed
    ):
        raise RegardError(
            f"model.max_positions must be {needed} or more, for data.max_length pieces "
            f"and the start, but "
            f"it is {model.max_positions}; data.max_length={model.max_positions - 1} would do, too"
        )


def claim(folder: RunFolder, settings: RunConfig, origin: Mapping[str, Any]) -> bool:
    """Make the folder this run's own; say whether the run was there already.

    A folder that belongs to another run, or to something else, is left as it is. But a run that
    never learned anything, such as one that was refused, has nothing to lose, and gives way.
    """
    if folder.settings.exists():
        before, known = folder.read_settings()
        try:
            _compare(folder.path, before, settings)
            _compare_texts(folder.path, known, origin)
        except RegardError:
            if folder.has_parameters:
                raise
            folder.clear()
        else:
            return True
    elif not folder.is_empty:
        raise RegardError(f"{folder.path} exists and is not a run; --out must be a new folder")
    folder.write_settings(settings, origin)
    return False


def _compare_texts(path: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    if before["fingerprints"] != now["fingerprints"]:
        raise RegardError(
            f"{path} is a run with other texts ({', '.join(before['texts'])}, or they have "
            "changed); --out with another folder would start a new one"
        )


def _compare(path: Path, known: RunConfig, wanted: RunConfig) -> None:
    before, now = known.to_dict(), wanted.to_dict()
    for section, keys in before.items():
        for key, value in keys.items():
            if value != now[section][key]:
                raise RegardError(
                    f"{path} is a run with {section}.{key} = {value!r}, not {now[section][key]!r}; "
                    "--out with another folder would start a new one"
                )


def prepare(
    folder: RunFolder, settings: RunConfig, corpus: Corpus, valid: Corpus | None, count: int
) -> Prepared:
    """Learn the tokenizers and encode all pairs, unless an earlier start has done it."""
    if not EncodedPairs.is_complete(folder.data / "valid"):
        held_out = _Split(corpus, valid, count, settings)
        learn(held_out.train, settings.data, count).save(folder.tokenizer)
        tokenizers = Tokenizers.load(folder.tokenizer)
        dropped: dict[str, int] = {}
        pairs = track(held_out.train(dropped), "pairs encoded", count)
        data, seed = settings.data, settings.train.seed
        cuts = PairBPEDropout(tokenizers, data, seed) if data.bpe_dropout_samples else None
        encode_pairs(pairs, tokenizers, data, folder.data / "train", cuts, dropped)
        encode_pairs(held_out.valid(), tokenizers, data, folder.data / "valid")
    return opened(folder, settings)


def opened(folder: RunFolder, settings: RunConfig) -> Prepared:
    """Open what `prepare` made."""
    train, valid = (EncodedPairs.load(folder.data / name) for name in ("train", "valid"))
    for name, pairs in (("training", train), ("validation", valid)):
        if len(pairs) == 0:
            reasons = ", ".join(f"{count} {reason}" for reason, count in pairs.dropped.items())
            raise RegardError(f"no {name} pair is left: {reasons or 'there was none'}")
    return Prepared(settings, Tokenizers.load(folder.tokenizer), train, valid)


def learn(
    pairs: Callable[[], Iterator[Pair]], settings: DataConfig, count: int | None = None
) -> Tokenizers:
    """Learn one vocabulary for both languages, or one for each, from `count` pairs or so."""

    def read_for(what: str) -> Iterator[Pair]:
        read = track(pairs(), f"pairs read for the {what}", count)
        return (pair for pair in read if is_plausible(pair, settings))

    if settings.joint:
        read = read_for("vocabulary")
        texts = (text for pair in read for text in (pair.source, pair.target))
        both = train_tokenizer(texts, settings.tokenizer, settings.vocab_size)
        return Tokenizers(both, both)
    sides = []
    for name in ("source", "target"):
        texts = (getattr(pair, name) for pair in read_for(f"{name} vocabulary"))
        sides.append(train_tokenizer(texts, settings.tokenizer, settings.vocab_size))
    return Tokenizers(*sides)


class _Split:
    """Training and validation pairs; held out by chance where no validation pairs are given."""

    def __init__(
        self, corpus: Corpus, valid: Corpus | None, count: int, settings: RunConfig
    ) -> None:
        self.corpus, self.given = corpus, valid
        wanted = min(settings.data.validation_pairs, count // 10)
        if valid is None and wanted == 0:
            raise RegardError(
                f"too few pairs to hold some out for validation: {count}. "
                "--valid would name others, or 10 pairs would do"
            )
        chosen = Random(settings.train.seed).sample(range(count), wanted)
        self.held_out = frozenset() if valid else frozenset(chosen)
        # a sentence that is validated must not be learned under another number
        numbered = enumerate(corpus.read()) if self.held_out else ()
        self.sources = {pair.source for n, pair in numbered if n in self.held_out}

    def train(self, dropped: dict[str, int] | None = None) -> Iterator[Pair]:
        """Give the pairs to learn, and count those whose source is that of a pair held out."""
        for number, pair in enumerate(self.corpus.read()):
            if pair.source not in self.sources:
                yield pair
            elif dropped is not None and number not in self.held_out:
                dropped[ALIKE] = dropped.get(ALIKE, 0) + 1

    def valid(self) -> Iterator[Pair]:
        if self.given is not None:
            return self.given.read()
        numbered = enumerate(self.corpus.read())
        return (pair for number, pair in numbered if number in self.held_out)
