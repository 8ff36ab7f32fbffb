"""Lines as they come: what one read brings is handed on at once, in order."""

import os
import sys
from codecs import BOM_UTF8
from collections.abc import Iterator
from io import BytesIO, UnsupportedOperation
from typing import IO

from regard.errors import RegardError

BLOCK = 1 << 16  # bytes read at a time, at most


def standard_input() -> IO[bytes]:
    """Give what is piped in or typed, unless it is closed."""
    if sys.stdin is None:
        raise RegardError("there are no sentences to translate, and stdin is closed")
    return sys.stdin.buffer


def chunks(file: IO[bytes] | BytesIO) -> Iterator[list[str]]:
    """Give the lines that have arrived, again and again, until the file ends.

    So a program that writes a line and waits gets its answer, and a long file is read block by
    block.
    """
    rest, number = b"", 0
    while block := _read(file):
        *whole, rest = (rest + block).split(b"\n")
        if whole:
            yield [_text(line, number + n) for n, line in enumerate(whole, 1)]
            number += len(whole)
    if rest:
        yield [_text(rest, number + 1)]


def _read(file: IO[bytes] | BytesIO) -> bytes:
    try:
        return os.read(file.fileno(), BLOCK)  # what is there, without waiting for more
    except UnsupportedOperation:  # not a real file
        return file.read(BLOCK)


def _text(line: bytes, number: int) -> str:
    if number == 1:
        line = line.removeprefix(BOM_UTF8)
    try:
        return line.removesuffix(b"\r").decode("utf-8")
    except UnicodeDecodeError as problem:
        raise RegardError(f"stdin must be UTF-8, but line {number} is not") from problem
