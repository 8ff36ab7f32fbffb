"""Cross-attention to an image: letters of a digit's name attend to patches of its image."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from torch import Tensor

from regard.gallery.figure_page import GREY, ORANGE
from regard.gallery.spelling import (
    MAX_LENGTH,
    NAMES,
    Digits,
    Speller,
    accuracy,
    load_split,
    train_speller,
)
from regard.viz import new_figure, set_titles

SHOWN = (2, 3, 4, 5, 6, 7)  # pairs of names with the same first letter
MAX_WEIGHT = 0.6  # drawn opaque
IMAGE_OPACITY = 0.4  # of the image below the weights


def draw() -> dict[str, Figure]:
    """Train a speller; draw its cross-attention, and how many letters need the image."""
    train, test = load_split()
    speller = train_speller(train)
    names, weights = speller.spell(test.images)
    caption = f"{accuracy(names, test.labels):.1%} of {len(names)} test images are named correctly"
    examples = [_example(digit, test, names) for digit in SHOWN]
    means = [(test.images[n], names[n], weights[n].mean(dim=0)) for n in examples]
    last = examples[-1]
    heads = [(test.images[last], names[last], head) for head in weights[last]]
    return {
        "letter-by-letter": _rows(means, [""] * len(means), f"mean over heads · {caption}"),
        "head-by-head": _rows(heads, [f"head {n}" for n in range(len(heads))]),
        "letters-with-image": _accuracy_by_visible_letters(speller, test),
    }


def _example(digit: int, test: Digits, names: Sequence[str]) -> int:
    """Return the first correctly named image of a digit, or its first image."""
    images = [n for n, label in enumerate(test.labels.tolist()) if label == digit]
    return next((n for n in images if names[n] == NAMES[digit]), images[0])


def _rows(
    examples: Sequence[tuple[Tensor, str, Tensor]], titles: Sequence[str], caption: str = ""
) -> Figure:
    """Draw a row per image: the image, then the weights of each letter over it."""
    figure = new_figure(1.25 * (1 + MAX_LENGTH), 1.4 * len(examples))
    panels = figure.subplots(len(examples), 1 + MAX_LENGTH)
    for (image, name, weights), title, row in zip(examples, titles, panels, strict=True):
        for axes in row[len(name) + 2 :]:
            axes.set_axis_off()
        _frame(row[0], title).imshow(image.numpy(), cmap="gray_r")
        for axes, letter, letter_weights in zip(row[1:], [*name, "end"], weights, strict=False):
            _overlay(_frame(axes, letter), image, letter_weights)
    set_titles(figure, None, caption)
    return figure


def _frame(axes: Axes, title: str) -> Axes:
    """Prepare axes with a grid of 4 × 4 patches."""
    axes.set_title(title)
    axes.set(xticks=[1.5, 3.5, 5.5], yticks=[1.5, 3.5, 5.5], xticklabels=[], yticklabels=[])
    axes.grid(color=GREY, linewidth=0.3)
    axes.tick_params(length=0)
    axes.spines[:].set(visible=True, color=GREY, linewidth=0.5)
    return axes


def _overlay(axes: Axes, image: Tensor, weights: Tensor) -> None:
    """Draw an image with the weight of each patch as the opacity of a colour over it."""
    axes.imshow(image.numpy(), cmap="gray_r", vmin=0, vmax=1 / IMAGE_OPACITY)
    overlay = np.full((4, 4, 4), to_rgba(ORANGE))  # (row, column, RGBA)
    overlay[..., 3] = (weights.view(4, 4) / MAX_WEIGHT).clamp(max=1).numpy()
    axes.imshow(overlay, extent=(-0.5, 7.5, 7.5, -0.5))


def _accuracy_by_visible_letters(speller: Speller, test: Digits) -> Figure:
    """Draw the accuracy when only the first letters see the image."""
    figure = new_figure(6.4, 3.2)
    axes = figure.subplots()
    shares = [
        accuracy(speller.spell(test.images, visible)[0], test.labels)
        for visible in range(MAX_LENGTH)
    ]
    bars = axes.bar(range(MAX_LENGTH), shares)
    axes.bar_label(bars, [f"{share:.0%}" for share in shares])
    axes.set(xlabel="first letters that see the image", ylabel="correct names")
    axes.set(ylim=(0, 1.1), yticks=[])
    axes.spines["left"].set_visible(False)
    return figure
