"""The traces of one file: one in all, or one a line, as `regard translate --traces` writes them."""

import json

from regard.errors import RegardError
from regard.explorer.limits import LIMITS, Limits
from regard.trace import Trace

LARGEST = 1 << 26  # characters of a file that holds several


def traces(text: str, limits: Limits = LIMITS) -> list[Trace]:
    """Read all traces of a file."""
    lines = _lines(text, limits)
    return [_read(lines, number) for number in range(1, len(lines) + 1)]


def trace(text: str, number: int, limits: Limits = LIMITS) -> Trace:
    """Read one trace of a file; they are counted from 1."""
    lines = _lines(text, limits)
    if number > len(lines):
        raise RegardError(f"trace {number} is wanted, but the file has {len(lines)}")
    return _read(lines, number)


def _lines(text: str, limits: Limits) -> list[str]:
    """Give the JSON of each trace; what is spread over several lines is one trace."""
    # no other sign ends a line: JSON may hold those that Python would split at
    lines = [line for line in text.split("\n") if line.strip()]
    if len(lines) < 2 or not _is_whole(lines[0]):
        return [text]
    if len(lines) > limits.max_traces_per_file or len(text) > LARGEST:
        raise RegardError(
            f"a file may hold {limits.max_traces_per_file} traces of {LARGEST} characters "
            f"together, but this one holds {len(lines)} of {len(text)}; split the file"
        )
    return lines


def _is_whole(line: str) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _read(lines: list[str], number: int) -> Trace:
    try:
        return Trace.from_json(lines[number - 1])
    except RegardError as problem:
        where = f"trace {number} of {len(lines)}: " if len(lines) > 1 else ""
        raise RegardError(f"{where}{problem}") from problem
