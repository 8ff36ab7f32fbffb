"""How a command ends: one line for errors a user can fix, full disks and closed pipes.

Errors of the Python API name arguments and settings; here they are rewritten to name options.
"""

import os
import re
import signal
import sys
from codecs import lookup
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from errno import EIO
from io import TextIOWrapper
from types import FrameType
from typing import Any, TextIO

import typer
from typer.core import TyperCommand, TyperGroup

from regard._support.files import describe_os_error, is_disk_full
from regard._support.text import escape_control
from regard.errors import RegardError, SharedError

STDERR = 2


class OneLineErrorGroup(TyperGroup):
    """A command group that reports errors a user can fix in one line, without a traceback."""

    def main(self, *arguments: Any, **options: Any) -> Any:
        """Run the command line, with stdout and stderr able to encode any character."""
        _replace_closed_stdout()
        for stream in (sys.stdout, sys.stderr):
            _escape_unencodable(stream)
        with _exit_if_interrupted_in_import():
            return super().main(*arguments, **options)

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        """Parse the arguments, or print help."""
        with _report_errors():
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: Any) -> Any:  # typer's own context or click's, depending on the version
        """Run the command."""
        with _report_errors():
            return super().invoke(ctx)


class OptionNamingCommand(TyperCommand):
    """A command whose errors name the options that were typed, not arguments and settings."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except RegardError as error:
            options = {
                str(param.name): max(param.opts, key=len)
                for param in self.params
                if param.param_type_name == "option"
            }
            typed = {
                name
                for name in options
                if getattr(ctx.get_parameter_source(name), "name", "") == "COMMANDLINE"
            }
            for assignment in ctx.params.get("changes") or []:  # --set names settings itself
                typed.discard(assignment.partition("=")[0].partition(".")[2].strip())
            kind = SharedError if isinstance(error, SharedError) else RegardError
            raise kind(name_options(str(error), options, typed)) from error


def name_options(message: str, options: Mapping[str, str], typed: Collection[str]) -> str:
    """Rewrite an error of the Python API in terms of the command line.

    Args:
        message: the error. It refers to an argument as `name=`, or begins with the name of the
            argument or setting that is out of range.
        options: the options of the command by name of the argument.
        typed: the arguments whose options were given. A setting of the same name may also come
            from a file or from the run, so it is an option's only if that was given.

    Example:
        >>> options = {"beam_size": "--beam-size", "sample": "--sample"}
        >>> name_options("search.beam_size must be 1 or more", options, {"beam_size"})
        '--beam-size must be 1 or more'
        >>> name_options("search.beam_size must be 1 or more", options, ())
        'search.beam_size must be 1 or more'
        >>> name_options("give sample=, too", options, ())
        'give --sample, too'
        >>> name_options("use engine='torch'", {"engine": "--engine"}, ())
        'use --engine torch'
    """
    for name, option in options.items():
        message = re.sub(rf"(?<![\w.-]){name}='(\w+)'", rf"{option} \1", message)
        message = re.sub(rf"(?<![\w.-]){name}=(?=\W|$)", option, message)
        message = re.sub(rf"(?<![\w.-]){name}=(?=\w)", f"{option} ", message)
        if name in typed:
            message = re.sub(rf"^((data|model|train|search)\.)?{name}(?= )", option, message)
    return message


def _replace_closed_stdout() -> None:
    """Discard the output if the caller has closed stdout, as `print` does then."""
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")


def _escape_unencodable(stream: TextIO | None) -> None:
    """Make a stream escape characters that its encoding lacks, as in Latin-1."""
    if not isinstance(stream, TextIOWrapper):  # closed, or replaced by the caller
        return
    escaped = stream.errors == "surrogateescape" and lookup(stream.encoding).name != "utf-8"
    if escaped or stream.errors == "strict":
        stream.reconfigure(errors="backslashreplace")


@contextmanager
def _exit_if_interrupted_in_import() -> Iterator[None]:
    """Let Ctrl-C end the process at once while a module is imported.

    Extension modules may swallow the exception and stay half imported: torch does so with NumPy,
    which then fails with a RecursionError. Nothing has begun that would have to be cleaned up.
    """

    def interrupt(number: int, frame: FrameType | None) -> None:
        caller = frame
        while caller is not None:
            if caller.f_code.co_filename.startswith("<frozen importlib"):
                with suppress(OSError):  # stderr may be closed
                    os.write(STDERR, b"regard: interrupted\n")
                os._exit(128 + number)
            caller = caller.f_back
        raise KeyboardInterrupt

    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield  # ignored, as in a background job, or handled by the caller
        return
    try:
        signal.signal(signal.SIGINT, interrupt)
    except ValueError:  # only the main thread may set handlers
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def _report_errors() -> Iterator[None]:
    """Turn errors that a user can fix into one line on stderr and exit code 1."""
    try:
        yield
    except RegardError as error:
        is_first = os.environ.get("LOCAL_RANK", "0") == "0"  # of the processes on this host
        if isinstance(error, SharedError) and not is_first:
            raise typer.Exit(1) from error
        raise _exit_with(str(error)) from error
    except BrokenPipeError:  # the reader of the output, such as `head`, has closed it
        _discard_output()
        raise typer.Exit(0) from None
    except OSError as error:
        if not is_disk_full(error) and (error.errno != EIO or error.filename is not None):
            raise
        _discard_output()
        path = "the output" if error.filename is None else error.filename
        raise _exit_with(f"cannot write {path}: {describe_os_error(error)}") from error
    except (MemoryError, RuntimeError) as error:
        if not _is_out_of_memory(error):
            raise
        raise _exit_with("out of memory; use a smaller batch, model or input") from error
    except Exception as error:
        _escape_usage_error(error)
        raise


def _escape_usage_error(error: Exception) -> None:
    """Escape control characters of arguments, which may be names of files, in click's errors."""
    message = getattr(error, "message", None)
    if hasattr(error, "format_message") and isinstance(message, str):
        error.message = escape_control(message, keep="\n")  # type: ignore[attr-defined]


def _exit_with(message: str) -> typer.Exit:
    typer.echo(f"regard: {escape_control(message)}", err=True)
    return typer.Exit(1)


def _discard_output() -> None:
    """Redirect stdout to the null device: Python would retry the write at exit, and complain."""
    with suppress(OSError, ValueError, AttributeError):  # stdout may not be a real file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _is_out_of_memory(error: Exception) -> bool:
    """Return whether memory ran out; torch raises a plain RuntimeError for it on the CPU."""
    phrases = ("allocate memory", "not enough memory", "out of memory")
    return isinstance(error, MemoryError) or any(phrase in str(error) for phrase in phrases)
