"""Self-attention: every head of the encoder and the decoder on one sentence."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from regard.analysis import head_statistics
from regard.data.phrasebook import load_phrasebook
from regard.demo import load_or_train
from regard.gallery.example_sentence import example_pair, trace_pair
from regard.gallery.figure_page import BLUE, GREEN, ORANGE
from regard.gallery.plots import word_heatmap
from regard.trace import Array, Kind, Trace
from regard.viz import new_figure

EVALUATED = 100  # held-out phrases over which shares are averaged
POSITIONS = {"previous": BLUE, "itself": ORANGE, "following": GREEN}
STACKS: dict[str, Kind] = {"encoder": "self", "decoder": "causal"}


def draw() -> dict[str, Figure]:
    """Draw every head of the encoder and of the decoder, then the role of each."""
    run = load_or_train(to="fr")
    trace = trace_pair(run, example_pair())
    traces = [
        trace_pair(run, phrase) for phrase in load_phrasebook("fr", train=0).valid[:EVALUATED]
    ]
    maps = {name: _every_head(trace, kind) for name, kind in STACKS.items()}
    return {**maps, "head-roles": _draw_shares(traces)}


def _every_head(trace: Trace, kind: Kind) -> Figure:
    """Draw a row of maps per layer."""
    layers = trace.layers(kind)
    words = [piece.strip() for piece in trace.tokens[layers[0].queries].pieces]
    figure = new_figure(2.6 * len(layers[0].heads), 2.8 * len(layers))
    figure.set_layout_engine("constrained", h_pad=0.12)  # titles stand clear of the maps above
    panels = figure.subplots(len(layers), len(layers[0].heads), squeeze=False)
    for number, (layer, row) in enumerate(zip(layers, panels, strict=True)):
        assert layer.weights is not None, "a trace of one sentence holds full weights"
        for head, axes in enumerate(row):
            queries = words if head == 0 else [""] * len(words)
            title = f"layer {number}, head {head}: {head_statistics(trace, layer).roles[head]}"
            image = word_heatmap(axes, layer.weights[head], queries, words, title=title)
    figure.colorbar(image, ax=panels, label="weight", shrink=0.6)
    return figure


def _draw_shares(traces: Sequence[Trace]) -> Figure:
    """Draw the share of each head's weight on the previous, the same and the following word."""
    figure = new_figure(9.5, 4.2)
    for axes, (stack, kind) in zip(figure.subplots(1, 2), STACKS.items(), strict=True):
        shares = _shares(traces, kind)
        names = [f"layer {n}, head {h}" for n, h in np.ndindex(*shares.shape[1:])]
        left = np.zeros(len(names))
        for (position, colour), share in zip(POSITIONS.items(), shares, strict=True):
            axes.barh(names, share.ravel(), left=left, color=colour, label=position)
            left += share.ravel()
        axes.barh(names, 1 - left, left=left, color="#dfe2e7", label="other words")
        axes.set(title=stack, xlabel="share of the weight", xlim=(0, 1))
        axes.invert_yaxis()
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=4)
    return figure


def _shares(traces: Sequence[Trace], kind: Kind) -> Array:
    """Return the mean share of the weight by (position, layer, head)."""
    statistics = [[head_statistics(trace, m) for m in trace.layers(kind)] for trace in traces]
    shares = [
        [[getattr(layer, position) for layer in layers] for layers in statistics]
        for position in POSITIONS
    ]
    means: Array = np.mean(shares, axis=1)
    return means
