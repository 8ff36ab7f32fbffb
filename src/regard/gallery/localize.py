"""Labels of pictures in the language of the page: a picture is drawn once, then relabelled."""

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from regard.gallery.figure_page import Animation, Picture, text_artists
from regard.viz import font_families, missing_glyphs

if TYPE_CHECKING:
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure


def localize_pictures(pictures: Mapping[str, Picture], translations: Mapping[str, str]) -> None:
    """Replace every label of the pictures that has a translation; leave the others.

    An animation has no SVG to fall back on, so it stays in English if a font is missing.
    """
    has_fonts = not missing_glyphs(translations.values())
    for picture in pictures.values():
        if not isinstance(picture, Animation):
            _localize_figure(picture, translations)
        elif has_fonts:
            for frame in picture.frames:
                _localize_figure(frame, translations)


def localize(text: str, translations: Mapping[str, str]) -> str:
    """Return the translation of a text by the first pattern that matches it.

    In a pattern, `{}` matches a variable part, which is translated in turn.
    """
    for pattern, translation in translations.items():
        match = re.fullmatch(re.escape(pattern).replace(r"\{\}", "(.+?)"), text)
        if match:
            return translation.format(*(localize(part, translations) for part in match.groups()))
    return text


def _localize_figure(figure: "Figure", translations: Mapping[str, str]) -> None:
    for axis in _visible_axes(figure):
        _localize_ticks(axis, translations)
    for artist in text_artists(figure):
        text = localize(artist.get_text(), translations)
        if text != artist.get_text():
            artist.set(text=text, fontfamily=font_families())


def _visible_axes(figure: "Figure") -> Iterator["Axis"]:
    for axes in figure.axes:
        if axes.axison:
            yield from (axes.xaxis, axes.yaxis)


def _localize_ticks(axis: "Axis", translations: Mapping[str, str]) -> None:
    """Set tick labels on the axis itself, which rewrites its text artists at every draw."""
    labels = [label.get_text() for label in axis.get_ticklabels()]
    translated = [localize(label, translations) for label in labels]
    if translated != labels:
        axis.set_ticks(axis.get_ticklocs(), translated, fontfamily=font_families())
