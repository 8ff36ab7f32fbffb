"""Animate a cross-attention head while it learns, from the snapshots of a run of the demo.

    python tools/demo_model.py --run demo-model-run
    python tools/animate_training.py demo-model-run docs/training.gif

The parameters of every snapshot read the same sentence pair (teacher forcing). The head is the one
with the lowest alignment error rate after training, and frames between two snapshots are blended.
This is how the picture of the README is made.
"""

import argparse
from io import BytesIO
from itertools import pairwise
from pathlib import Path

import numpy as np
from matplotlib.patches import Rectangle
from PIL import Image

from regard.analysis import AlignmentHead, word_level_cross_attention
from regard.data.phrasebook import AlignedPair, load_phrasebook
from regard.demo.showcase import choose_head
from regard.runs import RunFolder, load, trace_translation
from regard.trace import Array
from regard.viz import new_figure

SOURCE = "The white cat broke the cup."
ALIGNMENT_PAIRS = 100  # validation pairs on which the head is chosen
FIGURE_INCHES = (6.4, 4.8)
DOTS_PER_INCH = 110
BLENDED_FRAMES = 5  # from one snapshot to the next
FRAME_MILLISECONDS, LAST_FRAME_MILLISECONDS = 120, 3000
MAX_COLOURS = 128


def main() -> None:
    """Read the arguments and write the animation."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path, help="folder of a run of `regard demo`")
    parser.add_argument("out", type=Path, help="the GIF to write")
    arguments = parser.parse_args()
    frames = make_frames(RunFolder(arguments.run))
    durations = [FRAME_MILLISECONDS] * (len(frames) - 1) + [LAST_FRAME_MILLISECONDS]
    frames[0].save(
        arguments.out,
        save_all=True,
        append_images=frames[1:],
        duration=durations,
        loop=0,
        optimize=True,
    )
    size = arguments.out.stat().st_size / 1024
    print(f"wrote {arguments.out}: {len(frames)} frames, {size:.0f} KiB")


def make_frames(folder: RunFolder) -> list[Image.Image]:
    """Return the frames: one per snapshot, and those blended between them."""
    book = load_phrasebook("fr", train=0)
    pair = next(pair for pair in (*book.test, *book.valid) if pair.source == SOURCE)
    head = choose_head(load(folder.path), book.valid[:ALIGNMENT_PAIRS])
    maps = {step: _weights(folder, step, pair, head) for step in folder.snapshots}
    steps = list(maps)
    frames = [_frame(maps[steps[0]], pair, steps[0], steps[-1])]
    for before, after in pairwise(steps):
        for share in np.linspace(0, 1, BLENDED_FRAMES + 1)[1:]:
            blended = (1 - share) * maps[before] + share * maps[after]
            step = round((1 - share) * before + share * after)
            frames.append(_frame(blended, pair, step, steps[-1]))
    sheet = Image.fromarray(np.concatenate([np.asarray(frame) for frame in frames]))
    palette = sheet.quantize(MAX_COLOURS)
    return [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]


def _weights(folder: RunFolder, step: int, pair: AlignedPair, head: AlignmentHead) -> Array:
    """Return the head's weights (target word, source word) with the parameters of a step."""
    run = load(folder.path, checkpoint=step)
    words = pair.word_spans()
    trace = trace_translation(run.model, run.tokenizers, pair.source, pair.target, words=words)
    weights, _, _ = word_level_cross_attention(trace)
    return weights[head.layer, head.head]


def _frame(weights: Array, pair: AlignedPair, step: int, last_step: int) -> Image.Image:
    """Draw the map, with the step and how far training has come."""
    figure = new_figure(*FIGURE_INCHES)
    figure.set_layout_engine("none")  # every frame has its axes at the same place
    axes = figure.add_axes((0.13, 0.06, 0.85, 0.78))
    axes.imshow(weights, cmap="cividis", vmin=0.0, vmax=1.0, aspect="auto")
    axes.set_yticks(range(len(pair.target_words)), pair.target_words)
    axes.set_xticks(range(len(pair.source_words)), pair.source_words)
    axes.tick_params(length=0, top=True, labeltop=True, bottom=False, labelbottom=False)
    axes.spines[:].set_visible(False)
    figure.text(0.01, 0.85, "writing ↓", color="dimgray")
    figure.text(0.13, 0.93, "reading →", color="dimgray")
    figure.text(0.98, 0.93, f"training step {step:,}", ha="right")
    for source, target in pair.links:
        colour = "black" if weights[target, source] > 0.5 else "white"
        corner = (source - 0.44, target - 0.42)
        axes.add_patch(Rectangle(corner, 0.88, 0.84, fill=False, edgecolor=colour))
    progress = Rectangle((0.13, 0.025), 0.85 * step / last_step, 0.012, facecolor="dimgray")
    figure.add_artist(progress)
    buffer = BytesIO()
    figure.savefig(buffer, format="png", dpi=DOTS_PER_INCH, bbox_inches=None)  # all of one size
    return Image.open(buffer).convert("RGB")


if __name__ == "__main__":
    main()
