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
from regard.decoding import Translation
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
NEXT_WIDTH = 80  # columns of the commands to try next
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
    translations = run.translate([pair.source for pair in book.test])
    echo(_evaluate(book.test, [translation.text for translation in translations]))
    head = choose_head(run, book.valid[:ALIGNMENT_PAIRS])
    choice = _choose_example(book.test, translations)
    example = _trace_example(run, choice.pair, choice.translation, head)
    echo(_render_example(example, choice.reason))
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


def _evaluate(pairs: Sequence[AlignedPair], texts: Sequence[str]) -> str:
    """Return the scores of the test set's translations, and a few of them."""
    references = [pair.target for pair in pairs]
    score = bleu(texts, references, chinese=is_chinese(references))
    lines = [
        f"Test set of {len(pairs)} unseen sentences: BLEU {score:.1f}, "
        f"exact match {100 * exact_match(texts, references):.0f} %.\n"
    ]
    for pair, text in list(zip(pairs, texts, strict=True))[:SHOWN_TRANSLATIONS]:
        note = "" if text == pair.target else f"   (reference: {pair.target})"
        lines += [f"  {pair.source}", f"    {text}{note}"]
    return "\n".join(lines)


class _Choice(NamedTuple):
    """The sentence to show, and how it was chosen."""

    pair: AlignedPair
    translation: Translation
    reason: str


def _choose_example(pairs: Sequence[AlignedPair], translations: Sequence[Translation]) -> _Choice:
    """Choose the pair with the most reordering among exact translations of medium length.

    Only the reference has a gold alignment. If no translation is exact, choose among all pairs.
    """
    shortest, longest = EXAMPLE_WORDS
    every = list(zip(pairs, translations, strict=True))
    exact = [one for one in every if one[1].text == one[0].target]
    fitting = [one for one in exact or every if shortest <= len(one[0].source_words) <= longest]
    pair, translation = max(fitting or exact or every, key=lambda one: _count_crossings(one[0]))
    lengths = f" with {shortest} to {longest} words" if fitting else ""
    which = "translated exactly as the reference" if exact else "(none is translated exactly)"
    return _Choice(
        pair,
        translation,
        f"Of the test sentences{lengths} {which},\nthis one has the most reordering.",
    )


def _count_crossings(pair: AlignedPair) -> int:
    links = pair.links
    return sum(a < c and b > d for n, (a, b) in enumerate(links) for c, d in links[n + 1 :])


class _Example(NamedTuple):
    """A sentence, the model's translation and the attention of one head: a row per target word."""

    pair: AlignedPair
    translation: str
    head: AlignmentHead
    weights: Array
    gold: list[list[float]] | None  # None if the translation differs from the reference
    labels: tuple[list[str], list[str]]  # target words, source words


def _trace_example(
    run: Run, pair: AlignedPair, translation: Translation, head: AlignmentHead
) -> _Example:
    """Trace the model's own translation; only the reference has a gold alignment."""
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


def _render_example(example: _Example, reason: str) -> str:
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
{reason}

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
    explore = "look at any sentence, in the browser"
    if missing := missing_packages("explorer"):
        explore += f"; needs {missing[0]}:\n  # pip install 'regard[explorer]'"
    steps = {
        **_activation(),
        "translate": [f"regard translate {out}", f'"{sentence}"'],
        "look at every layer and head, as a page": [
            f"regard look {out}",
            f'"{sentence}"',
            "--html look.html",
        ],
        explore: [f"regard explore {out}"],
        f"{LANGUAGES[other_to]} instead of {LANGUAGES[to]}": [
            f"regard demo --to {other_to}",
            f"--model {model}",
            f"--out {out}-{other_to}",
        ],
        what: [f"regard demo --to {to}", f"--model {other_model}", f"--out {out}-{other_model}"],
        "your own text": ["regard train your-pairs.tsv", "--out your-run"],
    }
    lines = [f"  # {comment}\n{_wrap_command(parts)}" for comment, parts in steps.items()]
    return "\n".join(["Next:", "", *lines, ""])


def _wrap_command(parts: Sequence[str]) -> str:
    """Return a command that can be copied, with lines of at most `NEXT_WIDTH` where it can break.

    A comment is on a line of its own: an interactive zsh takes one after a command for arguments.
    """
    lines = [f"  {parts[0]}"]
    for part in parts[1:]:
        if sys.platform == "win32" or len(f"{lines[-1]} {part} \\") <= NEXT_WIDTH:
            lines[-1] += f" {part}"
        else:
            lines[-1] += " \\"
            lines.append(f"    {part}")
    return "\n".join(lines)


def _activation() -> dict[str, list[str]]:
    """Return the command that puts `regard` on the PATH, if the shell does not find it there."""
    scripts = Path(sys.executable).parent
    activate = scripts / "activate"
    if shutil.which("regard") or not activate.exists():
        return {}
    if activate.is_relative_to(Path.cwd()):
        activate = activate.relative_to(Path.cwd())
    return {"once per shell, for the command regard": [f". {shlex.quote(str(activate))}"]}
