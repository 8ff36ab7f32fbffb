"""Fonts of matplotlib figures: which to try, and which characters none of them has."""

from collections.abc import Iterable
from functools import cache

# Matplotlib's own font has no Chinese, Japanese or Korean; these are tried if installed.
EAST_ASIAN_FONTS = (
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
    """Return the fonts to try for each character, in order."""
    from matplotlib import rcParams

    return [*rcParams["font.family"], *_east_asian_fonts()]


def missing_glyphs(texts: Iterable[str]) -> str:
    """Return the characters that no font has, in order; a figure would show boxes."""
    characters = dict.fromkeys(c for text in texts for c in text if c > "\u007f")
    known = _characters_of(tuple(font_families())) if characters else frozenset()
    return "".join(character for character in characters if ord(character) not in known)


@cache
def _east_asian_fonts() -> tuple[str, ...]:
    from matplotlib.font_manager import get_font_names

    known = set(get_font_names())
    return tuple(name for name in EAST_ASIAN_FONTS if name in known) or _newly_installed_font()


def _newly_installed_font() -> tuple[str, ...]:
    """Search the disk: matplotlib's own font list is as old as its first use on this computer."""
    from matplotlib.font_manager import findSystemFonts, fontManager

    stems = {name.replace(" ", "").lower().removesuffix("sc") for name in EAST_ASIAN_FONTS}
    for path in sorted(findSystemFonts()):
        file = path.replace("\\", "/").rpartition("/")[2].replace("-", "").lower()
        if "regular" in file and any(file.startswith(stem) for stem in stems):
            count = len(fontManager.ttflist)
            fontManager.addfont(path)
            return (fontManager.ttflist[count].name,)
    return ()


@cache
def _characters_of(names: tuple[str, ...]) -> frozenset[int]:
    """Return the code points that some fonts have together."""
    from matplotlib.font_manager import FontProperties, fontManager, get_font

    paths = [fontManager.findfont(FontProperties(family=[name])) for name in names]
    return frozenset(code for path in paths for code in get_font(path).get_charmap())
