"""The demo: train a translator on the phrasebook, evaluate it, and show its attention."""

from collections.abc import Callable, Sequence
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, NamedTuple, cast

from regard.analysis import AlignmentHead, best_alignment_head, word_level_cross_attention
from regard.data.phrasebook import AlignedPair, Language, load_phrasebook
from regard.decoding import translate
from regard.demo.models import LANGUAGES, check_names, train_demo
from regard.errors import RegardError
from regard.evaluation import bleu, exact_match, is_chinese
from regard.runs import Run, trace_translation
from regard.trace import Array, Trace
from regard.viz import plot_heatmap, render_heatmap, save_figure, side_by_side

if TYPE_CHECKING:
    import matplotlib.figure

SHOWN_TRANSLATIONS = 5
ALIGNMENT_PAIRS = 100  # validation pairs on which the head to show is chosen
EXAMPLE_WORDS = (7, 11)  # least and greatest length of the sentence to show


def run_demo(
    out: Path,
    *,
    to: str = "fr",
    model: str = "transformer",
    minutes: float = 1.5,
    echo: Callable[[str], None] = print,
) -> None:
    """Train on the phrasebook, translate unseen sentences, and show the attention of one.

    Args:
        out: the run folder; the picture is saved there, too.
        to: target language, "fr" or "zh".
        model: "transformer" or "bahdanau".
        minutes: training time.
        echo: prints a text.

    Raises:
        RegardError: if the language or the model is unknown, or the model has no attention.
    """
    check_names(to, model)
    if model == "no_attention":
        raise RegardError(
            "model must have attention to show, but 'no_attention' has none; choose 'transformer' "
            "or 'bahdanau'"
        )
    book = load_phrasebook(cast(Language, to))
    echo(
        f"Training a translator from English to {LANGUAGES[to]} on {len(book.train):,} sentence "
        f"pairs for {minutes:g} minutes.\n"
    )
    run = train_demo(out, to, model, minutes)
    echo(_evaluate(run, book.test))
    head = choose_head(run, book.valid[:ALIGNMENT_PAIRS])
    example = _trace_example(run, _choose_example(book.test), head)
    echo(_render_example(example))
    echo(_save_picture(example, out))
    echo(_next_steps(out, example.pair.source))


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
    hypotheses = translate(run.model, run.tokenizers, sources, run.settings.search)
    texts = [best[0].text for best in hypotheses]
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
    """A sentence pair and the attention of one head: a row per target word."""

    pair: AlignedPair
    head: AlignmentHead
    weights: Array
    gold: list[list[float]]
    labels: tuple[list[str], list[str]]  # target words, source words


def _trace_example(run: Run, pair: AlignedPair, head: AlignmentHead) -> _Example:
    weights, sources, targets = word_level_cross_attention(_trace_reference(run, pair), head.row)
    labels = [pair.target_words[n] for n in targets], [pair.source_words[n] for n in sources]
    gold = [[float((s, t) in pair.links) for s in sources] for t in targets]
    return _Example(pair, head, weights[head.layer, head.head], gold, labels)


def _render_example(example: _Example) -> str:
    """Draw the head's attention beside the gold alignment."""
    pair, head, width = example.pair, example.head, get_terminal_size().columns // 2 - 2
    title = f"Attention of layer {head.layer}, head {head.head}"
    maps = (
        render_heatmap(example.weights, *example.labels, title=title, width=width),
        render_heatmap(example.gold, *example.labels, title="Gold alignment", width=width),
    )
    return f"""
  {pair.source}
  {pair.target}

{side_by_side(*maps)}

Of all heads, this one has the lowest alignment error rate, {head.value:.2f}, on {ALIGNMENT_PAIRS}
validation sentences. Training did not use gold alignments."""


def _save_picture(example: _Example, out: Path) -> str:
    """Save the same as a figure, and return where, or why not."""
    head = example.head
    cells = [(t, s) for t, row in enumerate(example.gold) for s, link in enumerate(row) if link]
    try:
        figure = plot_heatmap(
            example.weights,
            *example.labels,
            title=example.pair.target,
            caption=f"cross-attention, layer {head.layer}, head {head.head} · "
            "outlined: gold alignment",
            outlined=cells,
        )
    except RegardError as error:  # matplotlib is optional
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


def _next_steps(out: Path, sentence: str) -> str:
    return f"""Next:

  regard translate {out} "{sentence}"
  regard look {out} "{sentence}" --html look.html   all layers and heads, in a browser
  regard demo --to zh --out {out}-zh          Chinese instead of French
  regard demo --model bahdanau --out {out}-b  a recurrent model with additive attention
  regard train your-pairs.tsv --out your-run  your own text
"""
