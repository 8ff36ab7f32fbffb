"""Words look at an image: letters spell a digit's name, and each looks at the patches it needs."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from torch import Tensor

from regard.gallery.figure_page import GREY, ORANGE
from regard.gallery.spelling import LONGEST, NAMES, Digits, Speller, digits, learn, right
from regard.viz.heatmap import new_figure, set_titles

SHOWN = (2, 3, 4, 5, 6, 7)  # two by two, their names begin alike
TOP = 0.6  # the weight from which a patch is covered
INK = 0.4  # darkness of an image that is looked at, so that the looks stand out


def draw() -> dict[str, Figure]:
    """Train a speller; draw where letters look, head by head too, and which need the image."""
    learned, held = digits()
    speller = learn(learned)
    names, looks = speller.spell(held.images)
    said = f"{right(names, held.shown):.1%} of {len(names)} held-out images are named rightly"
    chosen = [_example(digit, held, names) for digit in SHOWN]
    means = [(held.images[n], names[n], looks[n].mean(dim=0)) for n in chosen]
    last = chosen[-1]
    apart = [(held.images[last], names[last], look) for look in looks[last]]
    return {
        "letter-by-letter": _rows(means, [""] * len(means), f"mean over heads · {said}"),
        "head-by-head": _rows(apart, [f"head {n}" for n in range(len(apart))]),
        "when-it-is-needed": _needed(speller, held),
    }


def _example(digit: int, held: Digits, names: Sequence[str]) -> int:
    """Find an image of a digit: the first that is named rightly, if one is."""
    images = [n for n, shown in enumerate(held.shown.tolist()) if shown == digit]
    return next((n for n in images if names[n] == NAMES[digit]), images[0])


def _rows(
    spelled: Sequence[tuple[Tensor, str, Tensor]], titles: Sequence[str], caption: str = ""
) -> Figure:
    """Draw a row for each image: as it is, and as each letter of its name looks at it."""
    figure = new_figure(1.25 * (1 + LONGEST), 1.4 * len(spelled))
    panels = figure.subplots(len(spelled), 1 + LONGEST)
    for (image, name, looks), title, row in zip(spelled, titles, panels, strict=True):
        for axes in row[len(name) + 2 :]:
            axes.set_axis_off()
        _frame(row[0], title).imshow(image.numpy(), cmap="gray_r")
        for axes, letter, look in zip(row[1:], [*name, "end"], looks, strict=False):
            _look(_frame(axes, letter), image, look)
    set_titles(figure, None, caption)
    return figure


def _frame(axes: Axes, title: str) -> Axes:
    """Prepare a panel of 4 × 4 patches."""
    axes.set_title(title, fontweight="bold")
    axes.set(xticks=[1.5, 3.5, 5.5], yticks=[1.5, 3.5, 5.5], xticklabels=[], yticklabels=[])
    axes.grid(color=GREY, linewidth=0.3)
    axes.tick_params(length=0)
    axes.spines[:].set(visible=True, color=GREY, linewidth=0.5)
    return axes


def _look(axes: Axes, image: Tensor, look: Tensor) -> None:
    """Draw an image in light ink and, over each patch, a colour as dense as the look at it."""
    axes.imshow(image.numpy(), cmap="gray_r", vmin=0, vmax=1 / INK)
    glass = np.full((4, 4, 4), to_rgba(ORANGE))  # rows, columns, and colour
    glass[..., 3] = (look.view(4, 4) / TOP).clamp(max=1).numpy()
    axes.imshow(glass, extent=(-0.5, 7.5, 7.5, -0.5))


def _needed(speller: Speller, held: Digits) -> Figure:
    """Draw how many names are right if only the first letters may see the image."""
    figure = new_figure(6.4, 3.2)
    axes = figure.subplots()
    shares = [right(speller.spell(held.images, seen)[0], held.shown) for seen in range(LONGEST)]
    bars = axes.bar(range(LONGEST), shares)
    axes.bar_label(bars, [f"{share:.0%}" for share in shares])
    axes.set(xlabel="letters that see the image, from the first", ylabel="names right")
    axes.set(ylim=(0, 1.1), yticks=[])
    axes.spines["left"].set_visible(False)
    return figure
