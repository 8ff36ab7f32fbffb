"""Bahdanau's attention: a recurrent translator with attention, and the same one without."""

from collections.abc import Callable, Mapping, Sequence
from math import ceil

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from regard.analysis import word_level_cross_attention
from regard.data.phrasebook import AlignedPair, load_phrasebook
from regard.evaluation import bleu, exact_match
from regard.gallery.example_sentence import trace_pair
from regard.gallery.translators import load_with_and_without_attention
from regard.viz import WRITING_READING, new_figure, plot_heatmap

EVALUATED = 200  # held-out phrases
LENGTH_GROUPS = 4


def draw() -> dict[str, Figure]:
    """Draw the alignment of a sentence, and the quality of both translators by length."""
    with_attention, without = load_with_and_without_attention()
    phrases = sorted(
        load_phrasebook("fr", train=0).test[:EVALUATED], key=lambda phrase: len(phrase.source_words)
    )
    sources = [phrase.source for phrase in phrases]
    runs = {"with attention": with_attention, "without": without}
    texts = {name: list(map(str, run.translate(sources))) for name, run in runs.items()}
    shown = most_reordered(phrases, texts["with attention"])
    phrase = phrases[shown]
    weights, _, _ = word_level_cross_attention(trace_pair(with_attention, phrase))
    alignment = plot_heatmap(
        weights[0, 0],
        phrase.target_words,
        phrase.source_words,
        axis_titles=WRITING_READING,
        vmax=1.0,
        caption="outlined: gold alignment",
        outlined=[(target, source) for source, target in phrase.links],
    )
    lines = {"English": phrase.source, "reference": phrase.target}
    lines |= {name: outputs[shown] for name, outputs in texts.items()}
    return {"alignment": alignment, "with-and-without": plot_comparison(lines, phrases, texts)}


def most_reordered(phrases: Sequence[AlignedPair], texts: Sequence[str]) -> int:
    """Return the correctly translated phrase with the most reordering."""
    correct = [n for n, phrase in enumerate(phrases) if phrase.target == texts[n]]
    return max(correct or range(len(phrases)), key=lambda n: crossings(phrases[n]))


def crossings(phrase: AlignedPair) -> int:
    """Count crossing links between words that have a single counterpart."""
    sources, targets = zip(*phrase.links, strict=True)
    single = [(s, t) for s, t in phrase.links if sources.count(s) == targets.count(t) == 1]
    return sum(a < c and b > d for a, b in single for c, d in single)


def plot_comparison(
    lines: Mapping[str, str], phrases: Sequence[AlignedPair], texts: Mapping[str, Sequence[str]]
) -> Figure:
    """Show the translations of one sentence, and the quality of all by length."""
    figure = new_figure(10.5, 5.0)
    axes = figure.subplot_mosaic([["text", "text"], ["exact", "bleu"]], height_ratios=[2, 4])
    axes["text"].set_axis_off()
    axes["text"].set_ylim(len(lines), -0.5)
    for line, (label, text) in enumerate(lines.items()):
        axes["text"].text(0.13, line, label, ha="right", color="dimgray")
        axes["text"].text(0.15, line, text, parse_math=False)
    _bars(axes["exact"], "exact match, %", _percent, phrases, texts)
    _bars(axes["bleu"], "BLEU", bleu, phrases, texts)
    handles, labels = axes["bleu"].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return figure


def _percent(texts: Sequence[str], references: Sequence[str]) -> float:
    return 100 * exact_match(texts, references)


def _bars(
    axes: Axes,
    title: str,
    metric: Callable[[Sequence[str], Sequence[str]], float],
    phrases: Sequence[AlignedPair],
    texts: Mapping[str, Sequence[str]],
) -> None:
    """Draw a metric of each translator, over all sentences and by length."""
    references = [phrase.target for phrase in phrases]
    lengths = [len(phrase.source_words) for phrase in phrases]
    size = ceil(len(phrases) / LENGTH_GROUPS)
    groups = [slice(start, start + size) for start in range(0, len(phrases), size)]
    for series, (name, outputs) in enumerate(texts.items()):
        heights = [metric(outputs[group], references[group]) for group in (slice(None), *groups)]
        x = [n + 0.4 * series - 0.2 for n in range(len(heights))]
        axes.bar_label(axes.bar(x, heights, 0.38, label=name), fmt="%.0f")
    names = [f"{lengths[group][0]}–{lengths[group][-1]}\nwords" for group in groups]
    axes.set_xticks(range(len(names) + 1), [f"all\n{len(phrases)}", *names])
    axes.set(title=title, ylim=(0, 110), yticks=[])
    axes.spines["left"].set_visible(False)
