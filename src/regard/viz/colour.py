"""Weight to colour: one scale from dark to light, readable in grey and without colours."""

from collections.abc import Mapping
from typing import Literal, TypeAlias

Depth: TypeAlias = Literal["24-bit", "256", "plain"]
Colour: TypeAlias = tuple[int, int, int]

# Nine samples of cividis (Nunez, Anderton and Renslow, 2018), made so that readers with
# and without colour blindness see the same order.
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
# The nearest of xterm's 256 colours whose lightness still only grows.
XTERM = (17, 18, 60, 243, 246, 144, 185, 227)
XTERM_DARK = 4  # how many of them want white ink
SHADES = " .:-=+*x#@"
BLACK: Colour = (0, 0, 0)
WHITE: Colour = (255, 255, 255)


def depth(environment: Mapping[str, str], is_terminal: bool) -> Depth:
    """Tell how many colours may be used: NO_COLOR forbids them, FORCE_COLOR asks for them."""
    terminal = environment.get("TERM", "")
    forced = environment.get("FORCE_COLOR", "") not in ("", "0")
    if environment.get("NO_COLOR") or not (forced or (is_terminal and terminal != "dumb")):
        return "plain"
    if environment.get("COLORTERM") in ("truecolor", "24bit") or terminal.endswith("-direct"):
        return "24-bit"
    return "256" if forced or "256color" in terminal else "plain"


def cividis(share: float) -> Colour:
    """Give the colour of a share of the scale, from 0 (dark blue) to 1 (bright yellow)."""
    place = min(max(share, 0.0), 1.0) * (len(CIVIDIS) - 1)
    low = min(int(place), len(CIVIDIS) - 2)
    red, green, blue = (
        round(start + (end - start) * (place - low))
        for start, end in zip(CIVIDIS[low], CIVIDIS[low + 1], strict=True)
    )
    return red, green, blue


def contrast_colour(paper: Colour) -> Colour:
    """Choose black or white, whichever is easier to read on that colour."""
    return BLACK if lightness(paper) > 0.18 else WHITE  # there both have the same contrast


def lightness(colour: Colour) -> float:
    """Give the relative luminance of an sRGB colour, from 0 to 1 (WCAG 2)."""
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in (channel / 255 for channel in colour)
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def paint(text: str, share: float, colours: Depth) -> str:
    """Write text on the colour of a share of the scale."""
    if colours == "plain":
        return text
    if colours == "256":
        step = _step(share, len(XTERM))
        return f"\x1b[48;5;{XTERM[step]};38;5;{231 if step < XTERM_DARK else 16}m{text}\x1b[0m"
    paper = cividis(share)
    back, front = (";".join(map(str, colour)) for colour in (paper, contrast_colour(paper)))
    return f"\x1b[48;2;{back};38;2;{front}m{text}\x1b[0m"


def paint_halves(upper: float, lower: float | None, colours: Depth) -> str:
    """Draw two shares of the scale, one above the other, in one column; the lower may be absent."""
    front = _code(upper, colours)
    back = "" if lower is None else f";48;{_code(lower, colours)}"
    return f"\x1b[38;{front}{back}m▀\x1b[0m"


def shade(share: float) -> str:
    """Give the character whose ink stands for a share of the scale."""
    return SHADES[_step(share, len(SHADES))]


def _code(share: float, colours: Depth) -> str:
    """Name the colour of a share as a terminal wants it."""
    if colours == "256":
        return f"5;{XTERM[_step(share, len(XTERM))]}"
    return "2;" + ";".join(map(str, cividis(share)))


def _step(share: float, steps: int) -> int:
    return min(max(int(share * steps), 0), steps - 1)
