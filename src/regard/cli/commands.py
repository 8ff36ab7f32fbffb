"""The command: what `regard` does, one verb per function."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr
from io import StringIO
from pathlib import Path
from typing import Annotated, Any, TextIO, cast

import typer

from regard import __version__
from regard.cli.errors import Verbs
from regard.errors import RegardError, unknown_name

# Threads that wait shall sleep, not spin: where another program computes too, spinning takes the
# processor from the very thread that is waited for. Read by OpenMP when torch is imported.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


app = typer.Typer(
    cls=Verbs,
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


Sets = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="SECTION.KEY=VALUE", help="Change a setting; may be repeated."),
]
RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")]
Beams = Annotated[int | None, typer.Option("--beam", help="Beams; the run's own by default.")]


# Each verb imports what it needs itself: help must not wait for torch.
@app.command()
def train(
    pairs: Annotated[
        list[Path],
        typer.Argument(help="A TSV file (source, tab, target) or two parallel files; .gz or not."),
    ],
    out: Annotated[Path, typer.Option(help="The run folder; a run that is there goes on.")],
    valid: Annotated[
        list[Path] | None,
        typer.Option(help="Pairs to validate with, in one file or, given twice, in two."),
    ] = None,
    alignments: Annotated[
        Path | None, typer.Option(help="Word alignments (0-0 1-2 …) to guide a head by.")
    ] = None,
    preset: Annotated[str | None, typer.Option(help="Settings by name.")] = None,
    settings: Annotated[Path | None, typer.Option(help="Settings in a TOML file.")] = None,
    minutes: Annotated[float | None, typer.Option(help="A time box to plan for.")] = None,
    changes: Sets = None,
) -> None:
    """Train a translator on pairs of sentences, or go on where it stopped."""
    from regard.data.corpus import Corpus
    from regard.training import train as begin

    wanted = _changes(preset, settings, minutes, changes)
    if alignments is not None:
        wanted.insert(0, {"train": {"alignment_loss_weight": 0.05}})
    others = Corpus.of_files(valid) if valid else None
    with _interruptible():
        begin(Corpus.of_files(pairs, alignments), out, valid=others, changes=wanted)


def _changes(
    preset: str | None, settings: Path | None, minutes: float | None, changes: list[str] | None
) -> list[dict[str, Any]]:
    """Collect settings: a preset, a file, `--minutes`, then each `--set`, later ones winning."""
    from regard import config, presets

    wanted = []
    if preset is not None:
        wanted.append(presets.read(preset))
    if settings is not None:
        wanted.append(config.read(settings))
    if minutes is not None:
        wanted.append({"train": {"minutes": minutes}})
    return wanted + [config.parse(change) for change in changes or []]


@app.command()
def translate(
    run: RunArgument,
    sentences: Annotated[
        list[str] | None, typer.Argument(help="Sentences; none to read lines from stdin.")
    ] = None,
    beam: Beams = None,
    nbest: Annotated[int, typer.Option(help="Translations of each sentence.")] = 1,
    sample: Annotated[bool, typer.Option("--sample", help="Draw instead of search.")] = False,
    temperature: Annotated[float, typer.Option(help="Of --sample; lower is more cautious.")] = 1.0,
    seed: Annotated[int | None, typer.Option(help="Of --sample.")] = None,
    traces: Annotated[
        Path | None, typer.Option(help="Also write where the model looked, a line a sentence.")
    ] = None,
) -> None:
    """Translate sentences, or the lines of stdin, in their order."""
    from dataclasses import replace

    from regard._support import files
    from regard._support.progress import counted
    from regard.cli.stdin import chunks, standard_input
    from regard.decoding.translation import SamplingConfig, line, translate
    from regard.runs.run import load
    from regard.runs.tracing import note

    loaded = load(run)
    settings = replace(loaded.settings.search, **({} if beam is None else {"beams": beam}))
    chance = SamplingConfig(temperature, seed=seed) if sample else None
    if traces is not None:
        files.write(traces, "")
    batches = [sentences] if sentences else chunks(standard_input())
    for some in counted(batches, "sentences", size=len, shown=not sys.stdout.isatty()):
        found = translate(
            loaded.model, loaded.tokenizers, some, settings, nbest=nbest, chance=chance
        )
        for texts in found:
            typer.echo(line(texts))
        if traces is not None:
            note(traces, loaded, some, [texts[0] for texts in found])


@app.command()
def look(
    what: Annotated[
        list[str], typer.Argument(metavar="[RUN] TEXT", help="A run folder and a text; or a text.")
    ],
    hf: Annotated[
        str | None, typer.Option(metavar="MODEL", help="A Hugging Face model instead of a run.")
    ] = None,
    target: Annotated[str | None, typer.Option(help="What the run shall say.")] = None,
    kind: Annotated[str | None, typer.Option(help="encoder, decoder or cross.")] = None,
    layer: Annotated[int, typer.Option(help="From 0; -1 is the last.")] = 0,
    head: Annotated[int | None, typer.Option(help="From 0.")] = None,
    words: Annotated[bool, typer.Option(help="Merge pieces into words.")] = True,
    png: Annotated[Path | None, typer.Option(help="Write a picture.")] = None,
    svg: Annotated[Path | None, typer.Option(help="Write a drawing.")] = None,
    pdf: Annotated[Path | None, typer.Option(help="Write a drawing for print.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write a page with every head.")] = None,
) -> None:
    """Show where a model looks as it reads a text, here or in a file."""
    from regard.cli.look import Place, draw, of_hugging_face, of_run

    if len(what) != (2 if hf is None else 1):
        raise RegardError("look needs a run folder and a text, or --hf and a text; quote the text")
    text = what[-1]
    trace = of_run(Path(what[0]), text, target) if hf is None else of_hugging_face(hf, text)
    wanted = {"png": png, "svg": svg, "pdf": pdf, "html": html}
    paths = {format: path for format, path in wanted.items() if path is not None}
    typer.echo(draw(trace, Place(kind, layer, head), words, paths))


@app.command()
def score(
    run: RunArgument,
    source: Annotated[Path, typer.Argument(help="Sentences, one a line.")],
    reference: Annotated[Path, typer.Argument(help="Their translations.")],
    alignments: Annotated[
        Path | None, typer.Option(help="Word alignments (0-0 1-2 …) to compare with.")
    ] = None,
    beam: Beams = None,
) -> None:
    """Score a run: BLEU, chrF, perplexity, and errors of alignment."""
    from regard.evaluation.evaluate import report
    from regard.runs.run import load

    for line in report(load(run), source, reference, alignments, beam):
        typer.echo(line)


@app.command()
def doctor(
    pairs: Annotated[list[Path], typer.Argument(help="A TSV file or two parallel files.")],
    test: Annotated[
        list[Path] | None, typer.Option(help="Pairs that must not be among the others.")
    ] = None,
) -> None:
    """Examine pairs: what is odd, and what a training would leave out."""
    from regard.data.checks import examine

    for line in examine(pairs, test):
        typer.echo(line)


@app.command()
def presets(
    act: Annotated[str, typer.Argument(help="list, show or copy.")] = "list",
    name: Annotated[str, typer.Argument(help="Which one to show or copy.")] = "",
    to: Annotated[Path, typer.Option(help="Where to copy it to.")] = Path(),
) -> None:
    """List, show or copy settings that are known to work."""
    from regard import presets as known

    acts: dict[str, Callable[[], str]] = {
        "list": known.listing,
        "show": lambda: known.text(name).rstrip("\n"),
        "copy": lambda: f"copied to {known.copy(name, to)}",
    }
    if act not in acts:
        raise unknown_name("act of presets", act, acts)
    typer.echo(acts[act]())


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="The run folder.")] = Path("demo"),
    to: Annotated[str, typer.Option(help="fr for French, zh for Chinese.")] = "fr",
    model: Annotated[str, typer.Option(help="transformer or bahdanau.")] = "transformer",
    minutes: Annotated[float, typer.Option(help="How long to train.")] = 1.5,
) -> None:
    """Train a small translator, let it translate, and show where it looks."""
    from regard.demo.showcase import demo as show

    with _interruptible():
        show(out, to=to, model=model, minutes=minutes, say=typer.echo)


@app.command()
def explore(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[RUN …]", help="Run folders; none for the demo's model."),
    ] = None,
    trace: Annotated[
        list[Path] | None, typer.Option(help="A file of traces to show; may be repeated.")
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 for any free one.")] = 8765,
    host: Annotated[
        str, typer.Option(help="Another one than this machine alone needs a token.")
    ] = "127.0.0.1",
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
) -> None:
    """Type sentences and watch them being read, in a browser."""
    try:
        from regard.explorer.server import serve
    except ModuleNotFoundError as problem:
        if (problem.name or "").partition(".")[0] not in ("fastapi", "starlette", "uvicorn"):
            raise
        raise RegardError(
            "the explorer needs fastapi and uvicorn: pip install 'regard[explorer]'"
        ) from problem
    with _interruptible():
        serve(runs or [], trace or [], host, port, open_page=open_page, say=typer.echo)


@app.command()
def gallery(
    out: Annotated[Path, typer.Option(help="The folder of the site.")] = Path("gallery"),
    only: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A figure to draw; may be repeated.")
    ] = None,
    lang: Annotated[str | None, typer.Option(help="en or zh; both by default.")] = None,
) -> None:
    """Draw every figure of the chapter on attention, as an offline site."""
    from regard.gallery.site import build

    with _interruptible():
        typer.echo(build(out, only or (), lang))


@app.command()
def words(
    out: Annotated[Path, typer.Option(help="Where to save the picture.")] = Path("words.png"),
) -> None:
    """Show attention at work on five words, step by step."""
    from regard.demo.five_words import five_words

    five_words(out, typer.echo)


@contextmanager
def _interruptible() -> Iterator[None]:
    """Say in one line that a training was stopped; go on when nobody reads any more."""
    from regard._support.progress import Unheard
    from regard.training import Interrupted

    try:
        with redirect_stderr(cast(TextIO, Unheard(sys.stderr or StringIO()))):
            yield
    except Interrupted as stop:
        typer.echo(f"regard: {stop}", err=True)
        raise typer.Exit(130) from None
