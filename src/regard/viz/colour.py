"""Weights as colours: one perceptually uniform scale, readable in greyscale and without colours."""

import os
import sys
from collections.abc import Mapping
from typing import Literal, TypeAlias, cast, get_args

from regard.errors import RegardError

ColourDepth: TypeAlias = Literal["24-bit", "256", "plain"]
Colour: TypeAlias = tuple[int, int, int]

# Nine samples of cividis (Nuñez, Anderton and Renslow 2018), made so that readers with and without
# colour vision deficiency see the same order.
CIVIDIS: tuple[Colour, ...] = (
    (0, 34, 78),
    (26, 56, 111),
    (67, 78, 108),
    (97, 101, 111),
    (125, 124, 120),
    (155, 148, 118),
    (188, 174, 108),
    (222, 201, 88),
    (254, 232, 56),
)
# The nearest of xterm's 256 colours whose luminance still increases.
XTERM = (17, 18, 60, 243, 246, 144, 185, 227)
XTERM_DARK_COUNT = 4  # the first ones need white text
SHADES = " .:-=+*x#@"
SCALE_COLUMNS = 20
NORMALISED_NOTE = "scaled to the largest of this map"
BLACK: Colour = (0, 0, 0)
WHITE: Colour = (255, 255, 255)


def resolve_depth(colour: str | None) -> ColourDepth:
    """Return the colour depth that was asked for, or what standard output supports."""
    if colour is None:
        # a program without a console, or whose caller closed stdout, has none
        is_terminal = sys.stdout is not None and sys.stdout.isatty()
        return detect_depth(os.environ, is_terminal)
    if colour not in get_args(ColourDepth):
        choices = ", ".join(map(repr, get_args(ColourDepth)))
        raise RegardError(f"colour must be one of {choices}, or None, but it is {colour!r}")
    return cast(ColourDepth, colour)


def detect_depth(environment: Mapping[str, str], is_terminal: bool) -> ColourDepth:
    """Return how many colours may be used: NO_COLOR forbids them, FORCE_COLOR requests them."""
    terminal = environment.get("TERM", "")
    is_forced = environment.get("FORCE_COLOR", "") not in ("", "0")
    if environment.get("NO_COLOR") or not (is_forced or (is_terminal and terminal != "dumb")):
        return "plain"
    if environment.get("COLORTERM") in ("truecolor", "24bit") or terminal.endswith("-direct"):
        return "24-bit"
    return "256" if is_forced or "256color" in terminal else "plain"


def cividis(intensity: float) -> Colour:
    """Return the colour of an intensity from 0 (dark blue) to 1 (bright yellow)."""
    position = min(max(intensity, 0.0), 1.0) * (len(CIVIDIS) - 1)
    low = min(int(position), len(CIVIDIS) - 2)
    red, green, blue = (
        round(start + (end - start) * (position - low))
        for start, end in zip(CIVIDIS[low], CIVIDIS[low + 1], strict=True)
    )
    return red, green, blue


def contrast_colour(background: Colour) -> Colour:
    """Return black or white, whichever is easier to read on a background."""
    # At a luminance of 0.18 both have the same contrast.
    return BLACK if relative_luminance(background) > 0.18 else WHITE


def relative_luminance(colour: Colour) -> float:
    """Return the relative luminance of an sRGB colour, from 0 to 1 (WCAG 2)."""
    red, green, blue = (
        value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4
        for value in (channel / 255 for channel in colour)
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def paint(text: str, intensity: float, depth: ColourDepth) -> str:
    """Return a text on a background of an intensity, with ANSI codes."""
    if depth == "plain":
        return text
    if depth == "256":
        step = _step(intensity, len(XTERM))
        foreground = 231 if step < XTERM_DARK_COUNT else 16
        return f"\x1b[48;5;{XTERM[step]};38;5;{foreground}m{text}\x1b[0m"
    background = cividis(intensity)
    back, front = (
        ";".join(map(str, colour)) for colour in (background, contrast_colour(background))
    )
    return f"\x1b[48;2;{back};38;2;{front}m{text}\x1b[0m"


def paint_half_block(upper: float, lower: float | None, depth: ColourDepth) -> str:
    """Return two intensities, one above the other, in one character; the lower may be absent."""
    front = _ansi_colour(upper, depth)
    back = "" if lower is None else f";48;{_ansi_colour(lower, depth)}"
    return f"\x1b[38;{front}{back}m▀\x1b[0m"


def shade(intensity: float) -> str:
    """Return the ASCII character whose darkness stands for an intensity."""
    return SHADES[_step(intensity, len(SHADES))]


def colour_scale(vmax: float, has_overflow: bool, depth: ColourDepth) -> str:
    """Return the legend: the scale from 0 to `vmax`, and whether a weight is above it."""
    if depth == "plain":
        steps = f"[{SHADES}]"
    else:
        intensities = (step / (SCALE_COLUMNS - 1) for step in range(SCALE_COLUMNS))
        steps = "".join(paint(" ", intensity, depth) for intensity in intensities)
    return f" 0 {steps} {vmax:.3g}{' or more' if has_overflow else ''}"


def _ansi_colour(intensity: float, depth: ColourDepth) -> str:
    if depth == "256":
        return f"5;{XTERM[_step(intensity, len(XTERM))]}"
    return "2;" + ";".join(map(str, cividis(intensity)))


def _step(intensity: float, steps: int) -> int:
    return min(max(int(intensity * steps), 0), steps - 1)
