"""Attention at work on five words: scores, weights, context, and pictures of them."""

from collections.abc import Callable, Sequence
from math import ceil
from pathlib import Path

import torch

from regard.attention import AttentionOutput, ScaledDot, look
from regard.masks import causal
from regard.viz import heatmap, terminal

WORDS = ("kitten", "train", "horse", "pebble", "cat")
TRAITS = ("alive", "moves", "small", "thing")
TOKENS = (
    (1.0, 0.0, 1.0, 0.0),
    (0.0, 1.0, 0.0, 1.0),
    (1.0, 1.0, 0.0, 0.0),
    (0.0, 0.0, 1.0, 1.0),
    (1.0, 0.5, 0.5, 0.0),
)

TITLE = "Where each word looks"
OPENING = """\
Attention: each word looks at all words, and gathers what it finds.

Five words, each told by four numbers:
"""

NEXT = """\
To try next, in Python:

    import regard, torch
    tokens = torch.rand(5, 4)
    looked = regard.look(tokens, score="gaussian", mask=regard.masks.window(1))
    words = ["one", "two", "three", "four", "five"]
    print(regard.viz.terminal.render_heatmap(looked.weights, words, words))
"""


def five_words(out: Path, say: Callable[[str], None] = print) -> None:
    """Show attention at work on five words, and save the picture of it."""
    tokens = torch.tensor(TOKENS)
    freely, backwards = look(tokens), look(tokens, mask=causal())
    say(OPENING)
    say(_table(("", *TRAITS), WORDS, TOKENS))
    say(_steps(tokens, freely))
    say(_picture(freely, TITLE))
    say(f"\n{terminal.render_strongest(freely.weights, WORDS, WORDS)}\n")
    say("With a causal mask, a word may look only at itself and at the words before it.\n")
    say(_picture(backwards, "The same, looking back only"))
    _save(freely, TITLE, out)
    say(f"\nThe first of the two maps is now also a picture: {out}\n")
    say(NEXT)


def _steps(tokens: torch.Tensor, looked: AttentionOutput) -> str:
    """Tell the three steps of attention as the first word takes them."""
    scores = ScaledDot()(tokens, tokens)
    moves = looked.weights[0] * tokens[:, 1]
    return f"""
1. Score: the more two words share, the higher their (scaled dot product) score.

{_table(("", *WORDS), WORDS[:1], scores[:1].tolist())}

2. Weigh: a softmax turns the scores of a word into weights, which sum to one.

{_table(("", *WORDS), WORDS[:1], looked.weights[:1].tolist())}

3. Gather: the sum of all words, each times its weight, is the word's context.

{_table(("", *TRAITS), WORDS[:1], looked.context[:1].tolist())}

The kitten, which did not move, now moves a little: {moves.sum():.2f}, of which
{moves[2]:.2f} comes from the horse, {moves[4]:.2f} from the cat and {moves[1]:.2f} from the train.
"""


def _table(head: Sequence[str], words: Sequence[str], rows: Sequence[Sequence[float]]) -> str:
    lines = ["".join(f"{name:>8}" for name in head)]
    for word, row in zip(words, rows, strict=True):
        lines.append(f"{word:>8}" + "".join(f"{value:8.2f}" for value in row))
    return "\n".join(lines)


def _picture(looked: AttentionOutput, title: str) -> str:
    return terminal.render_heatmap(looked.weights, WORDS, WORDS, title=title, vmax=_top(looked))


def _save(looked: AttentionOutput, title: str, out: Path) -> None:
    drawn = heatmap.plot_heatmap(looked.weights, WORDS, WORDS, title=title, vmax=_top(looked))
    heatmap.save_figure(drawn, out)


def _top(looked: AttentionOutput) -> float:
    """Round the greatest weight up to a twentieth: the end of a scale that shows differences."""
    return ceil(20 * looked.weights.max().item()) / 20
