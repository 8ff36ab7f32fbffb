"""Traces in files: JSON, optionally compressed; never code."""

import gzip
import zlib
from io import BytesIO
from pathlib import Path

from regard.errors import RegardError
from regard.trace.record import Trace

# A small gzip file can decompress to any size, so there is a limit: 1 GiB.
MAX_DECOMPRESSED_BYTES = 2**30

_GZIP_MAGIC = b"\x1f\x8b"


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
        raise RegardError(f"cannot write {path}: {error.strerror}") from error


def load_trace(path: Path | str) -> Trace:
    """Read a trace from a file that `Trace.save` wrote.

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
    """Return the JSON text of a file, decompressed if need be."""
    try:
        data = path.read_bytes()
        if data.startswith(_GZIP_MAGIC):  # whatever the file is called
            data = _decompress(data, path)
        return data.decode("utf-8")
    except (EOFError, zlib.error, UnicodeDecodeError) as error:
        raise RegardError(
            f"{path} is not a trace, or it is truncated: it cannot be decoded ({error})"
        ) from error
    except OSError as error:
        raise RegardError(f"cannot read {path}: {error.strerror or error}") from error


def _decompress(data: bytes, path: Path) -> bytes:
    with gzip.GzipFile(fileobj=BytesIO(data)) as file:
        text = file.read(MAX_DECOMPRESSED_BYTES + 1)
    if len(text) > MAX_DECOMPRESSED_BYTES:
        raise RegardError(
            f"{path} must decompress to at most {MAX_DECOMPRESSED_BYTES} bytes of JSON, but it is "
            "larger; decompress it with gunzip, which has no limit"
        )
    return text
