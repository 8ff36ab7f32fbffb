"""Attention during training: one head, from random weights to an alignment."""

from collections.abc import Sequence
from math import ceil
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from regard.analysis import (
    AlignmentHead,
    best_alignment_head,
    word_level_cross_attention,
)
from regard.data.phrasebook import AlignedPair, load_phrasebook
from regard.demo import load_or_train
from regard.gallery.example_sentence import example_pair, trace_pair
from regard.gallery.figure_page import GREY, ORANGE, Animation
from regard.gallery.plots import word_heatmap
from regard.runs import Run, load
from regard.trace import Array
from regard.viz import WRITING_READING, new_figure

EVALUATED = 50  # held-out phrases
COLUMNS = 4
FRAME_MS = 700  # duration of a frame; the last one is shown longer


class Frame(NamedTuple):
    """The state of the model at one training step."""

    step: int
    weights: Array  # of the head on the example sentence, (French word, English word)
    errors: Array  # alignment error rate of every head, (layer, head)


def draw() -> dict[str, Figure | Animation]:
    """Draw the head that aligns best at the end of training, at each snapshot."""
    run = load_or_train(to="fr", snapshots=True)
    evaluated = load_phrasebook("fr", train=0).valid[:EVALUATED]
    gold = [phrase.links for phrase in evaluated]
    best = best_alignment_head([trace_pair(run, phrase) for phrase in evaluated], gold)
    frames = [_frame(step, past, best, evaluated) for step, past in _snapshots(run).items()]
    return {"frames": _draw_frames(frames, best), "animation": _animate(frames, best)}


def _snapshots(run: Run) -> dict[int, Run]:
    """Load the run as of each snapshot, by step, and as of its end."""
    path = run.folder.path
    snapshots = {
        step: load(path, checkpoint=snapshot) for step, snapshot in run.folder.snapshots.items()
    }
    last = run.folder.read_log()[-1]["step"]
    return {**snapshots, last: run}


def _frame(step: int, run: Run, best: AlignmentHead, evaluated: Sequence[AlignedPair]) -> Frame:
    weights, _, _ = word_level_cross_attention(trace_pair(run, example_pair()))
    traces = [trace_pair(run, phrase) for phrase in evaluated]
    errors = best_alignment_head(traces, [phrase.links for phrase in evaluated]).values
    return Frame(step, weights[best.layer, best.head], errors)


def _draw_frames(frames: Sequence[Frame], best: AlignmentHead) -> Figure:
    """Draw all frames, then the error curves of all heads."""
    rows = ceil((len(frames) + 1) / COLUMNS)
    figure = new_figure(2.7 * COLUMNS, 2.9 * rows)
    figure.set_layout_engine("constrained", h_pad=0.12)  # titles stand clear of the maps above
    panels = figure.subplots(rows, COLUMNS, squeeze=False).ravel()
    for axes in panels[len(frames) + 1 :]:
        axes.set_axis_off()
    for axes, frame in zip(panels, frames, strict=False):
        _draw_frame(axes, frame, best)
    _draw_curves(panels[len(frames)], frames, best)
    return figure


def _draw_frame(axes: Axes, frame: Frame, best: AlignmentHead) -> None:
    phrase = example_pair()
    gold = [(target, source) for source, target in phrase.links]
    title = f"step {frame.step}: AER {frame.errors[best.layer, best.head]:.2f}"
    words = phrase.target_words, phrase.source_words
    word_heatmap(axes, frame.weights, *words, title=title, axis_titles=WRITING_READING, gold=gold)


def _draw_curves(axes: Axes, frames: Sequence[Frame], best: AlignmentHead) -> None:
    for layer, heads in enumerate(zip(*(frame.errors for frame in frames), strict=True)):
        for head, errors in enumerate(zip(*heads, strict=True)):
            chosen = (layer, head) == (best.layer, best.head)
            colour, width = (ORANGE, 2.5) if chosen else (GREY, 0.8)
            axes.plot(errors, color=colour, linewidth=width, zorder=2 + chosen)
    axes.set_xticks(range(len(frames)), [str(frame.step) for frame in frames])
    axes.set(title="alignment error rate of every head", xlabel="step", ylim=(0, 1))


def _animate(frames: Sequence[Frame], best: AlignmentHead) -> Animation:
    figures = [new_figure(4.4, 4.8) for _ in frames]
    for figure, frame in zip(figures, frames, strict=True):
        figure.set_layout_engine("constrained", h_pad=0.12, w_pad=0.12)
        _draw_frame(figure.subplots(), frame, best)
    return Animation(figures, [FRAME_MS] * (len(figures) - 1) + [4 * FRAME_MS])
