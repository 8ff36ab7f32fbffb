"""The words of pictures in the language of their page: drawn once, and said again."""

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from regard.gallery.figure_page import Moving, Picture, labels
from regard.viz.fonts import font_families, missing_glyphs

if TYPE_CHECKING:
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure


def put(pictures: Mapping[str, Picture], words: Mapping[str, str]) -> None:
    """Say all that stands in pictures in other words; what is no phrase of theirs stays.

    A moving picture has no SVG to fall back on: if no font has the letters, it stays as it is.
    """
    drawable = not missing_glyphs(words.values())
    for picture in pictures.values():
        if not isinstance(picture, Moving):
            _say(picture, words)
        elif drawable:
            for frame in picture.frames:
                _say(frame, words)


def told(text: str, words: Mapping[str, str]) -> str:
    """Say a text in other words, those of the first phrase that fits.

    In a phrase, `{}` is what varies; it may be a phrase, too.
    """
    for phrase, said in words.items():
        parts = re.fullmatch(re.escape(phrase).replace(r"\{\}", "(.+?)"), text)
        if parts:
            return said.format(*(told(part, words) for part in parts.groups()))
    return text


def _say(figure: "Figure", words: Mapping[str, str]) -> None:
    for axis in _axes(figure):
        _name_ticks(axis, words)
    for label in labels(figure):
        said = told(label.get_text(), words)
        if said != label.get_text():
            label.set(text=said, fontfamily=font_families())


def _axes(figure: "Figure") -> Iterator["Axis"]:
    for axes in figure.axes:
        if axes.axison:
            yield from (axes.xaxis, axes.yaxis)


def _name_ticks(axis: "Axis", words: Mapping[str, str]) -> None:
    """Name ticks anew, for an axis writes their labels by itself whenever it is drawn."""
    labels = [label.get_text() for label in axis.get_ticklabels()]
    said = [told(label, words) for label in labels]
    if said != labels:
        axis.set_ticks(axis.get_ticklocs(), said, fontfamily=font_families())
