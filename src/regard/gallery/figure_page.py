"""One figure of the gallery: its texts, its code and its pictures as files."""

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias
from warnings import catch_warnings, filterwarnings

from regard._support import files
from regard._support.extras import needs_extra
from regard.gallery import LANGUAGES
from regard.viz import fonts, save_figure

if TYPE_CHECKING:
    import matplotlib.figure
    import matplotlib.text

HERE = Path(__file__).parent
DATA_PACKAGES = {"words_and_image": "sklearn.datasets"}  # imported when a figure is drawn
CSS_DPI = 96

# distinguishable with colour vision deficiency (Okabe and Ito 2008)
BLUE, ORANGE, GREEN, PURPLE, SKY = "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9"
GREY = "#8a919c"
STYLE = {
    "axes.prop_cycle": f"cycler('color', {[BLUE, ORANGE, GREEN, PURPLE, SKY]})",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": "medium",
    "font.size": 10,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
}


class Animation(NamedTuple):
    """Frames of an animated picture, and the duration of each in milliseconds."""

    frames: "Sequence[matplotlib.figure.Figure]"
    durations_ms: Sequence[int]


Picture: TypeAlias = "matplotlib.figure.Figure | Animation"


@dataclass(frozen=True)
class FigureText:
    """The texts of a page in one language; text between backticks is code."""

    title: str
    question: str
    notice: tuple[str, ...]
    exercises: tuple[str, ...]  # "What to try"
    captions: Mapping[str, str]  # by picture name
    translations: Mapping[str, str] = field(default_factory=dict)  # of labels, by the English ones


@dataclass(frozen=True)
class FigurePage:
    """A figure without its pictures: formula (MathML), code and texts."""

    name: str
    formula: str
    code: str
    texts: Mapping[str, FigureText]


def load_page(name: str) -> FigurePage:
    """Load the code and the texts of a figure."""
    content = tomllib.loads((HERE / "texts" / f"{name}.toml").read_text("utf-8"))
    texts = {language: _parse_text(content[language]) for language in LANGUAGES}
    return FigurePage(name, content["formula"], (HERE / f"{name}.py").read_text("utf-8"), texts)


def _parse_text(content: Mapping[str, Any]) -> FigureText:
    return FigureText(
        content["title"],
        content["question"],
        tuple(content["notice"]),
        tuple(content["try"]),
        content.get("pictures", {}),
        content.get("words", {}),
    )


def draw_figure(name: str) -> dict[str, Picture]:
    """Draw a figure; return its pictures by name, in display order."""
    with needs_extra("gallery", f"the figure {name!r} needs"):
        from matplotlib import rc_context

        with rc_context(STYLE):  # type: ignore[arg-type]
            pictures: dict[str, Picture] = import_module(f"regard.gallery.{name}").draw()
        return pictures


def check_dependencies(names: Iterable[str]) -> None:
    """Raise for figures whose packages are not installed, before any of them is drawn."""
    for name in names:
        with needs_extra("gallery", f"the figure {name!r} needs"):
            import_module("matplotlib")
            import_module("pygments")  # highlights the code
            import_module(f"regard.gallery.{name}")
            if name in DATA_PACKAGES:
                import_module(DATA_PACKAGES[name])


def save_pictures(pictures: Mapping[str, Picture], folder: Path) -> str:
    """Write pictures as SVG and PNG, or GIF; return the characters that no font has.

    A picture with such characters is written as SVG only. File names start with a number, so
    that sorting by name gives the display order. Pictures of an earlier build are removed.
    """
    written, missing = set(), ""
    for number, (name, picture) in enumerate(pictures.items(), 1):
        stem = folder / f"{number}-{name}"
        if isinstance(picture, Animation):
            contents = {".gif": _encode_gif(picture)}
        else:
            glyphs = missing_glyphs_in(picture)
            contents = _render(picture, (".svg",) if glyphs else (".svg", ".png"))
            missing += glyphs
        for suffix, content in contents.items():
            path = stem.with_name(stem.name + suffix)
            files.write_file(path, content)
            written.add(path)
    for stale in set(list_pictures(folder)) - written:
        stale.unlink()
    return "".join(dict.fromkeys(missing))


def list_pictures(folder: Path) -> list[Path]:
    """Return the pictures that `save_pictures` wrote into a folder, in order, and no other file."""
    pattern = re.compile(r"\d+-.+\.(png|svg|gif)")
    return sorted(path for path in folder.glob("*") if pattern.fullmatch(path.name))


def picture_size(path: Path) -> tuple[int, int]:
    """Return the width and height of a picture on a page, in CSS pixels."""
    if path.suffix == ".svg":
        start = path.read_text("utf-8")[:2000]
        width, height = re.findall(r'\b(?:width|height)="([\d.]+)pt"', start)[:2]
        return round(float(width) * CSS_DPI / 72), round(float(height) * CSS_DPI / 72)
    from PIL import Image

    with Image.open(path) as image:
        dpi = image.info.get("dpi", (CSS_DPI, CSS_DPI))[0]
        return round(image.width * CSS_DPI / dpi), round(image.height * CSS_DPI / dpi)


def text_artists(picture: "matplotlib.figure.Figure") -> "list[matplotlib.text.Text]":
    """Return every text of a picture, table cells included (`findobj` does not descend there)."""
    from matplotlib.table import Cell
    from matplotlib.text import Text

    cells = [cell.get_text() for cell in picture.findobj(Cell) if isinstance(cell, Cell)]
    return cells + [text for text in picture.findobj(Text) if isinstance(text, Text)]


def missing_glyphs_in(picture: "matplotlib.figure.Figure") -> str:
    """Return the characters of a picture that no installed font has."""
    return fonts.missing_glyphs(text.get_text() for text in text_artists(picture))


def _encode_gif(animation: Animation) -> bytes:
    """Encode frames of one size as a looping GIF."""
    from PIL import Image

    images, gif = [], BytesIO()
    for frame in animation.frames:
        content = BytesIO()
        frame.savefig(content, format="png", dpi=110, bbox_inches=None)  # all of one size
        images.append(Image.open(content).convert("RGB"))
    first, *others = images
    durations = list(animation.durations_ms)
    first.save(gif, "gif", save_all=True, append_images=others, duration=durations, loop=0)
    return gif.getvalue()


def _render(picture: "matplotlib.figure.Figure", suffixes: Sequence[str]) -> dict[str, bytes]:
    """Compute the layout once and render the picture in each format."""
    layout = picture.get_layout_engine()
    with catch_warnings():
        filterwarnings("ignore", "Glyph .* missing from", UserWarning)
        picture.draw_without_rendering()
    picture.set_layout_engine("none")  # keep the computed layout
    with TemporaryDirectory() as folder:
        paths = [Path(folder) / f"picture{suffix}" for suffix in suffixes]
        for path in paths:
            save_figure(picture, path)
        picture.set_layout_engine(layout)
        return {path.suffix: path.read_bytes() for path in paths}
