"""Five tokens: scores, weights and context, cell by cell."""

import torch
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox
from torch import Tensor

import regard
from regard.demo import TOKENS, TRAITS, WORDS
from regard.gallery.plots import matrix_heatmap
from regard.viz import new_figure

HEADER = ("key", "score  q · k / √4", "exp", "weight: share of the sum", "weight × value")


def draw() -> dict[str, Figure]:
    """Draw the four matrices of attention, and the computation of their first row."""
    tokens = torch.tensor(TOKENS)
    scores = regard.ScaledDot()(tokens, tokens)
    context, weights = regard.look(tokens)
    return {
        "steps": _steps(tokens, scores, weights, context),
        "by-hand": _by_hand(tokens, scores, weights, context),
    }


def _steps(tokens: Tensor, scores: Tensor, weights: Tensor, context: Tensor) -> Figure:
    figure = new_figure(10.5, 3.0)
    tokens_at, scores_at, weights_at, context_at = figure.subplots(1, 4, width_ratios=[4, 5, 5, 4])
    matrix_heatmap(tokens_at, tokens, WORDS, TRAITS, title="tokens $X$", cell_format=".1f")
    matrix_heatmap(
        scores_at, scores, (), WORDS, title=r"scores $XX^\top/\sqrt{4}$", cell_format=".2f"
    )
    matrix_heatmap(
        weights_at, weights, (), WORDS, title="weights: softmax of each row", cell_format=".2f"
    )
    matrix_heatmap(
        context_at, context, (), TRAITS, title="context: weights $X$", vmax=1.0, cell_format=".2f"
    )
    return figure


def _by_hand(tokens: Tensor, scores: Tensor, weights: Tensor, context: Tensor) -> Figure:
    """Write out the first row: score, weight and weighted value of each key."""
    powers = scores[0].exp()
    lines = [
        (
            word,
            f"{_product(tokens[0], tokens[key])} / 2 = {scores[0, key]:.2f}",
            f"{powers[key]:.2f}",
            f"{powers[key]:.2f} / {powers.sum():.2f} = {weights[0, key]:.2f}",
            _vector(weights[0, key] * tokens[key]),
        )
        for key, word in enumerate(WORDS)
    ]
    lines.append(("sum", "", f"{powers.sum():.2f}", f"{weights[0].sum():.2f}", _vector(context[0])))
    figure = new_figure(10.5, 3.0)
    axes = figure.subplots()
    axes.set_axis_off()
    axes.set_title(f"the first row: query {WORDS[0]}")
    table = axes.table(
        lines,
        colLabels=HEADER,
        colWidths=[0.11, 0.36, 0.08, 0.23, 0.24],
        cellLoc="center",
        edges="horizontal",
        bbox=Bbox.unit(),
    )
    table.auto_set_font_size(False)
    table.set_fontsize(10)
    for cell in table.get_celld().values():
        cell.set_linewidth(0.5)
    return figure


def _product(query: Tensor, key: Tensor) -> str:
    pairs = zip(query.tolist(), key.tolist(), strict=True)
    return "(" + " + ".join(f"{a:g}·{b:g}" for a, b in pairs) + ")"


def _vector(values: Tensor) -> str:
    return "(" + ", ".join(f"{value:.2f}" for value in values.tolist()) + ")"
