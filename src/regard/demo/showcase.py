"""The demo: train a translator on the phrasebook, evaluate it, and show its attention."""

import shlex
import shutil
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, NamedTuple, cast

from regard._support.extras import MissingExtraError, missing_packages
from regard._support.progress import format_duration
from regard.analysis import AlignmentHead, best_alignment_head, word_level_cross_attention
from regard.data import WordSpans
from regard.data.phrasebook import AlignedPair, Language, load_phrasebook
from regard.demo.models import LANGUAGES, MODELS, STEPS, check_demo_names, train_demo
from regard.errors import RegardError
from regard.evaluation import bleu, exact_match, is_chinese
from regard.runs import Run, trace_translation
from regard.trace import Array, Trace
from regard.viz import (
    WRITING_READING,
    plot_heatmap,
    render_heatmap,
    save_figure,
    side_by_side,
)

if TYPE_CHECKING:
    import matplotlib.figure

MODELS_WITH_ATTENTION = MODELS.keys() - {"no_attention"}
SHOWN_TRANSLATIONS = 5
ALIGNMENT_PAIRS = 100  # validation pairs on which the head to show is chosen
EXAMPLE_WORDS = (7, 11)  # least and greatest length of the sentence to show


def run_demo(
    out: Path,
    *,
    to: str = "fr",
    model: str = "transformer",
    steps: int | None = None,
    minutes: float | None = None,
    echo: Callable[[str], None] = print,
) -> None:
    """Train on the phrasebook, translate unseen sentences, and show the attention of one.

    Args:
        out: the run folder; the picture is saved there, too.
        to: target language, "fr" or "zh".
        model: "transformer" or "bahdanau".
        steps: optimizer steps; by default those of `models.STEPS`.
        minutes: a time limit instead of a number of steps.
        echo: prints a text.

    Raises:
        RegardError: if the language or the model is unknown, or the model has no attention.
    """
    if model == "no_attention":
        raise RegardError(
            "model must have attention to show, but 'no_attention' has none; choose 'transformer' "
            "or 'bahdanau'"
        )
    check_demo_names(to, model, MODELS_WITH_ATTENTION)
    book = load_phrasebook(cast(Language, to))
    echo(
        f"Training a translator from English to {LANGUAGES[to]} on {len(book.train):,} sentence "
        f"pairs: {_describe_length(model, steps, minutes)}.\n"
    )
    run = train_demo(out, to, model, steps=steps, minutes=minutes)
    echo(_evaluate(run, book.test))
    head = choose_head(run, book.valid[:ALIGNMENT_PAIRS])
    example = _trace_example(run, _choose_example(book.test), head)
    echo(_render_example(example))
    echo(_save_picture(example, out))
    echo(_next_steps(out, example.pair.source, to, model))


def _describe_length(model: str, steps: int | None, minutes: float | None) -> str:
    if minutes is not None:
        return f"at most {format_duration(60 * minutes)}"
    if steps is not None:
        return f"{steps:,} steps"
    return f"{STEPS[model]:,} steps, about a minute and a half on two quiet cores"


def choose_head(run: Run, pairs: Sequence[AlignedPair]) -> AlignmentHead:
    """Find the cross-attention head with the lowest alignment error rate over some pairs."""
    traces = [_trace_reference(run, pair) for pair in pairs]
    return best_alignment_head(traces, [pair.links for pair in pairs])


def _trace_reference(run: Run, pair: AlignedPair) -> Trace:
    """Trace the reference translation (teacher forcing)."""
    words = pair.word_spans()
    return trace_translation(run.model, run.tokenizers, pair.source, pair.target, words=words)


def _evaluate(run: Run, pairs: Sequence[AlignedPair]) -> str:
    """Translate the test set, and return its scores and a few translations."""
    sources, references = [pair.source for pair in pairs], [pair.target for pair in pairs]
    texts = [translation.text for translation in run.translate(sources)]
    score = bleu(texts, references, chinese=is_chinese(references))
    lines = [
        f"Test set of {len(pairs)} unseen sentences: BLEU {score:.1f}, "
        f"exact match {100 * exact_match(texts, references):.0f} %.\n"
    ]
    for pair, text in list(zip(pairs, texts, strict=True))[:SHOWN_TRANSLATIONS]:
        note = "" if text == pair.target else f"   (reference: {pair.target})"
        lines += [f"  {pair.source}", f"    {text}{note}"]
    return "\n".join(lines)


def _choose_example(pairs: Sequence[AlignedPair]) -> AlignedPair:
    """Choose a pair of medium length with the most reordering between source and target."""

    def count_crossings(pair: AlignedPair) -> int:
        links = pair.links
        return sum(a < c and b > d for n, (a, b) in enumerate(links) for c, d in links[n + 1 :])

    shortest, longest = EXAMPLE_WORDS
    fitting = [pair for pair in pairs if shortest <= len(pair.source_words) <= longest]
    return max(fitting or pairs, key=count_crossings)


class _Example(NamedTuple):
    """A sentence, the model's translation and the attention of one head: a row per target word."""

    pair: AlignedPair
    translation: str
    head: AlignmentHead
    weights: Array
    gold: list[list[float]] | None  # None if the translation differs from the reference
    labels: tuple[list[str], list[str]]  # target words, source words


def _trace_example(run: Run, pair: AlignedPair, head: AlignmentHead) -> _Example:
    """Trace the model's own translation; only the reference has a gold alignment."""
    translation = run.translate(pair.source)
    output = translation if translation.text else pair.target  # one must be traced
    text = str(output)
    is_reference = text == pair.target
    words = pair.word_spans() if is_reference else _split_words(run, pair, text)
    weights, sources, targets = word_level_cross_attention(
        run.trace(pair.source, output, words=words)
    )
    target_words = [text[start:end] for start, end in words.target]
    labels = [target_words[n] for n in targets], [pair.source_words[n] for n in sources]
    gold = [[float((s, t) in pair.links) for s in sources] for t in targets]
    shown = weights[head.layer, head.head]
    return _Example(pair, translation.text, head, shown, gold if is_reference else None, labels)


def _split_words(run: Run, pair: AlignedPair, translation: str) -> WordSpans:
    """Return the words of the source and of a translation that is not the reference."""
    return WordSpans(pair.word_spans().source, run.tokenizers.target.word_spans(translation))


def _render_example(example: _Example) -> str:
    """Draw the head's attention, next to the gold alignment if there is one."""
    pair, head, width = example.pair, example.head, get_terminal_size().columns
    width = width if example.gold is None else width // 2 - 2
    title = f"Attention of layer {head.layer}, head {head.head}"
    render = partial(render_heatmap, axis_titles=WRITING_READING, width=width)
    shown = render(example.weights, *example.labels, title=title)
    if example.gold is not None:
        gold = render(example.gold, *example.labels, title="Gold alignment")
        shown = side_by_side(shown, gold)
    translation = example.translation or "(no translation; below is the reference)"
    note = "" if translation == pair.target else f"\n  reference: {pair.target}"
    return f"""
  {pair.source}
  {translation}{note}

{shown}

Of all heads, this one has the lowest alignment error rate, {head.value:.2f}, on {ALIGNMENT_PAIRS}
validation sentences. Training did not use gold alignments."""


def _save_picture(example: _Example, out: Path) -> str:
    """Save the same as a figure, and return where, or why not."""
    head, gold = example.head, example.gold or []
    cells = [(t, s) for t, row in enumerate(gold) for s, link in enumerate(row) if link]
    note = " · outlined: gold alignment" if cells else ""
    try:
        figure = plot_heatmap(
            example.weights,
            *example.labels,
            title=f"{example.pair.source} → {example.translation or example.pair.target}",
            axis_titles=WRITING_READING,
            caption=f"cross-attention, layer {head.layer}, head {head.head}{note}",
            outlined=cells,
        )
    except MissingExtraError as error:
        return f"No picture was saved: {error}\n"
    return f"Wrote {_save_figure(figure, out)}\n"


def _save_figure(figure: "matplotlib.figure.Figure", out: Path) -> Path:
    """Save a figure as PNG, or as SVG if no installed font has all its characters."""
    try:
        save_figure(figure, out / "attention.png")
        return out / "attention.png"
    except RegardError:
        save_figure(figure, out / "attention.svg")
        return out / "attention.svg"


def _next_steps(out: Path, sentence: str, to: str, model: str) -> str:
    """Return the commands to try next: this run, the other language, the other model."""
    other_to = "zh" if to == "fr" else "fr"
    other_model, what = (
        ("bahdanau", "a recurrent model with additive attention")
        if model == "transformer"
        else ("transformer", "a Transformer")
    )
    commands = {
        f'regard translate {out} "{sentence}"': "",
        f'regard look {out} "{sentence}" --html look.html': "  # every layer and head, as a page",
        f"regard explore {out}": "  # for any sentence",
        f"regard demo --to {other_to} --model {model} --out {out}-{other_to}": (
            f"  # {LANGUAGES[other_to]} instead of {LANGUAGES[to]}"
        ),
        f"regard demo --to {to} --model {other_model} --out {out}-{other_model}": f"  # {what}",
        "regard train your-pairs.tsv --out your-run": "  # your own text",
    }
    if missing := missing_packages("explorer"):
        commands[f"regard explore {out}"] += f"; needs {missing[0]}: pip install 'regard[explorer]'"
    activation = _activation()
    lines = [f"  {command}{comment}" for command, comment in (activation | commands).items()]
    return "\n".join(["Next:", "", *lines, ""])


def _activation() -> dict[str, str]:
    """Return the command that puts `regard` on the PATH, if the shell does not find it there."""
    scripts = Path(sys.executable).parent
    activate = scripts / "activate"
    if shutil.which("regard") or not activate.exists():
        return {}
    if activate.is_relative_to(Path.cwd()):
        activate = activate.relative_to(Path.cwd())
    return {f". {shlex.quote(str(activate))}": "  # once per shell, for the command regard"}
