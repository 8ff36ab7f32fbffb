"""Cross-attention: each word of a translation looks at the words that it translates."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from regard.analysis import best_alignment_head, best_head_from_weights, word_level_cross_attention
from regard.data.phrasebook import AlignedPair, load_phrasebook
from regard.decoding import translate
from regard.demo.models import load_or_train
from regard.gallery.example_sentence import looks, the_cat
from regard.gallery.word_map import word_map
from regard.runs import Run
from regard.trace import Array
from regard.viz.heatmap import new_figure, plot_heatmap

JUDGED = 100  # held-out phrases over which heads are compared


def draw() -> dict[str, Figure]:
    """Draw the head that aligns best, then every head."""
    run, phrase = load_or_train(to="fr"), the_cat()
    others = load_phrasebook("fr", train=0).valid[:JUDGED]
    traces, gold = [looks(run, other) for other in others], [other.links for other in others]
    best = best_alignment_head(traces, gold)
    weights_of_others = [word_level_cross_attention(one, best.row)[0] for one in traces]
    errors = best_head_from_weights(weights_of_others, gold).values
    # (layer, head, French word, English word)
    weights, _, _ = word_level_cross_attention(looks(run, phrase), best.row)
    said = f"layer {best.layer}, head {best.head}, where a word is {best.row}"
    large = plot_heatmap(
        weights[best.layer, best.head],
        phrase.target_words,
        phrase.source_words,
        title=_translated(run, phrase),
        caption=f"{said} · outlined: gold alignment",
        marked=_cells(phrase),
    )
    return {"best-head": large, "every-head": _every_head(weights, phrase, errors)}


def _every_head(weights: Array, phrase: AlignedPair, errors: Array) -> Figure:
    layers, heads = errors.shape
    figure = new_figure(2.6 * heads, 2.9 * layers)
    panels = figure.subplots(layers, heads, squeeze=False)
    for layer, row in enumerate(panels):
        for head, axes in enumerate(row):
            words = phrase.target_words if head == 0 else [""] * len(phrase.target_words)
            title = f"layer {layer}, head {head}\nerror {errors[layer, head]:.2f}"
            shown = weights[layer, head]
            image = word_map(
                axes, shown, words, phrase.source_words, title=title, gold=_cells(phrase)
            )
    figure.colorbar(image, ax=panels, label="weight", shrink=0.6)
    return figure


def _cells(phrase: AlignedPair) -> Sequence[tuple[int, int]]:
    """Give the gold alignment as cells of a map: (French word, English word)."""
    return [(target, source) for source, target in phrase.links]


def _translated(run: Run, phrase: AlignedPair) -> str:
    """Tell what the translator makes of the sentence, when nobody holds its hand."""
    (best, *_), *_ = translate(run.model, run.tokenizers, [phrase.source], run.settings.search)
    return f"{phrase.source} → {best.text}"
