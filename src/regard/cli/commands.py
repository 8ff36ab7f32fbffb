"""The commands of `regard`: each reads its arguments, calls one function and prints."""

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard._support.text import escape_control
from regard.cli.app import (
    BeamSize,
    EngineOption,
    LengthPenalty,
    Quantization,
    RunArgument,
    Settings,
    Verbose,
    command,
    echo,
    echo_drawing,
    interruptible,
)
from regard.cli.app import app as app
from regard.errors import RegardError, unknown_name

if TYPE_CHECKING:
    from regard.runs import Run


# Each command imports what it needs: importing torch takes seconds, which --help must not.
@command()
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
        float | None, typer.Option(help="Time limit; steps and learning rate are planned for it.")
    ] = None,
    processes: Annotated[
        int | None,
        typer.Option(help="Processes that share every batch. Default: as many as speed it up."),
    ] = None,
    changes: Settings = None,
) -> None:
    """Train a translator on sentence pairs, or resume a run."""
    from regard.training import train as train_run

    with interruptible():
        train_run(
            pairs,
            out,
            valid=valid or None,
            alignments=alignments,
            preset=preset,
            processes=processes,
            settings=_collect_settings(settings, minutes, changes),
        )


def _collect_settings(
    file: Path | None, minutes: float | None, assignments: list[str] | None
) -> list[dict[str, Any]]:
    """Collect settings: file, `--minutes`, then each `--set`; later ones win."""
    from regard import config

    settings: list[dict[str, Any]] = [] if file is None else [config.read_toml(file)]
    if minutes is not None:
        settings.append({"train": {"minutes": minutes}})
    return settings + [config.parse_assignment(assignment) for assignment in assignments or []]


@command()
def translate(
    run: RunArgument,
    sentences: Annotated[
        list[str] | None, typer.Argument(help="Sentences; lines of stdin if none are given.")
    ] = None,
    beam_size: BeamSize = None,
    n_best: Annotated[
        int, typer.Option(help="Translations per sentence; at most --beam-size, if that is given.")
    ] = 1,
    length_penalty: LengthPenalty = None,
    prefix: Annotated[
        str | None, typer.Option(metavar="TEXT", help="What every translation begins with.")
    ] = None,
    sample: Annotated[bool, typer.Option("--sample", help="Sample instead of searching.")] = False,
    temperature: Annotated[
        float | None, typer.Option(help="Sampling temperature. Default: 1.")
    ] = None,
    top_k: Annotated[
        int | None, typer.Option(help="Sample from this many most probable tokens.")
    ] = None,
    top_p: Annotated[
        float | None, typer.Option(help="Sample from tokens that make up this probability.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Sampling seed.")] = None,
    min_length: Annotated[int, typer.Option(help="Least number of tokens.")] = 0,
    max_length: Annotated[
        int | None, typer.Option(help="Greatest number of tokens. Default: by the source.")
    ] = None,
    traces: Annotated[
        Path | None, typer.Option(help="Also write attention traces, one line per sentence.")
    ] = None,
    engine: EngineOption = "auto",
    quantization: Quantization = None,
    verbose: Verbose = False,
) -> None:
    """Translate sentences, or the lines of stdin, in order."""
    from regard._support.progress import track
    from regard.cli.processes import share_work
    from regard.cli.translate import (
        append_traces,
        clear_traces,
        format_lines,
        open_stdin,
        read_available_lines,
        translate_blocks,
    )

    with share_work(run, engine, quantization) as (loaded, pool):
        _announce_engine(loaded, engine, verbose)
        options = loaded.translation_options(
            beam_size=beam_size,
            n_best=n_best,
            length_penalty=length_penalty,
            sample=sample,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            seed=seed,
            min_length=min_length,
            max_length=max_length,
        )
        if traces is not None:
            clear_traces(traces)
        blocks = [sentences] if sentences else read_available_lines(open_stdin())
        translated = translate_blocks(
            loaded, pool, blocks, options, prefix=prefix, with_traces=traces is not None
        )
        for block in track(
            translated,
            "sentences",
            size=lambda block: len(block.sentences),
            visible=not sys.stdout.isatty(),
        ):
            for alternatives in block.translations:
                shown = alternatives if n_best > 1 else alternatives[0]
                typer.echo(format_lines(shown, sys.stdout.isatty()))
            if traces is not None:
                append_traces(traces, block.traces)


@command()
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
    kind: Annotated[
        str | None, typer.Option(metavar="[encoder|decoder|cross]", help="Attention to show.")
    ] = None,
    layer: Annotated[
        int | None,
        typer.Option(help="Layer, from 0; -1 is the last. Default: the clearest head's."),
    ] = None,
    head: Annotated[
        int | None, typer.Option(help="Head, from 0; default: the clearest one.")
    ] = None,
    all_heads: Annotated[bool, typer.Option("--all", help="Show all layers and heads.")] = False,
    words: Annotated[bool, typer.Option(help="Merge subword tokens into words.")] = True,
    rows: Annotated[
        str,
        typer.Option(
            metavar="[output|input]",
            help="Name rows of cross-attention by the words written, or by those read.",
        ),
    ] = "output",
    png: Annotated[Path | None, typer.Option(help="Write a PNG picture.")] = None,
    svg: Annotated[Path | None, typer.Option(help="Write an SVG drawing.")] = None,
    pdf: Annotated[Path | None, typer.Option(help="Write a PDF drawing.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write an HTML page with every head.")] = None,
    open_page: Annotated[
        bool, typer.Option("--open", help="Open the page in a browser; with or without --html.")
    ] = False,
) -> None:
    """Show attention weights in the terminal, a picture or a page.

    Prints the text and its translation first. Without --layer and --head it shows the head with the
    clearest alignment, or in self-attention the lowest entropy.
    """
    from regard.cli.look import HeadSelection, draw, open_in_browser, trace_hf_model, trace_run

    if len(arguments) != (2 if hf is None else 1):
        raise RegardError(
            "look needs a run folder and a text, or --hf MODEL and a text; quote the text"
        )
    *run, text = arguments
    trace = (
        trace_run(Path(run[0]), text, target) if hf is None else trace_hf_model(hf, text, target)
    )
    if open_page and html is None:
        html = Path(tempfile.mkdtemp(prefix="regard-")) / "look.html"
    formats = {"png": png, "svg": svg, "pdf": pdf, "html": html}
    paths = {format: path for format, path in formats.items() if path is not None}
    echo_drawing(draw(trace, HeadSelection(kind, layer, head), words, paths, all_heads, rows))
    if open_page and html is not None and (problem := open_in_browser(html)):
        echo(problem)


@command()
@command("evaluate", hidden=True)
def score(
    run: RunArgument,
    source: Annotated[Path, typer.Argument(help="Source sentences, one per line.")],
    reference: Annotated[Path, typer.Argument(help="Reference translations.")],
    gold: Annotated[
        Path | None,
        typer.Option(help="Gold word alignments (0-0 1-2 …), for the alignment error rate."),
    ] = None,
    beam_size: BeamSize = None,
    length_penalty: LengthPenalty = None,
    engine: EngineOption = "auto",
    quantization: Quantization = None,
    verbose: Verbose = False,
) -> None:
    """Evaluate a run: BLEU, chrF, perplexity, alignment error rate."""
    from regard.cli.processes import share_work

    with share_work(run, engine, quantization) as (loaded, pool):
        _announce_engine(loaded, engine, verbose)
        report = loaded.evaluate(
            source,
            reference,
            gold=gold,
            beam_size=beam_size,
            length_penalty=length_penalty,
            progress=True,
            map=pool.map,
        )
    echo(str(report))


def _announce_engine(run: "Run", engine: str, verbose: bool) -> None:
    """Report on stderr which engine translates and why, if `--verbose` is given."""
    from regard.runs import describe_engine

    if verbose:
        typer.echo(describe_engine(run.engine, run.model, engine), err=True)


@command()
def export(
    run: RunArgument,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder to write, new or empty; with html, a file. Default: named after the run.",
            show_default=False,
        ),
    ] = None,
    to: Annotated[
        str, typer.Option(metavar="[ctranslate2|onnx|html]", help="Format.")
    ] = "ctranslate2",
    quantization: Annotated[
        str | None,
        typer.Option(
            metavar="[float32|int8|…]",
            help="Type of the stored parameters. Default: float16 with html, else float32.",
        ),
    ] = None,
) -> None:
    """Export a run for use without regard.

    As a model with its tokenizers, or as one HTML page.
    """
    from regard.runs import export_run, load

    loaded = load(run, engine="torch")
    default = f"{loaded.name}.html" if to == "html" else f"{loaded.name}-{to}"
    echo(export_run(loaded, Path(default) if out is None else out, to, quantization))


@command()
def doctor(
    pairs: Annotated[list[Path], typer.Argument(help="A TSV file or two parallel files.")],
    test: Annotated[
        list[Path] | None, typer.Option(help="Test pairs, which must not occur in the others.")
    ] = None,
) -> None:
    """Check a parallel corpus before training.

    Reports oddities, and pairs that training would skip.
    """
    from regard.data import check_corpus

    for line in check_corpus(pairs, test):
        echo(escape_control(line))  # one line, whatever the paths are


@command()
def presets(
    action: Annotated[
        str, typer.Argument(metavar="[list|show|copy]", help="What to do.", show_default="list")
    ] = "list",
    name: Annotated[str, typer.Argument(help="Preset to show or copy.", show_default=False)] = "",
    to: Annotated[Path, typer.Option(help="Where to copy it to.")] = Path(),
) -> None:
    """List, show or copy presets, which are tested settings."""
    from regard import presets as known

    actions: dict[str, Callable[[], str]] = {
        "list": known.table,
        "show": lambda: known.text(name).rstrip("\n"),
        "copy": lambda: escape_control(f"copied to {known.copy(name, to)}"),
    }
    if action in known.names():
        raise RegardError(f"`regard presets show {action}` shows the preset {action!r}")
    if action not in actions:
        raise unknown_name("presets action", action, actions)
    if action != "list" and not name:
        raise RegardError(
            f"`presets {action}` needs the name of a preset: {', '.join(known.names())}"
        )
    echo(actions[action]())


@command()
def demo(
    out: Annotated[Path, typer.Option(help="Run folder.")] = Path("demo"),
    to: Annotated[str, typer.Option(metavar="[fr|zh]", help="Target language.")] = "fr",
    model: Annotated[
        str, typer.Option(metavar="[transformer|bahdanau]", help="Model to train.")
    ] = "transformer",
    minutes: Annotated[
        float | None,
        typer.Option(help="Time limit, instead of a fixed number of steps (about 90 seconds)."),
    ] = None,
) -> None:
    """Train a small translator, evaluate it and show its attention."""
    from regard.demo import run_demo

    with interruptible():
        run_demo(out, to=to, model=model, minutes=minutes, echo=echo_drawing)


@command()
def gallery(
    out: Annotated[Path, typer.Option(help="Folder of the site.")] = Path("gallery"),
    only: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Figure to draw; repeatable.")
    ] = None,
    lang: Annotated[
        str | None, typer.Option(metavar="[en|zh]", help="Language; default: both.")
    ] = None,
) -> None:
    """Draw the figures of the chapter on attention as a website."""
    from regard.gallery.site import build_site

    with interruptible():
        echo(str(build_site(out, only or (), lang)))


@command()
def words(
    out: Annotated[Path, typer.Option(help="Picture to write.")] = Path("words.png"),
) -> None:
    """Compute self-attention over five words, step by step."""
    from regard.demo import run_five_words

    run_five_words(out, echo_drawing)
