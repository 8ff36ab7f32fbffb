"""Five tokens: scores, weights and context, cell by cell."""

import torch
from matplotlib.figure import Figure

import regard
from regard.five_words import TOKENS, TRAITS, WORDS
from regard.gallery.panels import cells
from regard.pictures.figure import blank


def draw() -> dict[str, Figure]:
    """Draw the four matrices of attention, and the first row of them by hand."""
    tokens = torch.tensor(TOKENS)
    scores = regard.ScaledDot()(tokens, tokens)
    context, weights = regard.look(tokens)
    return {
        "steps": _steps(tokens, scores, weights, context),
        "by-hand": _by_hand(tokens, scores, weights, context),
    }


def _steps(
    tokens: torch.Tensor, scores: torch.Tensor, weights: torch.Tensor, context: torch.Tensor
) -> Figure:
    figure = blank(11, 3.2)
    panels = figure.subplots(1, 4, width_ratios=[4, 5, 5, 4])
    cells(panels[0], tokens, WORDS, TRAITS, title="tokens $X$", written=".1f")
    cells(panels[1], scores, WORDS, WORDS, title=r"scores $XX^\top\!/\sqrt{4}$", written=".2f")
    cells(panels[2], weights, WORDS, WORDS, title="weights: softmax of each row", written=".2f")
    cells(panels[3], context, WORDS, TRAITS, title="context: weights $X$", top=1, written=".2f")
    return figure


def _by_hand(
    tokens: torch.Tensor, scores: torch.Tensor, weights: torch.Tensor, context: torch.Tensor
) -> Figure:
    """Spell out how the first word looks at each, and what it gathers from each."""
    figure = blank(11, 3.4)
    axes = figure.subplots()
    axes.set_axis_off()
    exponentials = scores[0].exp()
    header = [
        "the key",
        "score: q · k / √4",
        "e^score",
        "weight: share of the sum",
        "weight × value",
    ]
    lines = []
    for key, word in enumerate(WORDS):
        products = " + ".join(
            f"{a:g}·{b:g}" for a, b in zip(tokens[0].tolist(), tokens[key].tolist(), strict=True)
        )
        total, share = exponentials.sum(), weights[0, key]
        lines.append(
            [
                word,
                f"({products}) / 2 = {scores[0, key]:.2f}",
                f"{exponentials[key]:.2f}",
                f"{exponentials[key]:.2f} / {total:.2f} = {share:.2f}",
                _vector(share * tokens[key]),
            ]
        )
    lines.append(
        ["sum", "", f"{exponentials.sum():.2f}", f"{weights[0].sum():.2f}", _vector(context[0])]
    )
    table = axes.table(
        lines, colLabels=header, colWidths=[0.1, 0.34, 0.1, 0.24, 0.22], loc="center"
    )
    table.auto_set_font_size(False)
    table.set_fontsize(10)
    table.scale(1, 1.9)
    return figure


def _vector(numbers: torch.Tensor) -> str:
    return "(" + ", ".join(f"{number:.2f}" for number in numbers.tolist()) + ")"
