"""Cross-attention: each word of a translation attends to the words it translates."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from regard.analysis import best_alignment_head, word_level_cross_attention
from regard.data.phrasebook import AlignedPair, load_phrasebook
from regard.demo import load_or_train
from regard.gallery.example_sentence import example_pair, trace_pair
from regard.gallery.plots import word_heatmap
from regard.trace import Array
from regard.viz import WRITING_READING, new_figure, plot_heatmap

EVALUATED = 100  # held-out phrases on which heads are compared


def draw() -> dict[str, Figure]:
    """Draw the head that aligns best, then every head."""
    run, phrase = load_or_train(to="fr"), example_pair()
    evaluated = load_phrasebook("fr", train=0).valid[:EVALUATED]
    traces = [trace_pair(run, other) for other in evaluated]
    best = best_alignment_head(traces, [other.links for other in evaluated])
    # (layer, head, French word, English word)
    weights, _, _ = word_level_cross_attention(trace_pair(run, phrase))
    head = f"layer {best.layer}, head {best.head}"
    large = plot_heatmap(
        weights[best.layer, best.head],
        phrase.target_words,
        phrase.source_words,
        title=f"{phrase.source} → {run.translate(phrase.source)}",  # its own, not teacher-forced
        axis_titles=WRITING_READING,
        vmax=1.0,
        caption=f"{head} · outlined: gold alignment",
        outlined=_gold_cells(phrase),
    )
    return {"best-head": large, "every-head": _every_head(weights, phrase, best.values)}


def _every_head(weights: Array, phrase: AlignedPair, errors: Array) -> Figure:
    layers, heads = errors.shape
    figure = new_figure(2.6 * heads, 2.9 * layers)
    figure.set_layout_engine("constrained", h_pad=0.12)  # titles stand clear of the maps above
    panels = figure.subplots(layers, heads, squeeze=False)
    for layer, row in enumerate(panels):
        for head, axes in enumerate(row):
            words = phrase.target_words if head == 0 else [""] * len(phrase.target_words)
            title = f"layer {layer}, head {head}\nerror {errors[layer, head]:.2f}"
            image = word_heatmap(
                axes,
                weights[layer, head],
                words,
                phrase.source_words,
                title=title,
                axis_titles=WRITING_READING,
                gold=_gold_cells(phrase),
            )
    figure.colorbar(image, ax=panels, label="weight", shrink=0.6)
    return figure


def _gold_cells(phrase: AlignedPair) -> Sequence[tuple[int, int]]:
    """Return the gold alignment as (French word, English word) cells."""
    return [(target, source) for source, target in phrase.links]
