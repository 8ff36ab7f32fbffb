"""Pairs as numbers in files that are mapped to memory: any size of corpus, little memory."""

import json
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from regard._support import files
from regard.config import DataConfig
from regard.data.bpe_dropout import PairBPEDropout
from regard.data.corpus import Pair
from regard.data.spans import overlapping
from regard.data.tokenizer import Tokenizers
from regard.errors import RegardError

CHUNK = 10_000  # pairs encoded at a time
LETTERS = 32  # of a piece, at most, in what may be text
COLUMNS = ("source", "target", "links")

Numbers = NDArray[Any]


class EncodedPairs(NamedTuple):
    """Encoded pairs: tokens of both sides one after the other, and where each sentence starts.

    Links are pairs of piece numbers (source, target), flattened; none where none are known.
    """

    source: Numbers
    source_starts: Numbers
    target: Numbers
    target_starts: Numbers
    links: Numbers
    links_starts: Numbers
    dropped: dict[str, int]

    @classmethod
    def load(cls, folder: Path) -> "EncodedPairs":
        """Map what `encode_pairs` wrote."""
        try:
            about = json.loads((folder / "about.json").read_text())
            columns: dict[str, Numbers] = {}
            for name in COLUMNS:
                numbers = _mapped(folder / f"{name}.tokens", about["kinds"][name])
                starts = _mapped(folder / f"{name}.starts", "<i8")
                if len(numbers) != starts[-1]:
                    raise ValueError(
                        f"{name}.tokens must be {starts[-1]} numbers, not {len(numbers)}"
                    )
                columns |= {name: numbers, f"{name}_starts": starts}
            return cls(**columns, dropped=about["dropped"])
        except (OSError, ValueError, LookupError, TypeError) as problem:
            raise RegardError(f"the encoded pairs in {folder} are damaged: {problem}") from problem

    def __len__(self) -> int:
        return len(self.source_starts) - 1

    def pair(self, number: int) -> tuple[Numbers, Numbers]:
        """Give the tokens of a pair."""
        return (
            self.source[self.source_starts[number] : self.source_starts[number + 1]],
            self.target[self.target_starts[number] : self.target_starts[number + 1]],
        )

    def links_of(self, number: int) -> Numbers:
        """Give the links (source piece, target piece) of a pair."""
        some = self.links[self.links_starts[number] : self.links_starts[number + 1]]
        return some.reshape(-1, 2)

    def target_tokens(self, numbers: Numbers) -> int:
        """Count the target tokens of some pairs, without a look at the others."""
        return int((self.target_starts[numbers + 1] - self.target_starts[numbers]).sum())

    @property
    def lengths(self) -> tuple[Numbers, Numbers]:
        """How many tokens each source and each target has."""
        return np.diff(self.source_starts), np.diff(self.target_starts)


def encode_pairs(
    pairs: Iterable[Pair],
    tokenizers: Tokenizers,
    settings: DataConfig,
    folder: Path,
    cuts: PairBPEDropout | None = None,
    dropped: dict[str, int] | None = None,
) -> EncodedPairs:
    """Encode pairs into files of a folder, leaving out those that the settings rule out.

    With cuts, each pair is there as often as it is cut.

    Args:
        dropped: how many were left out before, by reason; here the others are added.
    """
    wide = max(tokenizers.vocab_sizes) > np.iinfo(np.uint16).max
    kinds = {"source": "<u4" if wide else "<u2", "target": "<u4" if wide else "<u2", "links": "<u2"}
    starts = {name: array("q", [0]) for name in COLUMNS}
    dropped = {} if dropped is None else dropped
    files.remove_temps(folder)
    with ExitStack() as stack:
        opened = {name: stack.enter_context(_new(folder / f"{name}.tokens")) for name in COLUMNS}
        for row in _rows(pairs, tokenizers, settings, dropped, cuts):
            for name, numbers in zip(COLUMNS, row, strict=True):
                opened[name].write(np.asarray(numbers, dtype=kinds[name]).tobytes())
                starts[name].append(starts[name][-1] + len(numbers))
        # removed first and written last: what has this file is complete
        (folder / "about.json").unlink(missing_ok=True)
    for name in COLUMNS:
        files.write_file(folder / f"{name}.starts", np.asarray(starts[name], dtype="<i8").tobytes())
    files.write_file(folder / "about.json", json.dumps({"kinds": kinds, "dropped": dropped}) + "\n")
    return EncodedPairs.load(folder)


@contextmanager
def _new(path: Path) -> Iterator[IO[bytes]]:
    with files.atomic_write(path) as draft, draft.open("wb") as file:
        yield file


def _mapped(path: Path, kind: str) -> Numbers:
    if path.stat().st_size == 0:  # which cannot be mapped
        return np.zeros(0, dtype=kind)
    return np.memmap(path, dtype=kind, mode="r")


def _rows(
    pairs: Iterable[Pair],
    tokenizers: Tokenizers,
    settings: DataConfig,
    dropped: dict[str, int],
    cuts: PairBPEDropout | None,
) -> Iterator[tuple[Sequence[int], Sequence[int], Sequence[int]]]:
    """Encode pairs chunk by chunk, and count what is left out, by reason."""
    stream = iter(pairs)
    while some := list(islice(stream, CHUNK)):
        sources = tokenizers.source.encode_batch([pair.source for pair in some])
        targets = tokenizers.target.encode_batch([pair.target for pair in some])
        for pair, source, target in zip(some, sources, targets, strict=True):
            if reason := rejection_reason(pair, len(source), len(target), settings):
                dropped[reason] = dropped.get(reason, 0) + 1
                continue
            usual = source, target
            for left, right in [usual] if cuts is None else cuts.draw(pair, usual):
                yield left, right, _linked(pair, left, right, tokenizers)


def is_plausible(pair: Pair, settings: DataConfig) -> bool:
    """Tell whether a pair may be learned, before pieces are known.

    What is left out must not fill a vocabulary: a line that is no text, say.
    """
    most = LETTERS * settings.max_length
    return all(text.strip() and len(text) <= most for text in (pair.source, pair.target))


def rejection_reason(pair: Pair, source: int, target: int, settings: DataConfig) -> str | None:
    """Say why a pair of so many pieces is left out, or nothing."""
    for name, text in (("source", pair.source), ("target", pair.target)):
        if not text.strip():
            return f"empty {name}"
    for name, length in (("source", source), ("target", target)):
        if length > settings.max_length:
            return f"{name} longer than {settings.max_length} pieces"
    # a few pieces more or less say nothing about short sentences
    if max(source, target) > settings.max_length_ratio * min(source, target) + 5:
        return f"one side more than {settings.max_length_ratio:g} times the other"
    return None


def _linked(
    pair: Pair, source: Sequence[int], target: Sequence[int], tokenizers: Tokenizers
) -> list[int]:
    if not pair.links:
        return []
    sources, targets = (
        tokenizers.source.offsets(source),
        tokenizers.target.offsets(target),
    )
    flat = []
    for left, right in pair.links:
        for i in overlapping(sources, left):
            for j in overlapping(targets, right):
                flat += [i, j]
    return flat
