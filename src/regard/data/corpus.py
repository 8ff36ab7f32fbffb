"""Pairs of sentences, read from a TSV file or from two parallel files, plain or .gz."""

import gzip
import os
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import file_digest, sha256
from io import BufferedReader
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from regard.data.spans import Span, whitespace_spans
from regard.errors import RegardError

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Pair(NamedTuple):
    """A sentence, its translation and, where known, the parts of both that belong together."""

    source: str
    target: str
    links: tuple[tuple[Span, Span], ...] = ()


def read_pairs(paths: Sequence[Path], alignments: Path | None = None) -> Iterator[Pair]:
    """Give the pairs of one TSV file (source, tab, target) or of two parallel files.

    Alignments are lines such as `0-0 1-2`: source word, target word, counted from 0 between
    spaces.
    """
    if len(paths) not in (1, 2):
        raise RegardError(
            f"pairs must be one TSV file or two parallel files, not {len(paths)} files"
        )
    if len(paths) == 2 and _same(*paths):
        raise RegardError(
            f"parallel files must be two, but both are {paths[1]}; a TSV file is named once"
        )
    pairs = _from_tsv(paths[0]) if len(paths) == 1 else _from_two(paths[0], paths[1])
    return pairs if alignments is None else _aligned(pairs, paths, alignments)


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:  # which reading will tell of
        return False


def read_lines(path: Path) -> Iterator[str]:
    """Give the lines of a text file, parted at line feeds alone, as UTF-8."""
    try:
        with _readable(path), _opened(path) as file:
            for number, line in enumerate(file, 1):
                if number == 1:
                    line = line.removeprefix(BYTE_ORDER_MARK)
                yield _text(line.removesuffix(b"\n").removesuffix(b"\r"), path, number)
    except (EOFError, gzip.BadGzipFile, zlib.error) as problem:
        raise RegardError(
            f"{path} must be a whole .gz file, but it is damaged: {problem}"
        ) from problem


def fingerprint_files(paths: Sequence[Path]) -> str:
    """Tell apart files of other content, whatever they are called."""
    digest = sha256()
    for path in paths:
        with _readable(path), path.open("rb") as file:
            digest.update(file_digest(file, "sha256").digest())
    return digest.hexdigest()


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Say in one sentence why something could not be read."""
    try:
        yield
    except gzip.BadGzipFile:  # an error of the system by its kind, but not by its cause
        raise
    except OSError as problem:
        raise RegardError(f"cannot read {path}: {problem.strerror or problem}") from problem


def _opened(path: Path) -> gzip.GzipFile | BufferedReader:
    return gzip.open(path) if path.suffix == ".gz" else path.open("rb")


def _text(line: bytes, path: Path, number: int) -> str:
    if b"\0" in line:
        raise RegardError(f"{path} must be text, but line {number} has a zero byte: is it binary?")
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as problem:
        raise RegardError(
            f"{path} must be UTF-8, but line {number} is not, at its byte {problem.start}; "
            "iconv -t utf-8 would convert it"
        ) from problem


def _from_tsv(path: Path) -> Iterator[Pair]:
    for number, line in enumerate(read_lines(path), 1):
        source, tab, rest = line.partition("\t")
        if not tab and line.strip():
            raise RegardError(
                f"{path} must have a tab between source and target, but line {number} has none"
            )
        yield Pair(source.strip(), rest.partition("\t")[0].strip())


def _from_two(source: Path, target: Path) -> Iterator[Pair]:
    for number, (left, right) in enumerate(zip_longest(read_lines(source), read_lines(target)), 1):
        if left is None or right is None:
            raise RegardError(_unequal(source, target, number - 1, left is None))
        yield Pair(left.strip(), right.strip())


def _unequal(source: Path, target: Path, both: int, source_ended: bool) -> str:
    shorter, longer = (source, target) if source_ended else (target, source)
    whole = sum(1 for _ in read_lines(longer))
    return (
        f"parallel files must have as many lines, but {shorter} has {both} and {longer} has {whole}"
    )


def _aligned(pairs: Iterator[Pair], paths: Sequence[Path], alignments: Path) -> Iterator[Pair]:
    for number, (pair, line) in enumerate(zip_longest(pairs, read_lines(alignments)), 1):
        if pair is None or line is None:
            other, wanted = (alignments, paths[0]) if line is None else (paths[0], alignments)
            raise RegardError(
                f"{alignments} must have a line for each pair, but {other} ends before "
                f"line {number} of {wanted}"
            )
        yield pair._replace(links=_links(pair, line, f"{alignments}, line {number}"))


def _links(pair: Pair, line: str, where: str) -> tuple[tuple[Span, Span], ...]:
    source, target = (whitespace_spans(text) for text in pair[:2])
    try:
        numbers = [tuple(map(int, link.split("-"))) for link in line.split()]
        return tuple((source[i], target[j]) for i, j in numbers if min(i, j) >= 0)
    except (ValueError, IndexError):
        raise RegardError(
            f"{where}: links must be source-target word numbers from 0-0 to "
            f"{len(source) - 1}-{len(target) - 1}, but the line is {line[:60]!r}"
        ) from None


def _check_lasting(path: Path) -> None:
    with _readable(path):
        if path.is_fifo() or path.is_char_device():
            raise RegardError(
                f"{path} must be a file, which can be read more than once, but it is a pipe "
                "or a device; its content in a file would do"
            )


@dataclass(frozen=True, slots=True)
class Corpus:
    """Pairs that can be read again and again, and by what they are known."""

    names: tuple[str, ...]
    fingerprint: str
    read: Callable[[], Iterator[Pair]]
    dataset: Mapping[str, str] | None = None  # identity of a known data set: name, language, split

    @classmethod
    def from_files(cls, paths: Sequence[Path], alignments: Path | None = None) -> "Corpus":
        """Read pairs from files each time."""
        every = [*paths, *([alignments] if alignments else [])]
        for path in every:
            _check_lasting(path)
        return cls(
            tuple(os.fsencode(path).decode(errors="replace") for path in every),
            fingerprint_files(every),
            lambda: read_pairs(paths, alignments),
        )

    @classmethod
    def from_pairs(
        cls, name: str, pairs: Sequence[Pair], dataset: Mapping[str, str] | None = None
    ) -> "Corpus":
        """Give pairs that are in memory."""
        digest = sha256()
        for pair in pairs:
            digest.update(repr(pair).encode())
        return cls((name,), digest.hexdigest(), lambda: iter(pairs), dataset)
