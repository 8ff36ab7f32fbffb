"""The commands of `regard`: each reads its arguments, calls one function and prints."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from regard.cli.app import BeamSize, RunArgument, Settings, interruptible
from regard.cli.app import app as app
from regard.errors import RegardError, unknown_name


# Each command imports what it needs: importing torch takes seconds, which --help must not.
@app.command()
def train(
    pairs: Annotated[
        list[Path],
        typer.Argument(help="A TSV file (source, tab, target) or two parallel files; .gz or not."),
    ],
    out: Annotated[Path, typer.Option(help="Run folder; an existing run is resumed.")],
    valid: Annotated[
        list[Path] | None,
        typer.Option(help="Validation pairs: one TSV file or, given twice, two parallel files."),
    ] = None,
    alignments: Annotated[
        Path | None, typer.Option(help="Word alignments (0-0 1-2 …) for guided alignment.")
    ] = None,
    preset: Annotated[str | None, typer.Option(help="Preset; `regard presets` lists them.")] = None,
    settings: Annotated[Path | None, typer.Option(help="TOML file of settings.")] = None,
    minutes: Annotated[
        float | None, typer.Option(help="Time limit; the schedule is planned for it.")
    ] = None,
    changes: Settings = None,
) -> None:
    """Train a translator on sentence pairs, or resume a run."""
    from regard.training import train as train_run

    updates = _updates(preset, settings, minutes, changes)
    with interruptible():
        train_run(pairs, out, valid=valid or None, alignments=alignments, updates=updates)


def _updates(
    preset: str | None, settings: Path | None, minutes: float | None, assignments: list[str] | None
) -> list[dict[str, Any]]:
    """Collect settings: preset, file, `--minutes`, then each `--set`; later ones win."""
    from regard import config, presets

    updates = []
    if preset is not None:
        updates.append(presets.read(preset))
    if settings is not None:
        updates.append(config.read_toml(settings))
    if minutes is not None:
        updates.append({"train": {"minutes": minutes}})
    return updates + [config.parse_assignment(assignment) for assignment in assignments or []]


@app.command()
def translate(
    run: RunArgument,
    sentences: Annotated[
        list[str] | None, typer.Argument(help="Sentences; lines of stdin if none are given.")
    ] = None,
    beam_size: BeamSize = None,
    n_best: Annotated[int, typer.Option(help="Translations per sentence.")] = 1,
    sample: Annotated[bool, typer.Option("--sample", help="Sample instead of searching.")] = False,
    temperature: Annotated[float, typer.Option(help="Sampling temperature.")] = 1.0,
    seed: Annotated[int | None, typer.Option(help="Sampling seed.")] = None,
    traces: Annotated[
        Path | None, typer.Option(help="Also write attention traces, one line per sentence.")
    ] = None,
) -> None:
    """Translate sentences, or the lines of stdin, in order."""
    from dataclasses import replace

    from regard._support import files
    from regard._support.progress import track
    from regard.cli.stdin import open_stdin, read_available_lines
    from regard.decoding import SamplingConfig, format_lines, translate
    from regard.runs import append_traces, load

    loaded = load(run)
    search = loaded.settings.search
    if beam_size is not None:
        search = replace(search, beam_size=beam_size)
    sampling = SamplingConfig(temperature, seed=seed) if sample else None
    if traces is not None:
        files.write_file(traces, "")
    batches = [sentences] if sentences else read_available_lines(open_stdin())
    for batch in track(batches, "sentences", size=len, visible=not sys.stdout.isatty()):
        translations = translate(
            loaded.model, loaded.tokenizers, batch, search, n_best=n_best, sampling=sampling
        )
        for alternatives in translations:
            typer.echo(format_lines(alternatives))
        if traces is not None:
            append_traces(traces, loaded, batch, [alternatives[0] for alternatives in translations])


@app.command()
def look(
    arguments: Annotated[
        list[str],
        typer.Argument(
            metavar="[RUN] TEXT", help="A run folder and a text; only a text with --hf."
        ),
    ],
    hf: Annotated[
        str | None, typer.Option(metavar="MODEL", help="Hugging Face model instead of a run.")
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="Forced target; default: the model's translation.")
    ] = None,
    kind: Annotated[str | None, typer.Option(help="encoder, decoder or cross.")] = None,
    layer: Annotated[int, typer.Option(help="Layer, from 0; -1 is the last.")] = 0,
    head: Annotated[int | None, typer.Option(help="Head, from 0.")] = None,
    words: Annotated[bool, typer.Option(help="Merge subword tokens into words.")] = True,
    png: Annotated[Path | None, typer.Option(help="Write a PNG picture.")] = None,
    svg: Annotated[Path | None, typer.Option(help="Write an SVG drawing.")] = None,
    pdf: Annotated[Path | None, typer.Option(help="Write a PDF drawing.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write an HTML page with every head.")] = None,
) -> None:
    """Show attention weights for a text: in the terminal, as a picture or as a page."""
    from regard.cli.look import HeadSelection, draw, trace_hf_model, trace_run

    if len(arguments) != (2 if hf is None else 1):
        raise RegardError(
            "look needs a run folder and a text, or --hf MODEL and a text; quote the text"
        )
    *run, text = arguments
    trace = trace_run(Path(run[0]), text, target) if hf is None else trace_hf_model(hf, text)
    formats = {"png": png, "svg": svg, "pdf": pdf, "html": html}
    paths = {format: path for format, path in formats.items() if path is not None}
    typer.echo(draw(trace, HeadSelection(kind, layer, head), words, paths))


@app.command()
@app.command("evaluate", hidden=True)
def score(
    run: RunArgument,
    source: Annotated[Path, typer.Argument(help="Source sentences, one per line.")],
    reference: Annotated[Path, typer.Argument(help="Reference translations.")],
    alignments: Annotated[
        Path | None, typer.Option(help="Gold word alignments (0-0 1-2 …).")
    ] = None,
    beam_size: BeamSize = None,
) -> None:
    """Evaluate a run: BLEU, chrF, perplexity and alignment error rate."""
    from regard.evaluation import evaluate
    from regard.runs import load

    for line in evaluate(load(run), source, reference, alignments, beam_size).lines():
        typer.echo(line)


@app.command()
def doctor(
    pairs: Annotated[list[Path], typer.Argument(help="A TSV file or two parallel files.")],
    test: Annotated[
        list[Path] | None, typer.Option(help="Test pairs, which must not occur in the others.")
    ] = None,
) -> None:
    """Check a parallel corpus: oddities, and pairs that training would skip."""
    from regard.data import check_corpus

    for line in check_corpus(pairs, test):
        typer.echo(line)


@app.command()
def presets(
    action: Annotated[str, typer.Argument(help="list, show or copy.")] = "list",
    name: Annotated[str, typer.Argument(help="Preset to show or copy.")] = "",
    to: Annotated[Path, typer.Option(help="Where to copy it to.")] = Path(),
) -> None:
    """List, show or copy presets: settings that are known to work."""
    from regard import presets as known

    actions: dict[str, Callable[[], str]] = {
        "list": known.table,
        "show": lambda: known.text(name).rstrip("\n"),
        "copy": lambda: f"copied to {known.copy(name, to)}",
    }
    if action not in actions:
        raise unknown_name("presets action", action, actions)
    typer.echo(actions[action]())


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Run folder.")] = Path("demo"),
    to: Annotated[str, typer.Option(help="Target language: fr or zh.")] = "fr",
    model: Annotated[str, typer.Option(help="transformer or bahdanau.")] = "transformer",
    minutes: Annotated[float, typer.Option(help="Training time.")] = 1.5,
) -> None:
    """Train a small translator, evaluate it and show its attention."""
    from regard.demo import run_demo

    with interruptible():
        run_demo(out, to=to, model=model, minutes=minutes, echo=typer.echo)


@app.command()
def explore(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[RUN …]", help="Run folders; the demo's model if none are given."),
    ] = None,
    trace: Annotated[
        list[Path] | None, typer.Option(help="Trace file to show; repeatable.")
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 picks a free one.")] = 8765,
    host: Annotated[
        str, typer.Option(help="Address to listen on; any other than localhost needs a token.")
    ] = "127.0.0.1",
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
) -> None:
    """Serve the explorer: translate and look at attention in a browser."""
    try:
        from regard.explorer import serve
    except ModuleNotFoundError as problem:
        if (problem.name or "").partition(".")[0] not in (
            "anyio",
            "fastapi",
            "starlette",
            "uvicorn",
        ):
            raise
        raise RegardError(
            "the explorer needs fastapi and uvicorn: pip install 'regard[explorer]'"
        ) from problem
    with interruptible():
        serve(runs or [], trace or [], host, port, open_page=open_page, echo=typer.echo)


@app.command()
def gallery(
    out: Annotated[Path, typer.Option(help="Folder of the site.")] = Path("gallery"),
    only: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Figure to draw; repeatable.")
    ] = None,
    lang: Annotated[str | None, typer.Option(help="en or zh; default: both.")] = None,
) -> None:
    """Draw every figure of the chapter on attention, as an offline site."""
    from regard.gallery.site import build

    with interruptible():
        typer.echo(build(out, only or (), lang))


@app.command()
def words(
    out: Annotated[Path, typer.Option(help="Picture to write.")] = Path("words.png"),
) -> None:
    """Compute self-attention over five words, step by step."""
    from regard.demo import run_five_words

    run_five_words(out, typer.echo)
