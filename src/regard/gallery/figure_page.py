"""One figure of the gallery: its texts, its code, and its pictures as files."""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias
from warnings import catch_warnings, filterwarnings

from regard._support import files
from regard.errors import RegardError
from regard.gallery import LANGUAGES
from regard.viz import fonts, heatmap

if TYPE_CHECKING:
    import matplotlib.figure
    import matplotlib.text

HERE = Path(__file__).parent

# told apart without colours too (Okabe and Ito 2008)
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


class Moving(NamedTuple):
    """A picture that moves: its frames, and for how many milliseconds each is shown."""

    frames: "Sequence[matplotlib.figure.Figure]"
    pauses: Sequence[int]


Picture: TypeAlias = "matplotlib.figure.Figure | Moving"


@dataclass(frozen=True)
class Text:
    """What a page says in one language; `code` stands between backticks."""

    title: str
    question: str
    notice: tuple[str, ...]
    attempts: tuple[str, ...]  # what to try
    pictures: Mapping[str, str]  # what stands below a picture, by its name
    words: Mapping[str, str] = field(default_factory=dict)  # of the pictures, by the English ones


@dataclass(frozen=True)
class Plate:
    """A figure without its pictures: formula (MathML), code and texts."""

    name: str
    formula: str
    code: str
    texts: Mapping[str, Text]


def read(name: str) -> Plate:
    """Read the code and the texts of a figure."""
    told = tomllib.loads((HERE / "texts" / f"{name}.toml").read_text("utf-8"))
    texts = {language: _text(told[language]) for language in LANGUAGES}
    return Plate(name, told["formula"], (HERE / f"{name}.py").read_text("utf-8"), texts)


def _text(told: Mapping[str, Any]) -> Text:
    notice, attempts = tuple(told["notice"]), tuple(told["try"])
    captions, words = told.get("pictures", {}), told.get("words", {})
    return Text(told["title"], told["question"], notice, attempts, captions, words)


def draw(name: str) -> dict[str, Picture]:
    """Draw a figure: its pictures by name, in the order in which they are shown."""
    with _saying_what_is_missing(name):
        from matplotlib import rc_context

        with rc_context(STYLE):  # type: ignore[arg-type]
            pictures: dict[str, Picture] = import_module(f"regard.gallery.{name}").draw()
        return pictures


def check(names: Iterable[str]) -> None:
    """Refuse figures whose packages are not installed, before any of them takes its time."""
    for name in names:
        with _saying_what_is_missing(name):
            import_module("matplotlib")
            import_module("pygments")  # of the page
            import_module(f"regard.gallery.{name}")


@contextmanager
def _saying_what_is_missing(name: str) -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        if str(error.name).startswith("regard"):
            raise  # a mistake of ours
        raise RegardError(
            f"the figure {name!r} needs {error.name}, which is not installed; "
            "pip install 'regard[gallery]' would do"
        ) from error


def save(pictures: Mapping[str, Picture], folder: Path) -> str:
    """Write pictures as PNG and SVG; give the letters that no font has, for which PNG is left out.

    Their number comes first in their names: files in order of name are pictures in order.
    """
    kept, unknown = set(), ""
    for number, (name, picture) in enumerate(pictures.items(), 1):
        stem = folder / f"{number}-{name}"
        if isinstance(picture, Moving):
            contents = {".gif": _film(picture)}
        else:
            lacking = _lacking(picture)
            contents = _drawn(picture, (".svg",) if lacking else (".svg", ".png"))
            unknown += lacking
        for suffix, content in contents.items():
            path = stem.with_name(stem.name + suffix)
            files.write_file(path, content)
            kept.add(path)
    for old in set(saved(folder)) - kept:
        old.unlink()
    return "".join(dict.fromkeys(unknown))


def saved(folder: Path) -> list[Path]:
    """List the pictures that were saved in a folder, in order, and nothing else that is there."""
    ours = re.compile(r"\d+-.+\.(png|svg|gif)")
    return sorted(path for path in folder.glob("*") if ours.fullmatch(path.name))


def labels(picture: "matplotlib.figure.Figure") -> "list[matplotlib.text.Text]":
    """List all that is written in a picture; the cells of a table do not tell by themselves."""
    from matplotlib.table import Cell
    from matplotlib.text import Text as Label

    cells = [cell.get_text() for cell in picture.findobj(Cell) if isinstance(cell, Cell)]
    return cells + [label for label in picture.findobj(Label) if isinstance(label, Label)]


def _lacking(picture: "matplotlib.figure.Figure") -> str:
    return fonts.missing_glyphs(label.get_text() for label in labels(picture))


def _film(picture: Moving) -> bytes:
    """Write frames of one size as a GIF that begins again at its end."""
    from PIL import Image

    images, film = [], BytesIO()
    for frame in picture.frames:
        content = BytesIO()
        frame.savefig(content, format="png", dpi=110)
        images.append(Image.open(content).convert("RGB"))
    first, *others = images
    pauses = list(picture.pauses)
    first.save(film, "gif", save_all=True, append_images=others, duration=pauses, loop=0)
    return film.getvalue()


def _drawn(picture: "matplotlib.figure.Figure", suffixes: Sequence[str]) -> dict[str, bytes]:
    """Lay a picture out once, and write it in each format."""
    layout = picture.get_layout_engine()
    with catch_warnings():
        filterwarnings("ignore", "Glyph .* missing from", UserWarning)
        picture.draw_without_rendering()
    picture.set_layout_engine("none")  # all stays where it is now
    with TemporaryDirectory() as folder:
        paths = [Path(folder) / f"picture{suffix}" for suffix in suffixes]
        for path in paths:
            heatmap.save_figure(picture, path)
        picture.set_layout_engine(layout)
        return {path.suffix: path.read_bytes() for path in paths}
