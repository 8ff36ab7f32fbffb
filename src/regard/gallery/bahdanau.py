"""Bahdanau's attention: a recurrent translator that looks, and the same one that cannot."""

from collections.abc import Callable, Mapping, Sequence
from math import ceil

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from regard.analysis import word_level_cross_attention
from regard.data.phrasebook import AlignedPair, load_phrasebook
from regard.decoding import translate
from regard.evaluation import bleu, exact_match
from regard.gallery.example_sentence import looks
from regard.gallery.translators import with_and_without
from regard.runs import Run
from regard.viz.heatmap import new_figure, plot_heatmap

HELD_OUT = 200  # phrases
PARTS = 4  # into which they are cut, by length


def draw() -> dict[str, Figure]:
    """Draw the alignment of a sentence, and how both translators do as sentences grow longer."""
    seeing, blind = with_and_without()
    phrases = sorted(
        load_phrasebook("fr", train=0).test[:HELD_OUT], key=lambda one: len(one.source_words)
    )
    texts = {"with attention": _say(seeing, phrases), "without": _say(blind, phrases)}
    shown = _most_moved(phrases, texts["with attention"])
    phrase = phrases[shown]
    weights, _, _ = word_level_cross_attention(looks(seeing, phrase))
    alignment = plot_heatmap(
        weights[0, 0],
        phrase.target_words,
        phrase.source_words,
        caption="outlined: gold alignment",
        marked=[(target, source) for source, target in phrase.links],
    )
    said = {"English": phrase.source, "the book": phrase.target}
    said |= {name: some[shown] for name, some in texts.items()}
    return {"alignment": alignment, "with-and-without": _compared(said, phrases, texts)}


def _say(run: Run, phrases: Sequence[AlignedPair]) -> list[str]:
    sources = [phrase.source for phrase in phrases]
    found = translate(run.model, run.tokenizers, sources, run.settings.search)
    return [best[0].text for best in found]


def _most_moved(phrases: Sequence[AlignedPair], texts: Sequence[str]) -> int:
    """Of the phrases that came out right, choose the one whose words change places most."""
    right = [n for n, phrase in enumerate(phrases) if phrase.target == texts[n]]
    return max(right or range(len(phrases)), key=lambda n: crossings(phrases[n]))


def crossings(phrase: AlignedPair) -> int:
    """Count the pairs of words that change places; only words with one counterpart count."""
    sources, targets = zip(*phrase.links, strict=True)
    single = [(s, t) for s, t in phrase.links if sources.count(s) == targets.count(t) == 1]
    return sum(a < c and b > d for a, b in single for c, d in single)


def _compared(
    said: Mapping[str, str], phrases: Sequence[AlignedPair], texts: Mapping[str, Sequence[str]]
) -> Figure:
    """Write what is said of one sentence; draw how good all translations are, by length."""
    figure = new_figure(10.5, 5.0)
    axes = figure.subplot_mosaic([["said", "said"], ["exact", "bleu"]], height_ratios=[2, 4])
    axes["said"].set_axis_off()
    axes["said"].set_ylim(len(said), -0.5)
    for line, (who, text) in enumerate(said.items()):
        axes["said"].text(0.13, line, who, ha="right", fontweight="bold")
        axes["said"].text(0.15, line, text, parse_math=False)
    _bars(axes["exact"], "exactly as in the book, %", _percent, phrases, texts)
    _bars(axes["bleu"], "BLEU", bleu, phrases, texts)
    handles, labels = axes["bleu"].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return figure


def _percent(texts: Sequence[str], wanted: Sequence[str]) -> float:
    return 100 * exact_match(texts, wanted)


def _bars(
    axes: Axes,
    title: str,
    judge: Callable[[Sequence[str], Sequence[str]], float],
    phrases: Sequence[AlignedPair],
    texts: Mapping[str, Sequence[str]],
) -> None:
    """Draw the figures of each translator, for all sentences, then from short to long."""
    wanted, lengths = zip(*((one.target, len(one.source_words)) for one in phrases), strict=True)
    size = ceil(len(phrases) / PARTS)
    parts = [slice(start, start + size) for start in range(0, len(phrases), size)]
    for place, (name, some) in enumerate(texts.items()):
        heights = [judge(some[part], wanted[part]) for part in (slice(None), *parts)]
        at = [n + 0.4 * place - 0.2 for n in range(len(heights))]
        axes.bar_label(axes.bar(at, heights, 0.38, label=name), fmt="%.0f")
    names = [f"{lengths[part][0]}–{lengths[part][-1]}\nwords" for part in parts]
    axes.set_xticks(range(len(names) + 1), [f"all\n{len(phrases)}", *names])
    axes.set(title=title, ylim=(0, 110), yticks=[])
    axes.spines["left"].set_visible(False)
