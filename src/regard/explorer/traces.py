"""Traces that the explorer shows: of files named at start, and of those that a browser uploads.

A file holds one trace as JSON, or one trace per line (JSON Lines), as `regard translate --traces`
writes them; either may be gzipped. Translations of sentences of the phrasebook get its gold
alignments.
"""

import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from threading import Lock, Thread
from typing import Any, cast

from starlette.exceptions import HTTPException

from regard._support.strict_json import parse_json
from regard.data import WordSpans
from regard.data.phrasebook import AlignedPair, Language, load_phrasebook
from regard.errors import RegardError
from regard.explorer.runs import unique_names
from regard.explorer.schemas import LIMITS, ExplorerLimits
from regard.trace import Trace, read_trace_text
from regard.viz import page_payload

MAX_LISTED_NAMES = 20  # in an error message
MAX_JSONL_CHARACTERS = 1 << 26  # of a file with several traces

_PHRASEBOOK_LOCK = Lock()  # the first caller loads the phrasebook, others wait for it


class TraceRegistry:
    """The traces of the files that were named at start, read again for each request.

    Args:
        paths: trace files; each trace is named after its file, and numbered if there are several.

    Raises:
        RegardError: if a file is not a trace.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        entries = [(path, number, trace) for path in paths for number, trace in _read_all_of(path)]
        names = unique_names(_trace_name(path, number) for path, number, _ in entries)
        self._sources = {
            name: (path, number or 1)
            for name, (path, number, _) in zip(names, entries, strict=True)
        }
        self._infos = [
            _trace_info(name, trace) for name, (_, _, trace) in zip(names, entries, strict=True)
        ]

    def list(self) -> list[dict[str, str]]:
        """Return name, title and model of each trace."""
        return self._infos

    def read(self, name: str) -> dict[str, Any]:
        """Return a trace for the page, or raise 404."""
        if name not in self._sources:
            known = ", ".join(map(repr, list(self._sources)[:MAX_LISTED_NAMES])) or "none"
            raise HTTPException(404, f"no trace is named {name!r}; available: {known}")
        path, number = self._sources[name]
        try:
            return _to_page(parse_trace(read_trace_text(path), number))
        except RegardError as error:
            message = f"the trace {name!r} cannot be read at the moment: {error}"
            raise HTTPException(404, message) from error


def open_upload(data: bytes, number: int = 1, limits: ExplorerLimits = LIMITS) -> dict[str, Any]:
    """Return one trace of an uploaded file for the page; traces are numbered from 1."""
    with _http_errors():
        return _to_page(parse_trace(_decode(data, limits), number, limits))


def list_upload(data: bytes, limits: ExplorerLimits = LIMITS) -> list[dict[str, str]]:
    """Return number (as the name), title and model of each trace of an uploaded file."""
    with _http_errors():
        traces = parse_traces(_decode(data, limits), limits)
        return [_trace_info(str(number), trace) for number, trace in enumerate(traces, 1)]


def parse_traces(text: str, limits: ExplorerLimits = LIMITS) -> list[Trace]:
    """Return all traces of a file's text."""
    documents = _split_documents(text, limits)
    return [_parse_document(documents, number) for number in range(1, len(documents) + 1)]


def parse_trace(text: str, number: int, limits: ExplorerLimits = LIMITS) -> Trace:
    """Return one trace of a file's text; traces are numbered from 1."""
    documents = _split_documents(text, limits)
    if number > len(documents):
        raise RegardError(f"trace {number} does not exist: the file has {len(documents)}")
    return _parse_document(documents, number)


def _split_documents(text: str, limits: ExplorerLimits) -> list[str]:
    """Return the JSON documents: one per line if the first line is one, else the whole text."""
    # only "\n" ends a line: JSON strings may contain the other characters of str.splitlines()
    lines = [line for line in text.split("\n") if line.strip()]
    if len(lines) < 2 or not _is_json(lines[0]):
        return [text]
    max_traces = limits.max_traces_per_file
    if len(lines) > max_traces or len(text) > MAX_JSONL_CHARACTERS:
        raise RegardError(
            f"a file may hold at most {max_traces} traces with {MAX_JSONL_CHARACTERS} characters "
            f"in total, but this one holds {len(lines)} with {len(text)}; split the file"
        )
    return lines


def _is_json(line: str) -> bool:
    try:
        parse_json(line, "a line", surrogates=True)
    except RegardError:
        return False
    return True


def _parse_document(documents: list[str], number: int) -> Trace:
    try:
        return Trace.from_json(documents[number - 1])
    except RegardError as error:
        prefix = f"trace {number} of {len(documents)}: " if len(documents) > 1 else ""
        raise RegardError(f"{prefix}{error}") from error


@contextmanager
def _http_errors() -> Iterator[None]:
    """Turn the errors of a malformed upload into 422."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise HTTPException(422, "a trace must be UTF-8 text, but these bytes are not") from error
    except RegardError as error:
        raise HTTPException(422, str(error)) from error
    except (ValueError, RecursionError) as error:  # e.g. a number of 5,000 digits, deep nesting
        raise HTTPException(422, f"a trace must be JSON that can be parsed: {error}") from error


def _to_page(trace: Trace) -> dict[str, Any]:
    """Return what the page draws; reject a trace whose parts are inconsistent."""
    try:
        return page_payload(trace)
    except (ValueError, TypeError, KeyError, IndexError, OverflowError) as error:
        raise RegardError(f"the trace cannot be drawn: {error}") from error


def _decode(data: bytes, limits: ExplorerLimits) -> str:
    return _decompress(data, limits.max_trace_bytes).decode("utf-8")


def _decompress(data: bytes, max_bytes: int) -> bytes:
    """Decompress gzipped data; stop at the limit, so that no zip bomb fills the memory."""
    if data[:2] != b"\x1f\x8b":
        return data
    decompressor = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        content = decompressor.decompress(data, max_bytes + 1)
    except zlib.error as error:
        raise HTTPException(422, f"the trace cannot be decompressed: {error}") from error
    if len(content) > max_bytes:
        raise HTTPException(413, f"a trace must have at most {max_bytes} bytes when decompressed")
    if not decompressor.eof:
        raise HTTPException(422, "the compressed trace is truncated")
    if decompressor.unused_data.strip(b"\0"):
        raise HTTPException(422, "the compressed trace has more bytes after its end")
    return content


def _read_all_of(path: Path) -> list[tuple[int | None, Trace]]:
    """Return the traces of a file, numbered if there are several."""
    text = read_trace_text(path)
    try:
        traces = parse_traces(text)
    except RegardError as error:
        raise RegardError(f"{path}: {error}") from error
    return list(enumerate(traces, 1)) if len(traces) > 1 else [(None, traces[0])]


def _trace_name(path: Path, number: int | None) -> str:
    name = path.name.removesuffix(".gz").removesuffix(".json").removesuffix(".jsonl")
    return name if number is None else f"{name} {number}"


def _trace_info(name: str, trace: Trace) -> dict[str, str]:
    return {"name": name, "title": trace.title, "model": trace.model}


def find_gold_alignment(language: str | None, source: str, target: str) -> WordSpans | None:
    """Return words and links of a pair if the phrasebook of that language contains it."""
    if language is None:
        return None
    with _PHRASEBOOK_LOCK:
        pair = _pairs_by_text(language).get((source, target))
    return None if pair is None else pair.word_spans()


def preload_phrasebooks(languages: Iterable[str | None]) -> Thread:
    """Load phrasebooks in a background thread: the first request need not wait for a second."""
    known = sorted({language for language in languages if language})
    thread = Thread(
        target=lambda: [find_gold_alignment(language, "", "") for language in known], daemon=True
    )
    thread.start()
    return thread


@cache
def _pairs_by_text(language: str) -> dict[tuple[str, str], AlignedPair]:
    book = load_phrasebook(cast(Language, language))
    return {(pair.source, pair.target): pair for split in book for pair in split}
