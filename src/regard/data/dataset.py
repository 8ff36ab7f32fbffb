"""Encoded pairs in memory-mapped files: a corpus of any size needs little memory."""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from hashlib import file_digest, sha256
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from regard._support import checksums, files
from regard._support.reading import open_regular, read_bounded
from regard.config import DataConfig
from regard.data.bpe_dropout import PairBPEDropout
from regard.data.corpus import Pair
from regard.data.spans import overlapping
from regard.data.tokenizer import Tokenizers
from regard.errors import RegardError

CHUNK_PAIRS = 10_000  # encoded at a time
CHUNK_IDS = 1 << 20  # checked at a time
MAX_TOKEN_CHARACTERS = 32  # longest token of plausible text, on average over a sentence
LENGTH_SLACK = 5  # tokens: the ratio of short sentences varies a lot
COLUMNS = ("source", "target", "links")
MAX_METADATA_BYTES = 1 << 20
DTYPES = ("<u2", "<u4", "<i8")  # of token ids and links, and of starts
METADATA = "metadata.json"  # removed first and written last: a folder that has it is complete

MIN_SPLIT_PAIRS = 10
"""Fewest pairs of a corpus to hold some out for validation: at most a tenth is held out."""

Array = NDArray[Any]


class EncodedPairs(NamedTuple):
    """Token ids of many pairs, concatenated per side, and where each pair starts.

    Links are pairs of token positions (source, target), flattened; empty without alignments.

    Attributes:
        dropped: number of pairs that were dropped, by reason.
    """

    source: Array
    source_starts: Array
    target: Array
    target_starts: Array
    links: Array
    links_starts: Array
    dropped: dict[str, int]

    @classmethod
    def load(cls, folder: Path, identity: checksums.Identity | None = None) -> "EncodedPairs":
        """Map the files that `encode_pairs` wrote into memory, after verifying their checksums.

        Args:
            folder: where they are.
            identity: what they must belong to, as far as they name it.

        Raises:
            RegardError: if a file is missing, damaged or belongs to something else.
        """
        path = folder / METADATA
        try:
            metadata = checksums.loads(read_bounded(path, MAX_METADATA_BYTES))
            checksums.check_identity(path, metadata["identity"], identity or {})
            dtypes, digests, dropped = (metadata[key] for key in ("dtypes", "digests", "dropped"))
            columns: dict[str, Array] = {}
            for name in COLUMNS:
                path = folder / f"{name}.tokens"
                columns[name] = _map_file(path, dtypes[name], digests[path.name])
                path = folder / f"{name}.starts"
                columns[f"{name}_starts"] = _map_file(path, "<i8", digests[path.name])
            path = folder / METADATA
            return cls(**columns, dropped=_check_structure(columns, dropped))
        except RegardError:
            raise
        except OSError as error:
            raise RegardError(f"{path} cannot be read: {error.strerror}") from error
        except (ValueError, LookupError, TypeError) as error:
            raise RegardError(f"{path} is damaged: {error}") from error

    @staticmethod
    def is_complete(folder: Path) -> bool:
        """Return whether `encode_pairs` has written all files of a folder."""
        return (folder / METADATA).exists()

    def check_ids(self, vocab_sizes: tuple[int, int]) -> None:
        """Raise RegardError unless all token ids are of vocabularies of these sizes."""
        for name, ids, size in zip(COLUMNS, (self.source, self.target), vocab_sizes, strict=False):
            largest = max(
                (int(ids[n : n + CHUNK_IDS].max()) for n in range(0, len(ids), CHUNK_IDS)),
                default=0,
            )
            if largest >= size:
                raise RegardError(
                    f"the encoded pairs have the {name} token {largest}, but the vocabulary has "
                    f"{size}: they are of another tokenizer"
                )

    def __len__(self) -> int:
        return len(self.source_starts) - 1

    def pair(self, index: int) -> tuple[Array, Array]:
        """Return the token ids of source and target, without BOS and EOS."""
        return (
            self.source[self.source_starts[index] : self.source_starts[index + 1]],
            self.target[self.target_starts[index] : self.target_starts[index + 1]],
        )

    def links_of(self, index: int) -> Array:
        """Return the alignment links of a pair as rows (source position, target position)."""
        flat = self.links[self.links_starts[index] : self.links_starts[index + 1]]
        return flat.reshape(-1, 2)

    def target_tokens(self, indices: Array) -> int:
        """Count the target tokens of some pairs, without EOS, reading only the starts."""
        return int((self.target_starts[indices + 1] - self.target_starts[indices]).sum())

    @property
    def lengths(self) -> tuple[Array, Array]:
        """Number of tokens of each source and of each target."""
        return np.diff(self.source_starts), np.diff(self.target_starts)


def encode_pairs(
    pairs: Iterable[Pair],
    tokenizers: Tokenizers,
    settings: DataConfig,
    folder: Path,
    bpe_dropout: PairBPEDropout | None = None,
    dropped: dict[str, int] | None = None,
    identity: checksums.Identity | None = None,
) -> EncodedPairs:
    """Encode pairs into the files of a folder, dropping those that the settings exclude.

    Args:
        pairs: the pairs.
        tokenizers: tokenizers of both sides.
        settings: maximal length and length ratio.
        folder: where to write; files of an earlier call are replaced.
        bpe_dropout: samples segmentations; each pair is then written once per sample.
        dropped: counts of pairs that were dropped before, by reason; this call adds its own.
        identity: what the pairs belong to, such as the id of a run.

    Returns:
        The encoded pairs, mapped into memory.
    """
    ids = _unsigned_dtype(max(tokenizers.vocab_sizes))
    dtypes = {"source": ids, "target": ids, "links": _unsigned_dtype(settings.max_length)}
    starts = {name: array("q", [0]) for name in COLUMNS}
    dropped = {} if dropped is None else dropped
    files.remove_temps(folder)
    digests = {f"{name}.tokens": sha256() for name in COLUMNS}
    with ExitStack() as stack:
        columns = {
            name: stack.enter_context(_create(folder / f"{name}.tokens")) for name in COLUMNS
        }
        for row in _encode_rows(pairs, tokenizers, settings, dropped, bpe_dropout):
            for name, values in zip(COLUMNS, row, strict=True):
                data = np.asarray(values, dtype=dtypes[name]).tobytes()
                columns[name].write(data)
                digests[f"{name}.tokens"].update(data)
                starts[name].append(starts[name][-1] + len(values))
        (folder / METADATA).unlink(missing_ok=True)
    for name in COLUMNS:
        data = np.asarray(starts[name], dtype="<i8").tobytes()
        digests[f"{name}.starts"] = sha256(data)
        files.write_file(folder / f"{name}.starts", data)
    metadata = {
        "identity": dict(identity or {}),
        "dtypes": dtypes,
        "dropped": dropped,
        "digests": {name: digest.hexdigest() for name, digest in digests.items()},
    }
    files.write_file(folder / METADATA, checksums.dumps(metadata))
    return EncodedPairs.load(folder, identity)


def _unsigned_dtype(largest: int) -> str:
    """Return the smallest dtype of token ids and links that holds a number."""
    return "<u4" if largest > np.iinfo(np.uint16).max else "<u2"


@contextmanager
def _create(path: Path) -> Iterator[IO[bytes]]:
    with files.atomic_write(path) as temp, temp.open("wb") as file:
        yield file


class _StructureError(ValueError):
    """The arrays of a data set do not fit together."""


def _check_structure(columns: dict[str, Array], dropped: Any) -> dict[str, int]:
    """Raise _StructureError unless the starts divide the tokens into equally many pairs."""
    for name in COLUMNS:
        values, starts = columns[name], columns[f"{name}_starts"]
        if len(starts) != len(columns["source_starts"]) or not len(starts):
            raise _StructureError(f"{name}.starts must have one number more than there are pairs")
        if starts[0] != 0 or starts[-1] != len(values) or (np.diff(starts) < 0).any():
            raise _StructureError(f"{name}.starts must rise from 0 to {len(values)}")
    lengths = np.diff(columns["links_starts"])
    if (lengths % 2).any():
        raise _StructureError("links.tokens must be pairs of positions")
    for side, name in enumerate(("source", "target")):
        limits = np.repeat(np.diff(columns[f"{name}_starts"]), lengths // 2)
        if (columns["links"][side::2] >= limits).any():
            raise _StructureError(f"links.tokens must be positions within the {name}")
    is_count = isinstance(dropped, dict) and all(type(n) is int for n in dropped.values())
    if not is_count:
        raise _StructureError("dropped must be numbers of pairs by reason")
    return dict(dropped)


def _map_file(path: Path, dtype: str, digest: str) -> Array:
    """Map a file into memory; reading it for the checksum also brings it into the page cache."""
    if dtype not in DTYPES:
        raise _StructureError(f"values must be one of {', '.join(DTYPES)}, but they are {dtype!r}")
    with open_regular(path) as file:
        if file_digest(file, "sha256").hexdigest() != digest:
            raise RegardError(f"{path} is damaged: its checksum is wrong")
        if file.tell() == 0:  # an empty file cannot be mapped
            return np.zeros(0, dtype=dtype)
        return np.memmap(file, dtype=dtype, mode="r")


def _encode_rows(
    pairs: Iterable[Pair],
    tokenizers: Tokenizers,
    settings: DataConfig,
    dropped: dict[str, int],
    bpe_dropout: PairBPEDropout | None,
) -> Iterator[tuple[Sequence[int], Sequence[int], Sequence[int]]]:
    """Yield source ids, target ids and flat links, chunk by chunk; count what is dropped."""
    stream = iter(pairs)
    while chunk := list(islice(stream, CHUNK_PAIRS)):
        sources = tokenizers.source.encode_batch([pair.source for pair in chunk])
        targets = tokenizers.target.encode_batch([pair.target for pair in chunk])
        for pair, source, target in zip(chunk, sources, targets, strict=True):
            if reason := rejection_reason(pair, len(source), len(target), settings):
                dropped[reason] = dropped.get(reason, 0) + 1
                continue
            default = source, target
            samples = [default] if bpe_dropout is None else bpe_dropout.sample(pair, default)
            for source_ids, target_ids in samples:
                yield source_ids, target_ids, _token_links(pair, source_ids, target_ids, tokenizers)


def is_plausible(pair: Pair, settings: DataConfig) -> bool:
    """Return whether a pair may be kept, before there is a tokenizer to count its tokens.

    A vocabulary must not be trained on lines that will be dropped, such as binary data.
    """
    limit = MAX_TOKEN_CHARACTERS * settings.max_length
    return all(text.strip() and len(text) <= limit for text in (pair.source, pair.target))


def rejection_reason(
    pair: Pair, source_length: int, target_length: int, settings: DataConfig
) -> str | None:
    """Return why a pair with these numbers of tokens is dropped, or None if it is kept.

    Args:
        pair: the texts.
        source_length: tokens of the source.
        target_length: tokens of the target.
        settings: maximal length and length ratio.

    Example:
        >>> from regard.config import DataConfig
        >>> rejection_reason(Pair("the cat", ""), 3, 0, DataConfig())
        'empty target'
    """
    lengths = {"source": source_length, "target": target_length}
    for name, text in (("source", pair.source), ("target", pair.target)):
        if not text.strip():
            return f"empty {name}"
    for name, length in lengths.items():
        if length > settings.max_length:
            return f"{name} longer than {settings.max_length} tokens"
    shorter, longer = sorted(lengths.values())
    if longer > settings.max_length_ratio * shorter + LENGTH_SLACK:
        return f"one side more than {settings.max_length_ratio:g} times the other"
    return None


def _token_links(
    pair: Pair, source_ids: Sequence[int], target_ids: Sequence[int], tokenizers: Tokenizers
) -> list[int]:
    """Return the links of a pair between tokens, flattened: all tokens of two aligned parts."""
    if not pair.links:
        return []
    sources = tokenizers.source.offsets(source_ids)
    targets = tokenizers.target.offsets(target_ids)
    flat = []
    for source_span, target_span in pair.links:
        for i in overlapping(sources, source_span):
            for j in overlapping(targets, target_span):
                flat += [i, j]
    return flat
