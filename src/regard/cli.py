"""The command: what `regard` does, one verb per function."""

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from regard import __version__
from regard.errors import RegardError


class _Verbs(TyperGroup):
    """The verbs; what a user can repair is said in one line, without a traceback."""

    def invoke(self, ctx: Any) -> Any:  # typer's own or click's context, by version
        try:
            return super().invoke(ctx)
        except RegardError as error:
            typer.echo(f"regard: {error}", err=True)
            raise typer.Exit(1) from error


app = typer.Typer(
    cls=_Verbs,
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
        typer.Option("--version", callback=_show_version, is_eager=True, help="Say the version."),
    ] = False,
) -> None:
    """Attention you can use, train and see."""


# Each verb imports what it needs itself: help must not wait for torch.
@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Where to save the picture.")] = Path("demo.png"),
) -> None:
    """Show attention at work on five words, and save the picture of it."""
    from regard.demo import demo as show

    show(out, typer.echo)
