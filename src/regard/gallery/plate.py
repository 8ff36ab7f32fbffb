"""One figure of the gallery: its texts, its code, and its pictures as files."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from regard import files
from regard.errors import RegardError
from regard.gallery import LANGUAGES
from regard.pictures import figure, fonts

if TYPE_CHECKING:
    import matplotlib.figure

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
    """An animated picture: the content of its file, and the file's ending (".gif", ".webp")."""

    content: bytes
    suffix: str


Picture: TypeAlias = "matplotlib.figure.Figure | Moving"


@dataclass(frozen=True)
class Text:
    """What a page says in one language; `code` stands between backticks."""

    title: str
    question: str
    notice: tuple[str, ...]
    attempts: tuple[str, ...]  # what to try
    pictures: Mapping[str, str]  # what stands below a picture, by its name


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
    return Text(told["title"], told["question"], notice, attempts, told.get("pictures", {}))


def draw(name: str) -> dict[str, Picture]:
    """Draw a figure: its pictures by name, in the order in which they are shown."""
    try:
        from matplotlib import rc_context

        with rc_context(STYLE):  # type: ignore[arg-type]
            pictures: dict[str, Picture] = import_module(f"regard.gallery.{name}").draw()
    except ModuleNotFoundError as error:
        if str(error.name).startswith("regard"):
            raise  # a mistake of ours
        raise RegardError(
            f"the figure {name!r} needs {error.name}, which is not installed; "
            "pip install 'regard[gallery]' would do"
        ) from error
    return pictures


def save(pictures: Mapping[str, Picture], folder: Path) -> str:
    """Write pictures as PNG and SVG; give the letters that no font has, for which PNG is left out.

    Their number comes first in their names: files in order of name are pictures in order.
    """
    kept, unknown = set(), ""
    for number, (name, picture) in enumerate(pictures.items(), 1):
        stem = folder / f"{number}-{name}"
        if isinstance(picture, Moving):
            contents = {picture.suffix: picture.content}
        else:
            lacking = _lacking(picture)
            contents = {
                kind: _drawn(picture, kind) for kind in (".svg", ".png")[: 2 - bool(lacking)]
            }
            unknown += lacking
        for suffix, content in contents.items():
            path = stem.with_name(stem.name + suffix)
            files.write(path, content)
            kept.add(path)
    for old in set(folder.glob("[0-9]*-*")) - kept:
        old.unlink()
    return "".join(dict.fromkeys(unknown))


def _lacking(picture: "matplotlib.figure.Figure") -> str:
    from matplotlib.text import Text as Label

    return fonts.missing(label.get_text() for label in picture.findobj(Label))


def _drawn(picture: "matplotlib.figure.Figure", suffix: str) -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"picture{suffix}"
        figure.save(picture, path)
        return path.read_bytes()
