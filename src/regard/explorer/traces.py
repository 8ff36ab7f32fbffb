"""Traces from files: those named at start, and those that are dropped on the page."""

import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from regard.errors import RegardError
from regard.explorer import trace_files
from regard.explorer.errors import Refused
from regard.explorer.limits import LIMITS, Limits
from regard.explorer.runs import distinct
from regard.trace import Trace, read_trace_text
from regard.viz.page import page_payload

KNOWN = 20  # names in a sentence


class Saved:
    """The traces that were named at start, read when they are asked for."""

    def __init__(self, paths: Sequence[Path]) -> None:
        found = [(path, number, trace) for path in paths for number, trace in _all(path)]
        names = distinct(_name(path, number) for path, number, _ in found)
        self._places = {
            name: (path, number or 1) for name, (path, number, _) in zip(names, found, strict=True)
        }
        self._about = [
            _about(name, trace) for name, (_, _, trace) in zip(names, found, strict=True)
        ]

    def list(self) -> list[dict[str, str]]:
        """Tell the name, title and model of each."""
        return self._about

    def read(self, name: str) -> dict[str, Any]:
        """Give a trace as JSON."""
        if name not in self._places:
            known = ", ".join(map(repr, list(self._places)[:KNOWN])) or "none"
            raise Refused(404, f"no trace is called {name!r}; the traces named at start: {known}")
        path, number = self._places[name]
        try:
            return _drawn(trace_files.trace(read_trace_text(path), number))
        except RegardError as problem:
            raise Refused(404, f"the trace {name!r} cannot be read now: {problem}") from problem


def opened(data: bytes, number: int = 1, limits: Limits = LIMITS) -> dict[str, Any]:
    """Read a trace of a file that was sent, packed or not; nothing of it is kept."""
    with _refusing():
        return _drawn(trace_files.trace(_text(data, limits), number, limits))


def contents(data: bytes, limits: Limits = LIMITS) -> list[dict[str, str]]:
    """Tell the title and model of each trace of a file that was sent; their names are numbers."""
    with _refusing():
        found = trace_files.traces(_text(data, limits), limits)
        return [_about(str(number), trace) for number, trace in enumerate(found, 1)]


@contextmanager
def _refusing() -> Iterator[None]:
    """Say in a sentence why something sent is no trace."""
    try:
        yield
    except UnicodeDecodeError as problem:
        raise Refused(422, "a trace must be text in UTF-8, but these bytes are not") from problem
    except RegardError as problem:
        raise Refused(422, str(problem)) from problem
    except (ValueError, RecursionError) as problem:  # a number or a nesting without end
        raise Refused(422, f"a trace must be JSON that can be read: {problem}") from problem


def _drawn(trace: Trace) -> dict[str, Any]:
    """Give what the page draws; a trace whose parts make no sense together is refused."""
    try:
        return page_payload(trace)
    except (ValueError, TypeError, KeyError, IndexError, OverflowError) as problem:
        raise RegardError(f"the trace cannot be drawn: {problem}") from problem


def _text(data: bytes, limits: Limits) -> str:
    return _unpacked(data, limits).decode("utf-8")


def _unpacked(data: bytes, limits: Limits) -> bytes:
    """Unpack what is compressed, but no more of it than a trace may have."""
    if data[:2] != b"\x1f\x8b":
        return data
    reader = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        text = reader.decompress(data, limits.max_trace_bytes + 1)
    except zlib.error as problem:
        raise Refused(422, f"the trace cannot be unpacked: {problem}") from problem
    if len(text) > limits.max_trace_bytes:
        raise Refused(
            413, f"a trace must have at most {limits.max_trace_bytes} bytes when it is unpacked"
        )
    if not reader.eof:
        raise Refused(422, "the trace breaks off: it cannot be unpacked to its end")
    return text


def _all(path: Path) -> list[tuple[int | None, Trace]]:
    """Give the traces of a file, numbered if they are several."""
    text = read_trace_text(path)
    try:
        found = trace_files.traces(text)
    except RegardError as problem:
        raise RegardError(f"{path}: {problem}") from problem
    return list(enumerate(found, 1)) if len(found) > 1 else [(None, found[0])]


def _name(path: Path, number: int | None) -> str:
    name = path.name.removesuffix(".gz").removesuffix(".json").removesuffix(".jsonl")
    return name if number is None else f"{name} {number}"


def _about(name: str, trace: Trace) -> dict[str, str]:
    return {"name": name, "title": trace.title, "model": trace.model}
