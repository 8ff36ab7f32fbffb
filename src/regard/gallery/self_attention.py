"""Self-attention: each word looks at the words of its own sentence, and each head in its way."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from regard.analysis import head_statistics
from regard.data.phrasebook import load_phrasebook
from regard.demo.models import load_or_train
from regard.gallery.example_sentence import looks, the_cat
from regard.gallery.figure_page import BLUE, GREEN, ORANGE
from regard.gallery.word_map import word_map
from regard.trace import Array, Kind, Trace
from regard.viz.heatmap import new_figure

JUDGED = 100  # held-out phrases over which shares are the mean
PLACES = {"previous": BLUE, "itself": ORANGE, "following": GREEN}
STACKS: dict[str, Kind] = {"encoder": "self", "decoder": "causal"}


def draw() -> dict[str, Figure]:
    """Draw every head of the encoder and of the decoder, then what each head does."""
    run = load_or_train(to="fr")
    trace = looks(run, the_cat())
    others = [looks(run, phrase) for phrase in load_phrasebook("fr", train=0).valid[:JUDGED]]
    maps = {name: _every_head(trace, kind) for name, kind in STACKS.items()}
    return {**maps, "what-each-does": _bars(others)}


def _every_head(trace: Trace, kind: Kind) -> Figure:
    """Draw a row of maps for each layer."""
    layers = trace.layers(kind)
    words = [piece.strip() for piece in trace.tokens[layers[0].queries].pieces]
    figure = new_figure(2.6 * len(layers[0].heads), 2.8 * len(layers))
    panels = figure.subplots(len(layers), len(layers[0].heads), squeeze=False)
    for number, (look, row) in enumerate(zip(layers, panels, strict=True)):
        assert look.weights is not None, "a trace of one sentence keeps all weights"
        for head, axes in enumerate(row):
            queries = words if head == 0 else [""] * len(words)
            title = f"layer {number}, head {head}: {head_statistics(trace, look).roles[head]}"
            image = word_map(axes, look.weights[head], queries, words, title=title)
    figure.colorbar(image, ax=panels, label="weight", shrink=0.6)
    return figure


def _bars(traces: Sequence[Trace]) -> Figure:
    """Draw how much of each head's weight goes to the word before, to itself and to the next."""
    figure = new_figure(9.5, 4.2)
    for axes, (stack, kind) in zip(figure.subplots(1, 2), STACKS.items(), strict=True):
        shares = _shares(traces, kind)
        names = [f"layer {n}, head {h}" for n, h in np.ndindex(*shares.shape[1:])]
        left = np.zeros(len(names))
        for (place, colour), share in zip(PLACES.items(), shares, strict=True):
            axes.barh(names, share.ravel(), left=left, color=colour, label=place)
            left += share.ravel()
        axes.barh(names, 1 - left, left=left, color="#dfe2e7", label="other words")
        axes.set(title=stack, xlabel="share of the weight", xlim=(0, 1))
        axes.invert_yaxis()
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=4)
    return figure


def _shares(traces: Sequence[Trace], kind: Kind) -> Array:
    """Give mean shares of the weight: (place, layer, head)."""
    found = [[head_statistics(one, look) for look in one.layers(kind)] for one in traces]
    shares = [[[getattr(layer, place) for layer in one] for one in found] for place in PLACES]
    means: Array = np.mean(shares, axis=1)
    return means
