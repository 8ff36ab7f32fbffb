"""How a command ends: one line for errors a user can fix, full disks and closed pipes."""

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


class OneLineErrorGroup(TyperGroup):
    """A command group that reports errors a user can fix in one line, without a traceback."""

    def main(self, *arguments: Any, **options: Any) -> Any:
        """Run the command line, with stdout and stderr able to encode any character."""
        for stream in (sys.stdout, sys.stderr):
            _escape_unencodable(stream)
        return super().main(*arguments, **options)

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        """Parse the arguments, or print help."""
        with _report_errors():
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: Any) -> Any:  # typer's own context or click's, depending on the version
        """Run the command."""
        with _report_errors():
            return super().invoke(ctx)


def _escape_unencodable(stream: TextIO | None) -> None:
    """Make a stream escape characters that its encoding lacks, as in Latin-1."""
    if not isinstance(stream, TextIOWrapper):  # closed, or replaced by the caller
        return
    escaped = stream.errors == "surrogateescape" and lookup(stream.encoding).name != "utf-8"
    if escaped or stream.errors == "strict":
        stream.reconfigure(errors="backslashreplace")


@contextmanager
def _report_errors() -> Iterator[None]:
    """Turn errors that a user can fix into one line on stderr and exit code 1."""
    try:
        yield
    except RegardError as error:
        raise _exit_with(str(error)) from error
    except BrokenPipeError:  # the reader of the output, such as `head`, has closed it
        _discard_output()
        raise typer.Exit(0) from None
    except OSError as error:
        if error.errno not in (ENOSPC, EDQUOT, EIO) or error.filename is not None:
            raise
        _discard_output()
        raise _exit_with(f"cannot write the output: {error.strerror}") from error
    except (MemoryError, RuntimeError) as error:
        if not _is_out_of_memory(error):
            raise
        raise _exit_with("out of memory; use a smaller batch, model or input") from error


def _exit_with(message: str) -> typer.Exit:
    typer.echo(f"regard: {message}", err=True)
    return typer.Exit(1)


def _discard_output() -> None:
    """Redirect stdout to the null device: Python would retry the write at exit, and complain."""
    with suppress(OSError, ValueError, AttributeError):  # stdout may not be a real file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _is_out_of_memory(error: Exception) -> bool:
    """Return whether memory ran out; torch raises a plain RuntimeError for it on the CPU."""
    phrases = ("allocate memory", "not enough memory", "out of memory")
    return isinstance(error, MemoryError) or any(phrase in str(error) for phrase in phrases)
