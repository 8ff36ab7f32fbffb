"""Parallel corpora: sentence pairs in a TSV file or in two parallel files, plain or gzipped."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice, zip_longest
from pathlib import Path
from typing import NamedTuple

from regard._support.reading import GzipReader, bounded_lines, strip_byte_order_mark
from regard.data.spans import Span, whitespace_spans
from regard.errors import RegardError

SAMPLE_LINES = 1000  # in which further columns are looked for

FilePath = str | os.PathLike[str]
"""The path of a file, as text or as a `Path`."""

Links = tuple[tuple[Span, Span], ...]
"""Aligned parts of a source and its target, as character spans."""


class Pair(NamedTuple):
    """A sentence, its translation and, where known, the word alignment.

    Example:
        >>> Pair("a cat", "un chat", (((0, 1), (0, 2)), ((2, 5), (3, 7)))).target
        'un chat'
    """

    source: str
    target: str
    links: Links = ()


@dataclass(frozen=True, slots=True)
class Corpus:
    """Sentence pairs that can be read repeatedly, and their identity.

    Attributes:
        names: files or names the pairs come from, for messages and the run's settings.
        read: returns an iterator over the pairs.
        dataset: identity of a known data set (name, language, split), if it is one.
        alignments: which of the names is the file of word alignments, if there is one.
        notes: what a user should know before training, such as ignored columns.

    Example:
        >>> corpus = Corpus.from_pairs("greetings", [Pair("hello", "bonjour")])
        >>> [pair.target for pair in corpus.read()]
        ['bonjour']
    """

    names: tuple[str, ...]
    read: Callable[[], Iterator[Pair]]
    dataset: Mapping[str, str] | None = None
    alignments: str | None = None
    notes: tuple[str, ...] = ()

    @classmethod
    def from_files(
        cls, paths: FilePath | Sequence[FilePath], alignments: FilePath | None = None
    ) -> "Corpus":
        """Return a corpus that is read from files each time.

        Args:
            paths: one TSV file (source, tab, target) or two parallel files; .gz is decompressed.
            alignments: a file in Pharaoh format, a line per pair, see `read_pairs`.

        Raises:
            RegardError: if a file can be read only once, such as a pipe.
        """
        paths = to_paths(paths)
        inputs = [*paths, *([Path(alignments)] if alignments else [])]
        for path in inputs:
            check_rereadable(path)
        names = tuple(os.fsencode(path).decode(errors="replace") for path in inputs)
        return cls(
            names,
            lambda: read_pairs(paths, alignments),
            alignments=names[-1] if alignments else None,
            notes=_notes(paths),
        )

    @classmethod
    def from_pairs(
        cls, name: str, pairs: Sequence[Pair], dataset: Mapping[str, str] | None = None
    ) -> "Corpus":
        """Return a corpus of pairs in memory.

        Args:
            name: what to call it.
            pairs: the sentence pairs.
            dataset: identity of a known data set.

        Example:
            >>> corpus = Corpus.from_pairs("two words", [Pair("one", "un"), Pair("two", "deux")])
            >>> [pair.target for pair in corpus.read()]
            ['un', 'deux']
        """
        return cls((name,), lambda: iter(pairs), dataset)


def to_paths(paths: FilePath | Sequence[FilePath]) -> list[Path]:
    """Return the path of one file, or those of several, as a list."""
    several = [paths] if isinstance(paths, str | os.PathLike) else paths
    return [Path(path) for path in several]


def read_pairs(
    paths: FilePath | Sequence[FilePath], alignments: FilePath | None = None
) -> Iterator[Pair]:
    """Return an iterator over the pairs of one TSV file or of two parallel files.

    Args:
        paths: one TSV file (source, tab, target; further columns are ignored) or two files.
        alignments: word alignments in Pharaoh format: a line such as `0-0 1-2` per pair, source
            word - target word, counted from 0 between spaces.

    Raises:
        RegardError: if there are not one or two files, one cannot be read or is not UTF-8 text, a
            TSV line has no tab, or the numbers of lines differ.

    Example:
        >>> from pathlib import Path
        >>> size = Path("pairs.tsv").write_text("the cat\\tle chat\\n", encoding="utf-8")
        >>> [(pair.source, pair.target) for pair in read_pairs("pairs.tsv")]
        [('the cat', 'le chat')]
    """
    paths = to_paths(paths)
    if len(paths) not in (1, 2):
        raise RegardError(
            f"pairs must be one TSV file or two parallel files, but {len(paths)} files are given"
        )
    if len(paths) == 2 and _is_same_file(*paths):
        raise RegardError(
            f"parallel files must be two files, but both are {paths[1]}; give a TSV file once"
        )
    pairs = _read_tsv(paths[0]) if len(paths) == 1 else _read_parallel(paths[0], paths[1])
    return pairs if alignments is None else _add_links(pairs, paths, Path(alignments))


def pair_lines(
    sources: Sequence[str], targets: Sequence[str], alignments: Sequence[str] | None = None
) -> Iterator[Pair]:
    """Return an iterator over the pairs of parallel lists of sentences.

    Args:
        sources: the sentences.
        targets: their translations.
        alignments: lines in Pharaoh format, see `read_pairs`.

    Raises:
        RegardError: if the lists are not equally long, or a line is no alignment.

    Example:
        >>> [pair.target for pair in pair_lines(["a cat", "a dog"], ["un chat", "un chien"])]
        ['un chat', 'un chien']
    """
    counts = [len(sources), len(targets), *([] if alignments is None else [len(alignments)])]
    if len({*counts}) > 1:
        names = "sources and translations"
        if alignments is not None:
            names = "sources, translations and alignments"
        raise RegardError(
            f"{names} must be equally many, but there are "
            f"{', '.join(map(str, counts[:-1]))} and {counts[-1]}"
        )
    for number, (source, target) in enumerate(zip(sources, targets, strict=True), 1):
        pair = Pair(source.strip(), target.strip())
        if alignments is not None:
            links = _parse_links(pair, alignments[number - 1], f"alignment {number}")
            pair = pair._replace(links=links)
        yield pair


def read_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a UTF-8 file, which end at LF or CRLF and nowhere else.

    Raises:
        RegardError: if the file cannot be read, is not UTF-8 text, has a line of more than 1 MiB,
            or is compressed and is damaged or expands far beyond its size.
    """
    with _wrap_read_errors(path), path.open("rb") as file:
        is_gzip = path.suffix == ".gz"
        opened = GzipReader(file, path.stat().st_size, path) if is_gzip else file
        for number, line in enumerate(bounded_lines(opened.readline, path), 1):
            if number == 1:
                line = strip_byte_order_mark(line, path)
            yield _decode(line.removesuffix(b"\n").removesuffix(b"\r"), path, number)


def describe_ignored_columns(paths: Sequence[Path]) -> str | None:
    """Return a note on a TSV file with more than two columns; None for any other corpus.

    Only the first lines of the file are looked at.
    """
    if len(paths) != 1:
        return None
    lines = islice(read_lines(paths[0]), SAMPLE_LINES)
    columns = max((line.count("\t") + 1 for line in lines), default=0)
    if columns <= 2:
        return None
    return f"{paths[0]} has {columns} columns; those after the second are ignored"


def _notes(paths: Sequence[Path]) -> tuple[str, ...]:
    try:
        note = describe_ignored_columns(paths)
    except RegardError:  # reported when the file is read
        return ()
    return (note,) if note else ()


def _is_same_file(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:  # reported when the file is read
        return False


@contextmanager
def _wrap_read_errors(path: Path) -> Iterator[None]:
    """Turn an OSError while reading into a RegardError of one line."""
    try:
        yield
    except OSError as error:
        raise RegardError(f"cannot read {path}: {error.strerror or error}") from error


def _decode(line: bytes, path: Path, number: int) -> str:
    if b"\0" in line:
        raise RegardError(
            f"{path} must be a text file, but line {number} has a zero byte; is it binary?"
        )
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RegardError(
            f"{path} must be UTF-8, but line {number} is not, at byte {error.start}; "
            "`iconv -f ENCODING -t utf-8` can convert it"
        ) from error


def _read_tsv(path: Path) -> Iterator[Pair]:
    for number, line in enumerate(read_lines(path), 1):
        source, tab, rest = line.partition("\t")
        if not tab and line.strip():
            raise RegardError(
                f"{path} must have a tab between source and target, but line {number} has none"
            )
        yield Pair(source.strip(), rest.partition("\t")[0].strip())


def _read_parallel(source: Path, target: Path) -> Iterator[Pair]:
    for number, (left, right) in enumerate(zip_longest(read_lines(source), read_lines(target)), 1):
        if left is None or right is None:
            shorter, longer = (source, target) if left is None else (target, source)
            raise RegardError(
                f"parallel files must have equally many lines, but {shorter} has {number - 1} and "
                f"{longer} has {sum(1 for _ in read_lines(longer))}"
            )
        yield Pair(left.strip(), right.strip())


def _add_links(pairs: Iterator[Pair], paths: Sequence[Path], alignments: Path) -> Iterator[Pair]:
    for number, (pair, line) in enumerate(zip_longest(pairs, read_lines(alignments)), 1):
        if pair is None or line is None:
            shorter, longer = (alignments, paths[0]) if line is None else (paths[0], alignments)
            raise RegardError(
                f"{alignments} must have a line per pair, but {shorter} ends before line {number} "
                f"of {longer}"
            )
        yield pair._replace(links=_parse_links(pair, line, f"{alignments}, line {number}"))


def _parse_links(pair: Pair, line: str, location: str) -> Links:
    source, target = whitespace_spans(pair.source), whitespace_spans(pair.target)
    try:
        links = [tuple(map(int, link.split("-"))) for link in line.split()]
        return tuple((source[i], target[j]) for i, j in links)
    except (ValueError, IndexError):
        raise RegardError(
            f"{location}: links must be source-target word numbers from 0-0 to "
            f"{len(source) - 1}-{len(target) - 1}, but the line is {line[:60]!r}"
        ) from None


def check_rereadable(path: Path) -> None:
    """Raise RegardError for a pipe or a device, which can be read only once, if ever."""
    with _wrap_read_errors(path):
        if path.is_fifo() or path.is_char_device():
            raise RegardError(
                f"{path} must be a file, because it is read several times, but it is a pipe or a "
                "device; save its content to a file first"
            )
