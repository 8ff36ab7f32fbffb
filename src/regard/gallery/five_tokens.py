"""Five tokens: scores, weights and context, cell by cell."""

import torch
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox
from torch import Tensor

import regard
from regard.demo.five_words import TOKENS, TRAITS, WORDS
from regard.gallery.plots import cells
from regard.viz.heatmap import new_figure

HEADER = ("it looks at", "score  q · k / √4", "exp", "weight: share of the sum", "weight × value")


def draw() -> dict[str, Figure]:
    """Draw the four matrices of attention, and the first row of them by hand."""
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
    cells(tokens_at, tokens, WORDS, TRAITS, title="tokens $X$", written=".1f")
    cells(scores_at, scores, (), WORDS, title=r"scores $XX^\top/\sqrt{4}$", written=".2f")
    cells(weights_at, weights, (), WORDS, title="weights: softmax of each row", written=".2f")
    cells(context_at, context, (), TRAITS, title="context: weights $X$", top=1.0, written=".2f")
    return figure


def _by_hand(tokens: Tensor, scores: Tensor, weights: Tensor, context: Tensor) -> Figure:
    """Spell out how the first word looks at each word, and what it gathers from each."""
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
    axes.set_title(f"the first row: how the {WORDS[0]} looks")
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


def _vector(numbers: Tensor) -> str:
    return "(" + ", ".join(f"{number:.2f}" for number in numbers.tolist()) + ")"
