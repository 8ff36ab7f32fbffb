"""Self-attention over five words, step by step: scores, weights, context, and heat maps."""

from collections.abc import Callable, Sequence
from math import ceil
from pathlib import Path

import torch

from regard._support.extras import MissingExtraError
from regard.attention import AttentionOutput, ScaledDot, look
from regard.masks import causal
from regard.viz import QUERY_KEY, plot_heatmap, render_heatmap, render_strongest, save_figure

WORDS = ("kitten", "train", "horse", "pebble", "cat")
"""The five words."""

TRAITS = ("alive", "moves", "small", "thing")
"""What the components of a word's vector mean."""

TOKENS = (
    (1.0, 0.0, 1.0, 0.0),
    (0.0, 1.0, 0.0, 1.0),
    (1.0, 1.0, 0.0, 0.0),
    (0.0, 0.0, 1.0, 1.0),
    (1.0, 0.5, 0.5, 0.0),
)
"""The vector of each word, with one component per trait."""

TITLE = "Attention weights"
INTRODUCTION = """\
Attention: each word attends to all words and takes a weighted mean of them.

Five words, each a vector of four features:
"""

NEXT_STEPS = """\
Next, in Python:

    import regard, torch
    tokens = torch.rand(5, 4)
    output = regard.look(tokens, score="gaussian", mask=regard.masks.window(1))
    words = ["one", "two", "three", "four", "five"]
    print(regard.viz.render_heatmap(output.weights, words, words))
"""


def run_five_words(out: Path, echo: Callable[[str], None] = print) -> None:
    """Explain self-attention on five words, and save its heat map.

    Args:
        out: the picture to write.
        echo: prints a text.

    Raises:
        RegardError: if the picture cannot be written.
    """
    tokens = torch.tensor(TOKENS)
    full, masked = look(tokens), look(tokens, mask=causal())
    echo(INTRODUCTION)
    echo(_table(("", *TRAITS), WORDS, TOKENS))
    echo(_explain_steps(tokens, full))
    echo(_render(full, TITLE))
    echo(f"\n{render_strongest(full.weights, WORDS, WORDS)}\n")
    echo("With a causal mask, a word attends only to itself and to the words before it.\n")
    echo(_render(masked, "The same with a causal mask"))
    echo(f"\n{_save_picture(full, out)}\n")
    echo(NEXT_STEPS)


def _save_picture(output: AttentionOutput, out: Path) -> str:
    try:
        figure = plot_heatmap(output.weights, WORDS, WORDS, title=TITLE, vmax=_scale_end(output))
    except MissingExtraError as error:
        return f"No picture was saved: {error}"
    save_figure(figure, out)
    return f"Wrote the first heat map to {out}"


def _explain_steps(tokens: torch.Tensor, output: AttentionOutput) -> str:
    """Return the three steps of attention for the first word."""
    scores = ScaledDot()(tokens, tokens)
    moves = output.weights[0] * tokens[:, 1]
    return f"""
1. Score: words with more in common have a higher scaled dot product.

{_table(("", *WORDS), WORDS[:1], scores[:1].tolist())}

2. Softmax: the scores of a word become weights that sum to 1.

{_table(("", *WORDS), WORDS[:1], output.weights[:1].tolist())}

3. Weighted sum: all words, each times its weight, add up to the word's context.

{_table(("", *TRAITS), WORDS[:1], output.context[:1].tolist())}

The kitten, whose "moves" was 0, now has {moves.sum():.2f}, of which
{moves[2]:.2f} comes from the horse, {moves[4]:.2f} from the cat and {moves[1]:.2f} from the train.
"""


def _table(header: Sequence[str], words: Sequence[str], rows: Sequence[Sequence[float]]) -> str:
    lines = ["".join(f"{name:>8}" for name in header)]
    for word, row in zip(words, rows, strict=True):
        lines.append(f"{word:>8}" + "".join(f"{value:8.2f}" for value in row))
    return "\n".join(lines)


def _render(output: AttentionOutput, title: str) -> str:
    return render_heatmap(
        output.weights,
        WORDS,
        WORDS,
        title=title,
        axis_titles=QUERY_KEY,
        vmax=_scale_end(output),
    )


def _scale_end(output: AttentionOutput) -> float:
    """Round the largest weight up to a multiple of 0.05, so that the scale shows differences."""
    return ceil(20 * output.weights.max().item()) / 20
