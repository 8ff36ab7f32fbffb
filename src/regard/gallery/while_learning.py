"""Attention while it learns: one head, from chance to alignment."""

import json
from collections.abc import Sequence
from math import ceil
from pathlib import Path
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from regard.analysis import (
    AlignmentHead,
    best_alignment_head,
    best_head_from_weights,
    word_level_cross_attention,
)
from regard.data.phrasebook import AlignedPair, load_phrasebook
from regard.demo.models import load_or_train
from regard.gallery.example_sentence import looks, the_cat
from regard.gallery.figure_page import GREY, ORANGE, Moving
from regard.gallery.word_map import word_map
from regard.runs import Run, load
from regard.trace import Array
from regard.viz.heatmap import new_figure

JUDGED = 50  # held-out phrases over which errors are measured
ACROSS = 4  # frames side by side
PACE = 700  # milliseconds of a frame; the last one stays longer


class Frame(NamedTuple):
    """What the model did after so many steps."""

    step: int
    weights: Array  # of the head on the sentence, (French word, English word)
    errors: Array  # of every head on the held-out phrases, (layer, head)


def draw() -> dict[str, Figure | Moving]:
    """Draw the head that aligns best in the end, as it was along the way."""
    run = _watched()
    judged = load_phrasebook("fr", train=0).valid[:JUDGED]
    gold = [phrase.links for phrase in judged]
    best = best_alignment_head([looks(run, phrase) for phrase in judged], gold)
    frames = [_frame(step, then, best, judged) for step, then in _history(run).items()]
    return {"frames": _still(frames, best), "moving": _moving(frames, best)}


def _watched() -> Run:
    """Give a translator that kept snapshots; an older demo may not have."""
    run = load_or_train(to="fr")
    return run if run.folder.snapshots else load_or_train(to="fr", near=Path("nowhere"))


def _history(run: Run) -> dict[int, Run]:
    """Load the run as it was at each snapshot, and at its end."""
    path = run.folder.path
    then = {
        step: load(path, checkpoint=snapshot) for step, snapshot in run.folder.snapshots.items()
    }
    last = json.loads(run.folder.log.read_text().splitlines()[-1])["step"]
    return {**then, last: run}


def _frame(step: int, run: Run, best: AlignmentHead, judged: Sequence[AlignedPair]) -> Frame:
    weights, _, _ = word_level_cross_attention(looks(run, the_cat()), best.row)
    others = [word_level_cross_attention(looks(run, phrase), best.row)[0] for phrase in judged]
    errors = best_head_from_weights(others, [phrase.links for phrase in judged]).values
    return Frame(step, weights[best.layer, best.head], errors)


def _still(frames: Sequence[Frame], best: AlignmentHead) -> Figure:
    """Draw all frames and, behind them, how wrong every head was at each."""
    rows = ceil((len(frames) + 1) / ACROSS)
    figure = new_figure(2.7 * ACROSS, 2.9 * rows)
    panels = figure.subplots(rows, ACROSS, squeeze=False).ravel()
    for axes in panels[len(frames) + 1 :]:
        axes.set_axis_off()
    for axes, frame in zip(panels, frames, strict=False):
        _draw(axes, frame, best)
    _curves(panels[len(frames)], frames, best)
    return figure


def _draw(axes: Axes, frame: Frame, best: AlignmentHead) -> None:
    phrase = the_cat()
    gold = [(target, source) for source, target in phrase.links]
    title = f"step {frame.step}: error {frame.errors[best.layer, best.head]:.2f}"
    words = phrase.target_words, phrase.source_words
    word_map(axes, frame.weights, *words, title=title, gold=gold)


def _curves(axes: Axes, frames: Sequence[Frame], best: AlignmentHead) -> None:
    for layer, heads in enumerate(zip(*(frame.errors for frame in frames), strict=True)):
        for head, errors in enumerate(zip(*heads, strict=True)):
            chosen = (layer, head) == (best.layer, best.head)
            colour, width = (ORANGE, 2.5) if chosen else (GREY, 0.8)
            axes.plot(errors, color=colour, linewidth=width, zorder=2 + chosen)
    axes.set_xticks(range(len(frames)), [str(frame.step) for frame in frames])
    axes.set(title="alignment error of every head", xlabel="step", ylim=(0, 1))


def _moving(frames: Sequence[Frame], best: AlignmentHead) -> Moving:
    """Show one frame after the other, and the last one for longer."""
    figures = [new_figure(4.4, 4.8) for _ in frames]
    for figure, frame in zip(figures, frames, strict=True):
        figure.set_layout_engine("constrained", h_pad=0.12, w_pad=0.12)
        _draw(figure.subplots(), frame, best)
    return Moving(figures, [PACE] * (len(figures) - 1) + [4 * PACE])
