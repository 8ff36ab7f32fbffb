"""Induction heads: how a model of two attention layers copies, and what happens without them."""

import numpy as np
import torch
from matplotlib.figure import Figure

import regard
from regard.analysis import induction_scores
from regard.gallery.copying import LETTERS, Copier, RepeatedTexts, random_texts, train_copier
from regard.gallery.figure_page import BLUE, GREY, ORANGE
from regard.gallery.plots import matrix_heatmap, word_heatmap
from regard.trace import Array
from regard.viz import new_figure

TEST_TEXTS = 200
MIN_INDUCTION_SCORE = 0.5
Head = tuple[int, int]  # layer and index


def draw() -> dict[str, Figure]:
    """Train a copier; draw the scores of its heads, two of them, and the effect of ablation."""
    model = train_copier()
    texts = random_texts(TEST_TEXTS, torch.Generator().manual_seed(1))
    with torch.no_grad(), regard.watch(model, keep="all") as capture:
        model(texts.letters)
    layers = [capture.weights(name) for name in capture.module_names]
    scores = np.stack([induction_scores(weights, texts.letters) for weights in layers])
    previous = np.stack([weights.diagonal(-1, 2, 3).mean((0, 2)).numpy() for weights in layers])
    heads = [(layer, head) for layer, head in np.ndindex(*scores.shape)]
    without = np.array([accuracy_without(model, [head], texts) for head in heads])
    induction = [head for head in heads if scores[head] > MIN_INDUCTION_SCORE]
    # induction heads may be unused; that of the previous token is the one which others build on
    before = min(heads[: scores.shape[1]], key=lambda head: without[heads.index(head)])
    others = [head for head in heads if head not in (*induction, before)]
    best = max(heads, key=lambda head: scores[head])
    return {
        "scores": _draw_scores(scores, previous, without.reshape(scores.shape)),
        "patterns": _draw_patterns([(head, layers[head[0]]) for head in (before, best)], texts),
        "ablation": _draw_ablation(
            {
                "all heads": model.accuracy(texts),
                "without the induction heads": accuracy_without(model, induction, texts),
                "without the previous-token head": accuracy_without(model, [before], texts),
                "without all the others": accuracy_without(model, others, texts),
            }
        ),
    }


def accuracy_without(model: Copier, heads: list[Head], texts: RepeatedTexts) -> float:
    """Return the share of repeated letters that are predicted while some heads are ablated."""
    with regard.edit(model) as edit:
        for layer, head in heads:
            edit[f"layers.{layer}"].heads(head).ablate()
        return model.accuracy(texts)


def _draw_scores(scores: Array, previous: Array, without: Array) -> Figure:
    """Draw three maps of layers × heads."""
    figure = new_figure(9.6, 2.4)
    titles = ("weight on the previous token", "induction score", "copied without the head")
    rows = [f"layer {n}" for n in range(len(scores))]
    columns = [f"head {n}" for n in range(scores.shape[1])]
    for axes, values, title in zip(
        figure.subplots(1, 3), (previous, scores, without), titles, strict=True
    ):
        matrix_heatmap(axes, values, rows, columns, title=title, vmax=1.0, cell_format=".2f")
        rows = [""] * len(rows)
    return figure


def _draw_patterns(heads: list[tuple[Head, torch.Tensor]], texts: RepeatedTexts) -> Figure:
    """Draw two heads over the first text; where an induction head should look is outlined."""
    figure = new_figure(11.0, 5.6)
    letters = [LETTERS[n] for n in texts.letters[0].tolist()]
    end = int(texts.is_copy[0].nonzero().max()) + 1  # random letters follow
    panels = figure.subplots(1, 2)
    for axes, ((layer, head), weights), name in zip(
        panels, heads, ("previous token", "induction"), strict=True
    ):
        image = word_heatmap(
            axes,
            weights[0, head, :end, :end],
            letters[:end],
            letters[:end],
            title=f"{name}: layer {layer}, head {head}",
            gold=_followers(texts, end) if name == "induction" else (),
        )
        axes.tick_params(axis="x", labelrotation=0)
    figure.colorbar(image, ax=panels, label="weight", shrink=0.8)
    return figure


def _followers(texts: RepeatedTexts, end: int) -> list[tuple[int, int]]:
    """Return the cells (query, key) of the second occurrence: the key is the letter to copy."""
    letters, is_copy = texts.letters[0], texts.is_copy[0]
    copied = is_copy.nonzero().flatten().tolist()
    first = next(
        n for n in range(copied[0]) if torch.equal(letters[n : n + len(copied)], letters[copied])
    )
    return [(n - 1, n - copied[0] + first) for n in copied if n < end]


def _draw_ablation(accuracies: dict[str, float]) -> Figure:
    """Draw the share of copied letters with and without heads."""
    figure = new_figure(7.2, 2.6)
    axes = figure.subplots()
    colours = [GREY, ORANGE, ORANGE, BLUE]
    bars = axes.barh(list(accuracies), list(accuracies.values()), color=colours)
    axes.bar_label(bars, [f"{value:.0%}" for value in accuracies.values()], padding=3)
    axes.axvline(1 / len(LETTERS), color=GREY, linewidth=1, linestyle=":")
    axes.set(xlabel="repeated letters predicted", xlim=(0, 1.1), xticks=[])
    axes.invert_yaxis()
    axes.spines["bottom"].set_visible(False)
    return figure
