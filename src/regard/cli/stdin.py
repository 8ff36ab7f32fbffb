"""Lines of stdin as they arrive, without waiting for a full buffer."""

import os
import sys
from collections.abc import Iterator
from io import BytesIO, UnsupportedOperation
from typing import IO

from regard._support.encoding import strip_byte_order_mark
from regard._support.reading import MAX_LINE_BYTES, line_too_long
from regard.errors import RegardError

READ_BYTES = 1 << 16  # per read, at most


def open_stdin() -> IO[bytes]:
    """Return the binary stdin; raise if it is closed."""
    if sys.stdin is None:
        raise RegardError("there are no sentences to translate, and stdin is closed")
    return sys.stdin.buffer


def read_available_lines(
    file: IO[bytes] | BytesIO, read_bytes: int = READ_BYTES
) -> Iterator[list[str]]:
    """Yield the complete lines that each read returns, until end of file.

    A program that writes one line and waits gets its answer, and a long file is read block by
    block. Lines end at line feeds alone.

    Raises:
        RegardError: if a line is longer than 1 MiB or is not UTF-8.
    """
    rest, count = b"", 0
    while block := _read(file, read_bytes):
        *complete, rest = (rest + block).split(b"\n")
        if complete:
            yield [_decode(line, count + n) for n, line in enumerate(complete, 1)]
            count += len(complete)
        if len(rest) > MAX_LINE_BYTES:
            raise line_too_long("stdin", count + 1)
    if rest:
        yield [_decode(rest, count + 1)]


def _read(file: IO[bytes] | BytesIO, size: int) -> bytes:
    try:
        return os.read(file.fileno(), size)  # returns what is there, without waiting for more
    except UnsupportedOperation:  # not a real file
        return file.read(size)


def _decode(line: bytes, line_number: int) -> str:
    if line_number == 1:
        line = strip_byte_order_mark(line, "stdin")
    try:
        return line.removesuffix(b"\r").decode("utf-8")
    except UnicodeDecodeError as error:
        raise RegardError(f"stdin must be UTF-8, but line {line_number} is not") from error
