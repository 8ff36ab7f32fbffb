"""The training log: a JSON object per line, each with a checksum keyed by the id of the run.

The log is appended to, so a killed process may leave an incomplete last line, and nothing else. A
finished run's last line has a "stop_reason": a log without it was truncated.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from regard._support import checksums
from regard._support.reading import read_bounded
from regard._support.text import shorten
from regard.errors import RegardError

MAX_BYTES = 1 << 30  # some 7 million lines
DIGITS = 16  # of a line's checksum
END = "stop_reason"  # member of the last line of a finished run


def format_line(entry: Mapping[str, Any], run_id: str) -> str:
    """Return the line of an entry, with its checksum and its newline."""
    return checksums.dumps(entry, key=run_id, digits=DIGITS)


def parse_line(line: bytes, run_id: str) -> dict[str, Any]:
    """Return the entry of a line with its newline.

    Raises:
        ChecksumError: if a byte was changed, or the line is of another run.
    """
    try:
        entry = checksums.loads(line, key=run_id, digits=DIGITS)
    except RegardError as error:
        raise checksums.ChecksumError(str(error)) from error
    step = entry.get("step")
    if type(step) is not int or step < 0:
        raise checksums.ChecksumError(f"its step must be a number, but it is {shorten(step)}")
    return entry


def is_in_order(entries: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether steps never fall, no entry is repeated and none follows the end."""
    keys = [(entry["step"], *entry) for entry in entries]
    steps = [entry["step"] for entry in entries]
    has_early_end = any(END in entry for entry in entries[:-1])
    return steps == sorted(steps) and len({*keys}) == len(keys) and not has_early_end


class LogContent(NamedTuple):
    """What is left of a log."""

    entries: list[dict[str, Any]]
    damaged_lines: list[int]  # counted from 1
    has_torn_end: bool  # the last line has no newline


def read_content(path: Path, run_id: str) -> LogContent:
    """Read a log and verify every line; a log that does not exist is empty."""
    try:
        lines = read_bounded(path, MAX_BYTES).splitlines(keepends=True) if path.exists() else []
    except OSError as error:
        raise RegardError(f"{path} cannot be read: {error.strerror}") from error
    has_torn_end = bool(lines) and not lines[-1].endswith(b"\n")
    entries, damaged_lines = [], []
    for number, line in enumerate(lines[:-1] if has_torn_end else lines, start=1):
        try:
            entries.append(parse_line(line, run_id))
        except checksums.ChecksumError:
            damaged_lines.append(number)
    return LogContent(entries, damaged_lines, has_torn_end)
