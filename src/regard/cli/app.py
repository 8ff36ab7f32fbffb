"""The `regard` command group, the options that commands share, and interruption."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Annotated, TextIO, cast

import typer

from regard import __version__
from regard._support.text import escape_control, escape_drawing
from regard.cli.errors import OneLineErrorGroup, OptionNamingCommand

# Idle OpenMP threads sleep instead of spinning: while another process is busy, a spinning thread
# takes the core from the thread that it waits for. OpenMP reads this when torch is imported.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


app = typer.Typer(
    cls=OneLineErrorGroup,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    epilog='Try: regard look demo-model "The white cat broke the cup."',
    context_settings={"help_option_names": ["-h", "--help"]},
)
command = partial(app.command, cls=OptionNamingCommand)


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
RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder, or demo-model.")]
BeamSize = Annotated[
    int | None, typer.Option("--beam-size", help="Beam size; 1 is greedy. Default: the run's own.")
]
LengthPenalty = Annotated[
    float | None,
    typer.Option(
        "--length-penalty",
        help="Larger values favour longer translations. Default: the run's own.",
    ),
]

EngineOption = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="[auto|torch|ctranslate2]",
        help="Engine; auto uses CTranslate2 if it is installed and supports the model.",
    ),
]
Quantization = Annotated[
    str | None,
    typer.Option(
        "--quantization", metavar="[float32|int8|…]", help="Of CTranslate2. Default: float32."
    ),
]
Verbose = Annotated[
    bool, typer.Option("--verbose", help="Report which engine translates, and why.")
]


def echo(text: str) -> None:
    """Print text that may come from a file or a path: control characters are escaped."""
    typer.echo(escape_control(text, keep="\n"))


def echo_drawing(text: str) -> None:
    """Print text as `echo` does, with the colours of pictures."""
    typer.echo(escape_drawing(text))


@contextmanager
def interruptible() -> Iterator[None]:
    """Report an interrupted command that can be resumed in one line; ignore a closed stderr."""
    from regard._support.progress import IgnoreBrokenPipe
    from regard.training import Interrupted

    try:
        with redirect_stderr(cast(TextIO, IgnoreBrokenPipe(sys.stderr or StringIO()))):
            yield
    except Interrupted as stop:
        typer.echo(f"regard: {escape_control(str(stop))}", err=True)
        raise typer.Exit(130) from None
    except KeyboardInterrupt:  # before the first step, or after the last one
        typer.echo("regard: interrupted; run the same command to resume", err=True)
        raise typer.Exit(130) from None
