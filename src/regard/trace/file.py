"""Traces in files: JSON, optionally compressed; never code."""

import gzip
from pathlib import Path

from regard._support.files import describe_os_error
from regard._support.reading import GZIP_MAGIC, decompress, read_bounded
from regard.errors import RegardError
from regard.trace.record import Trace

MAX_TRACE_BYTES = 2**30  # of a file, and of what it decompresses to


def save_trace(trace: Trace, path: Path) -> None:
    """Write a trace to a file, compressed with gzip if the name ends in .gz."""
    try:
        # A lone surrogate becomes an escape sequence, which is JSON for the same character.
        data = trace.to_json().encode("utf-8", errors="backslashreplace")
    except RegardError as error:
        raise RegardError(f"cannot write {path}: {error}") from error
    if path.suffix == ".gz":
        data = gzip.compress(data, mtime=0)  # equal traces give equal files
    try:
        path.write_bytes(data)
    except OSError as error:
        raise RegardError(f"cannot write {path}: {describe_os_error(error)}") from error


def load_trace(path: Path | str) -> Trace:
    """Read a trace from a file that `Trace.save` wrote.

    Args:
        path: the file.

    Returns:
        The trace.

    Raises:
        RegardError: if the file cannot be read, is no trace, or has another format version.

    Example:
        >>> load_trace("missing.json")
        Traceback (most recent call last):
            ...
        regard.errors.RegardError: cannot read missing.json: No such file or directory
    """
    path = Path(path)
    text = read_trace_text(path)
    try:
        return Trace.from_json(text)
    except RegardError as error:
        raise RegardError(f"{path}: {error}") from error


def read_trace_text(path: Path) -> str:
    """Return the JSON text of a file, decompressed if need be.

    Raises:
        RegardError: if it is not a regular file of UTF-8 text, or decompresses to more than a
            multiple of its size.
    """
    try:
        data = read_bounded(path, MAX_TRACE_BYTES)
    except OSError as error:
        raise RegardError(f"cannot read {path}: {error.strerror or error}") from error
    try:
        if data.startswith(GZIP_MAGIC):  # whatever the file is called
            data = decompress(data, path, MAX_TRACE_BYTES)
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RegardError(f"{path} is not a trace: it cannot be decoded ({error})") from error
