"""The main job in two minutes: learn to translate from the phrasebook, and show where it looks."""

from collections.abc import Callable, Sequence
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, NamedTuple, cast

from regard.analysis import AlignmentHead, best_alignment_head, word_level_cross_attention
from regard.data.phrasebook import AlignedPair, load_phrasebook
from regard.decoding import translate
from regard.demo.models import LANGUAGES, Language, check_choice, train_demo
from regard.errors import RegardError
from regard.evaluation import bleu, exact_match, is_chinese
from regard.runs import Run, trace_translation
from regard.trace import Array, Trace
from regard.viz import heatmap, side_by_side, terminal

if TYPE_CHECKING:
    import matplotlib.figure

SHOWN = 5  # translations
ALIGNED = 100  # phrases over which the head to show is chosen


def run_demo(
    out: Path,
    *,
    to: str = "fr",
    model: str = "transformer",
    minutes: float = 1.5,
    say: Callable[[str], None] = print,
) -> None:
    """Train on the phrasebook, translate what was never seen, and show where the model looked."""
    check_choice(to, model)
    if model == "no_attention":
        raise RegardError("a blind model looks nowhere; 'transformer' and 'bahdanau' do")
    book = load_phrasebook(cast(Language, to))
    say(f"Learning {LANGUAGES[to]} from {len(book.train):,} sentences, for {minutes:g} minutes.\n")
    run = train_demo(out, to, model, minutes)
    say(_quality(run, book.test))
    head = choose_head(run, book.valid[:ALIGNED])
    shown = _worth_showing(book.test)
    seen = _see(run, shown, head)
    say(_maps(seen))
    say(_picture(seen, out))
    say(_next(out, shown.source))


def choose_head(run: Run, phrases: Sequence[AlignedPair]) -> AlignmentHead:
    """Find the head of the lowest alignment error rate over some phrases with gold alignments."""
    traces = [_forced(run, phrase) for phrase in phrases]
    return best_alignment_head(traces, [phrase.links for phrase in phrases])


def _forced(run: Run, phrase: AlignedPair) -> Trace:
    return trace_translation(
        run.model, run.tokenizers, phrase.source, phrase.target, words=phrase.word_spans()
    )


def _quality(run: Run, phrases: Sequence[AlignedPair]) -> str:
    """Translate phrases that were never seen; tell how many are right, and show some."""
    found = translate(
        run.model, run.tokenizers, [phrase.source for phrase in phrases], run.settings.search
    )
    texts, wanted = [best[0].text for best in found], [phrase.target for phrase in phrases]
    score = bleu(texts, wanted, chinese=is_chinese(wanted))
    lines = [
        f"{len(phrases)} sentences it never saw: BLEU {score:.1f}, "
        f"{exact_match(texts, wanted):.0%} exactly as in the book.\n"
    ]
    for phrase, text in list(zip(phrases, texts, strict=True))[:SHOWN]:
        right = "" if text == phrase.target else f"   (the book: {phrase.target})"
        lines += [f"  {phrase.source}", f"    {text}{right}"]
    return "\n".join(lines)


def _worth_showing(phrases: Sequence[AlignedPair]) -> AlignedPair:
    """Choose a phrase of middling length whose words come in another order in the translation."""

    def crossings(phrase: AlignedPair) -> int:
        links = phrase.links
        return sum(a < c and b > d for n, (a, b) in enumerate(links) for c, d in links[n + 1 :])

    fitting = [phrase for phrase in phrases if 7 <= len(phrase.source_words) <= 11]
    return max(fitting or phrases, key=crossings)


class _Seen(NamedTuple):
    """A phrase, the head that looks at it, and where it looks: a row a target word."""

    phrase: AlignedPair
    head: AlignmentHead
    weights: Array
    gold: list[list[float]]
    words: tuple[list[str], list[str]]  # of the target and of the source


def _see(run: Run, phrase: AlignedPair, head: AlignmentHead) -> _Seen:
    stack, sources, targets = word_level_cross_attention(_forced(run, phrase), head.row)
    words = [phrase.target_words[n] for n in targets], [phrase.source_words[n] for n in sources]
    gold = [[float((s, t) in phrase.links) for s in sources] for t in targets]
    return _Seen(phrase, head, stack[head.layer, head.head], gold, words)


def _maps(seen: _Seen) -> str:
    """Draw where the head looks beside the gold alignment, for the terminal."""
    phrase, head, width = seen.phrase, seen.head, get_terminal_size().columns // 2 - 2
    title = f"Layer {head.layer}, head {head.head}: where it looks"
    maps = (
        terminal.render_heatmap(seen.weights, *seen.words, title=title, width=width),
        terminal.render_heatmap(seen.gold, *seen.words, title="The gold alignment", width=width),
    )
    return f"""
  {phrase.source}
  {phrase.target}

{side_by_side(*maps)}

Of all heads this one agrees best with the gold alignments of {ALIGNED} other sentences:
alignment error rate {head.value:.2f}. It was never shown any."""


def _picture(seen: _Seen, out: Path) -> str:
    """Save the same as a figure, and tell where it is, or what is needed to draw it."""
    head = seen.head
    try:
        drawn = heatmap.plot_heatmap(
            seen.weights,
            *seen.words,
            title=seen.phrase.target,
            caption=f"cross-attention, layer {head.layer}, head {head.head} · "
            "outlined: gold alignment",
            outlined=[
                (t, s) for t, row in enumerate(seen.gold) for s, mark in enumerate(row) if mark
            ],
        )
    except RegardError as problem:  # without matplotlib; what was learned is worth showing
        return f"No picture was saved: {problem}\n"
    return f"The picture: {_saved(drawn, out)}\n"


def _saved(drawn: "matplotlib.figure.Figure", out: Path) -> Path:
    """Save a figure as PNG or, where no font has its letters, as SVG, for the reader's fonts."""
    try:
        heatmap.save_figure(drawn, out / "attention.png")
        return out / "attention.png"
    except RegardError:
        heatmap.save_figure(drawn, out / "attention.svg")
        return out / "attention.svg"


def _next(out: Path, sentence: str) -> str:
    return f"""To try next:

  regard translate {out} "{sentence}"
  regard look {out} "{sentence}" --html look.html   every layer and head, in a browser
  regard demo --to zh --out {out}-zh          Chinese instead of French
  regard demo --model bahdanau --out {out}-b  the recurrent translator of 2015
  regard train your-pairs.tsv --out your-run  your own text
"""
