"""Bounded reading of files that others may have written.

Nothing is read because a file claims it: only regular files are read whole, up to a limit; a line
has a limit; compressed data may not expand beyond a multiple of the file's size. A pipe or device
is refused without waiting for it.
"""

import gzip
import os
import stat
import zlib
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE, BOM_UTF32_BE, BOM_UTF32_LE
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BufferedReader, BytesIO
from pathlib import Path
from typing import IO

from regard.errors import RegardError

MAX_LINE_BYTES = 1 << 20  # of a text file: some 170,000 words
# Text compresses to a third, very repetitive text to a fiftieth; zeros compress to a thousandth.
MAX_GZIP_RATIO = 100
MIN_GZIP_LIMIT = 1 << 20  # bytes that any compressed file may have when it is decompressed

GZIP_MAGIC = b"\x1f\x8b"
CHUNK_BYTES = 1 << 18

_KINDS: dict[Callable[[int], bool], str] = {
    stat.S_ISDIR: "a folder",
    stat.S_ISFIFO: "a pipe",
    stat.S_ISCHR: "a device",
    stat.S_ISBLK: "a device",
    stat.S_ISSOCK: "a socket",
}

# the mark of UTF-32 begins with that of UTF-16, so it is compared first
OTHER_ENCODINGS = {
    BOM_UTF32_LE: "utf-32",
    BOM_UTF32_BE: "utf-32",
    BOM_UTF16_LE: "utf-16",
    BOM_UTF16_BE: "utf-16",
}


@contextmanager
def open_regular(path: Path) -> Iterator[BufferedReader]:
    """Open a regular file for reading.

    Raises:
        RegardError: if it is a folder, pipe or device.
        OSError: if it cannot be opened.
    """
    _check_regular(path, path.stat().st_mode)
    # it may have been replaced by a pipe since: opening one would wait for a writer
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with os.fdopen(os.open(path, flags), "rb") as file:
        _check_regular(path, os.fstat(file.fileno()).st_mode)
        yield file


def _check_regular(path: Path, mode: int) -> None:
    if not stat.S_ISREG(mode):
        kind = next((kind for is_kind, kind in _KINDS.items() if is_kind(mode)), "something else")
        raise RegardError(f"{path} must be a file, but it is {kind}")


def read_bounded(path: Path, max_bytes: int) -> bytes:
    """Read a regular file of at most `max_bytes`.

    Raises:
        RegardError: if it is larger, or is not a regular file.
        OSError: if it cannot be read.
    """
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > max_bytes:
            raise RegardError(f"{path} must have at most {max_bytes:,} bytes, but it has {size:,}")
        data = file.read(size + 1)
    if len(data) > size:
        raise RegardError(f"{path} changed while it was read; read it again")
    return data


def decode_utf8(data: bytes, name: object) -> str:
    """Decode UTF-8.

    Raises:
        RegardError: if it is not, with the name of what it is.
    """
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RegardError(f"{name} must be UTF-8, but it is not, at byte {error.start}") from error


def bounded_lines(readline: Callable[[int], bytes], name: object) -> Iterator[bytes]:
    """Yield the lines of a file, which end at line feeds.

    Args:
        readline: method of the file, which reads a line, but at most as many bytes as its argument.
        name: what to call the file in errors.

    Raises:
        RegardError: if a line is longer than `MAX_LINE_BYTES`.
    """
    number = 0
    while line := readline(MAX_LINE_BYTES + 1):
        number += 1
        if len(line) > MAX_LINE_BYTES:
            raise line_too_long(name, number)
        yield line


def line_too_long(name: object, number: int) -> RegardError:
    """Return the error for a line that is longer than `MAX_LINE_BYTES`."""
    return RegardError(
        f"{name} must have lines of at most {MAX_LINE_BYTES:,} bytes, but line {number} is longer; "
        "is it text with one sentence per line?"
    )


class GzipReader:
    """A compressed file that may expand to a multiple of its size, and no further.

    Members that were concatenated are read one after the other, as gunzip does.

    Args:
        file: the compressed file.
        size: its size in bytes.
        name: what to call it in errors.

    Raises:
        RegardError: while reading, if it expands further or is damaged.
    """

    def __init__(self, file: IO[bytes] | BytesIO, size: int, name: object) -> None:
        self._file = gzip.GzipFile(fileobj=file, mode="rb")
        self._name = name
        self._limit = MIN_GZIP_LIMIT + MAX_GZIP_RATIO * size
        self._total = 0

    def readline(self, size: int) -> bytes:
        """Read a line, or at most `size` bytes of it."""
        with self._wrap_errors():
            return self._count(self._file.readline(size))

    def read(self, size: int) -> bytes:
        """Read at most `size` bytes."""
        with self._wrap_errors():
            return self._count(self._file.read(size))

    def _count(self, data: bytes) -> bytes:
        self._total += len(data)
        if self._total > self._limit:
            raise RegardError(
                f"{self._name} must decompress to at most {MAX_GZIP_RATIO} times its size, but it "
                "is larger; decompress it with gunzip, which has no limit"
            )
        return data

    @contextmanager
    def _wrap_errors(self) -> Iterator[None]:
        try:
            yield
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise RegardError(
                f"{self._name} must be a .gz file, but it is damaged: {_describe(error)}"
            ) from error


def _describe(error: Exception) -> str:
    return "it is truncated" if isinstance(error, EOFError) else str(error)


def decompress(data: bytes, name: object, max_bytes: int | None = None) -> bytes:
    """Decompress gzipped data, up to a multiple of its size and to `max_bytes`.

    Raises:
        RegardError: if it is larger or damaged.
    """
    reader = GzipReader(BytesIO(data), len(data), name)
    chunks, total = [], 0
    while chunk := reader.read(CHUNK_BYTES):
        chunks.append(chunk)
        total += len(chunk)
        if max_bytes is not None and total > max_bytes:
            raise RegardError(
                f"{name} must have at most {max_bytes:,} bytes when decompressed, but has more"
            )
    return b"".join(chunks)


def strip_byte_order_mark(line: bytes, name: object) -> bytes:
    """Remove the byte order mark of UTF-8 from the first line of a text.

    Args:
        line: the first line.
        name: what the line is from, for the message.

    Raises:
        RegardError: if the mark is that of UTF-16 or UTF-32.

    Example:
        >>> strip_byte_order_mark(b"\\xef\\xbb\\xbfa cat", "pairs.tsv")
        b'a cat'
    """
    for mark, encoding in OTHER_ENCODINGS.items():
        if line.startswith(mark):
            raise RegardError(
                f"{name} must be UTF-8, but it is {encoding.upper()}, by its byte order mark; "
                f"`iconv -f {encoding} -t utf-8` can convert it"
            )
    return line.removeprefix(BOM_UTF8)
