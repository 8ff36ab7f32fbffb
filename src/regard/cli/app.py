"""The `regard` command group, the options that commands share, and interruption."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from io import StringIO
from pathlib import Path
from typing import Annotated, TextIO, cast

import typer

from regard import __version__
from regard.cli.errors import OneLineErrorGroup

# Idle OpenMP threads sleep instead of spinning: beside another busy process, spinning takes the
# core from the thread that is being waited for. OpenMP reads this when torch is imported.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


app = typer.Typer(
    cls=OneLineErrorGroup,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> bool:
    if wanted:
        typer.echo(f"regard {__version__}")
        raise typer.Exit
    return wanted


@app.callback()
def regard(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Attention you can use, train and see."""


Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="SECTION.KEY=VALUE", help="Override a setting; repeatable."),
]
RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")]
BeamSize = Annotated[
    int | None, typer.Option("--beam-size", help="Beam size; 1 is greedy. Default: the run's own.")
]


@contextmanager
def interruptible() -> Iterator[None]:
    """Report an interrupted training in one line; ignore a closed stderr."""
    from regard._support.progress import IgnoreBrokenPipe
    from regard.training import Interrupted

    try:
        with redirect_stderr(cast(TextIO, IgnoreBrokenPipe(sys.stderr or StringIO()))):
            yield
    except Interrupted as stop:
        typer.echo(f"regard: {stop}", err=True)
        raise typer.Exit(130) from None
