"""Traces from files: those named at start, and those that are dropped on the page."""

import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from regard.errors import RegardError
from regard.explorer.limits import LIMITS, Limits
from regard.explorer.refused import Refused
from regard.explorer.shelf import distinct
from regard.pictures.page import fitted
from regard.trace import Trace, load_trace


class Saved:
    """The traces that were named at start, read when they are asked for."""

    def __init__(self, paths: Sequence[Path]) -> None:
        names = distinct(path.name.removesuffix(".gz").removesuffix(".json") for path in paths)
        self._paths = dict(zip(names, paths, strict=True))
        self._about = {name: _about(name, load_trace(path)) for name, path in self._paths.items()}

    def list(self) -> list[dict[str, str]]:
        """Tell the name, title and model of each."""
        return list(self._about.values())

    def read(self, name: str) -> dict[str, Any]:
        """Give a trace as JSON."""
        if name not in self._paths:
            known = ", ".join(map(repr, self._paths)) or "none"
            raise Refused(404, f"no trace is called {name!r}; the traces named at start: {known}")
        try:
            return _drawn(load_trace(self._paths[name]))
        except RegardError as problem:
            raise Refused(404, f"the trace {name!r} cannot be read now: {problem}") from problem


def opened(data: bytes, limits: Limits = LIMITS) -> dict[str, Any]:
    """Read a trace that was sent, packed or not; nothing of it is kept."""
    try:
        return _drawn(Trace.from_json(_unpacked(data, limits).decode("utf-8")))
    except UnicodeDecodeError as problem:
        raise Refused(422, "a trace must be text in UTF-8, but these bytes are not") from problem
    except RegardError as problem:
        raise Refused(422, str(problem)) from problem
    except (ValueError, RecursionError) as problem:  # a number or a nesting without end
        raise Refused(422, f"a trace must be JSON that can be read: {problem}") from problem


def _drawn(trace: Trace) -> dict[str, Any]:
    """Give what the page draws; a trace whose parts make no sense together is refused."""
    try:
        return fitted(trace)
    except (ValueError, TypeError, KeyError, IndexError, OverflowError) as problem:
        raise RegardError(f"the trace cannot be drawn: {problem}") from problem


def _unpacked(data: bytes, limits: Limits) -> bytes:
    """Unpack what is compressed, but no more of it than a trace may have."""
    if data[:2] != b"\x1f\x8b":
        return data
    reader = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        text = reader.decompress(data, limits.trace + 1)
    except zlib.error as problem:
        raise Refused(422, f"the trace cannot be unpacked: {problem}") from problem
    if len(text) > limits.trace:
        raise Refused(413, f"a trace must have at most {limits.trace} bytes when it is unpacked")
    if not reader.eof:
        raise Refused(422, "the trace breaks off: it cannot be unpacked to its end")
    return text


def _about(name: str, trace: Trace) -> dict[str, str]:
    return {"name": name, "title": trace.title, "model": trace.model}
