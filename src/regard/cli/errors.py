"""What ends a command, in one line: mistakes that a user can repair, full disks, closed pipes."""

import os
import sys
from codecs import lookup
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import EDQUOT, EIO, ENOSPC
from io import TextIOWrapper
from typing import Any, TextIO

import typer
from typer.core import TyperGroup

from regard.errors import RegardError


class Verbs(TyperGroup):
    """The verbs; what a user can repair is said in one line, without a traceback."""

    def main(self, *arguments: Any, **options: Any) -> Any:
        """Run the command, on streams that can write any letter."""
        for stream in (sys.stdout, sys.stderr):
            _spell_out(stream)
        return super().main(*arguments, **options)

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        """Read the arguments, and show help where it is wanted."""
        with _in_one_line():
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: Any) -> Any:  # typer's own or click's context, by version
        """Do what the verb says."""
        with _in_one_line():
            return super().invoke(ctx)


def _spell_out(stream: TextIO | None) -> None:
    """Let a stream spell out the letters that it cannot write, as in Latin-1."""
    if not isinstance(stream, TextIOWrapper):  # closed, or of somebody else
        return
    escaped = stream.errors == "surrogateescape" and lookup(stream.encoding).name != "utf-8"
    if escaped or stream.errors == "strict":
        stream.reconfigure(errors="backslashreplace")


@contextmanager
def _in_one_line() -> Iterator[None]:
    """Say in one line what went wrong, if it is something that a user can repair."""
    try:
        yield
    except RegardError as error:
        raise _failed(str(error)) from error
    except BrokenPipeError:  # whoever read the output has enough
        _discard_output()
        raise typer.Exit(0) from None
    except OSError as error:
        if error.errno not in (ENOSPC, EDQUOT, EIO) or error.filename is not None:
            raise
        _discard_output()
        raise _failed(f"cannot write the output: {error.strerror}") from error
    except (MemoryError, RuntimeError) as error:
        if not _is_shortage(error):
            raise
        raise _failed("there is not enough memory for this; less at a time would do") from error


def _failed(sentence: str) -> typer.Exit:
    typer.echo(f"regard: {sentence}", err=True)
    return typer.Exit(1)


def _discard_output() -> None:
    """Drop what is still to be written: at its end Python would try again, and complain."""
    with suppress(OSError, ValueError, AttributeError):  # where stdout is no file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _is_shortage(error: Exception) -> bool:
    """Tell whether there was too little memory; torch has no name for that error."""
    told = ("allocate memory", "not enough memory", "out of memory")
    return isinstance(error, MemoryError) or any(words in str(error) for words in told)
