"""Fonts for figures: those that have the letters, and which letters none of them has."""

from collections.abc import Iterable
from functools import cache

# matplotlib's own font has no Chinese, Japanese or Korean: also try those that are installed
EAST_ASIAN = (
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "Noto Sans SC",
    "Source Han Sans SC",
    "WenQuanYi Zen Hei",
    "PingFang SC",
    "Hiragino Sans GB",
    "Microsoft YaHei",
    "SimHei",
)


def font_families() -> list[str]:
    """Name the fonts to try, letter by letter."""
    from matplotlib import rcParams

    return [*rcParams["font.family"], *_east_asian()]


def missing_glyphs(texts: Iterable[str]) -> str:
    """Give the letters that no font has, in order; in a figure they would be boxes."""
    letters = dict.fromkeys(letter for text in texts for letter in text if letter > "\u007f")
    known = _letters(tuple(font_families())) if letters else frozenset()
    return "".join(letter for letter in letters if ord(letter) not in known)


@cache
def _east_asian() -> tuple[str, ...]:
    from matplotlib.font_manager import get_font_names

    known = set(get_font_names())
    return tuple(name for name in EAST_ASIAN if name in known) or _newly_installed()


def _newly_installed() -> tuple[str, ...]:
    """Look on the disk: matplotlib's own list is as old as its first use on this computer."""
    from matplotlib.font_manager import findSystemFonts, fontManager

    stems = {name.replace(" ", "").lower().removesuffix("sc") for name in EAST_ASIAN}
    for path in sorted(findSystemFonts()):
        file = path.replace("\\", "/").rpartition("/")[2].replace("-", "").lower()
        if "regular" in file and any(file.startswith(stem) for stem in stems):
            before = len(fontManager.ttflist)
            fontManager.addfont(path)
            return (fontManager.ttflist[before].name,)
    return ()


@cache
def _letters(names: tuple[str, ...]) -> frozenset[int]:
    """List the letters that the fonts have together."""
    from matplotlib.font_manager import FontProperties, fontManager, get_font

    paths = [fontManager.findfont(FontProperties(family=[name])) for name in names]
    return frozenset(letter for path in paths for letter in get_font(path).get_charmap())
