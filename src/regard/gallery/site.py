"""Builds the gallery: draws the chosen figures, and writes the pages of all that are there."""

import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from time import monotonic

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from regard import files
from regard.errors import RegardError, unknown_name
from regard.gallery import FIGURES, LANGUAGES, page, plate

STATIC = Path(__file__).parent / "static"


def build(
    out: Path,
    only: Collection[str] = (),
    language: str | None = None,
    say: Callable[[str], None] | None = None,
) -> Path:
    """Build the site, or the figures and the language that are asked for; give its first page.

    Pictures are drawn for the figures asked for; pages are written for all that have pictures.
    """
    for name in only:
        if name not in FIGURES:
            raise unknown_name("figure of the gallery", name, FIGURES)
    if language not in (None, *LANGUAGES):
        raise unknown_name("language of the gallery", str(language), LANGUAGES)
    _refuse_what_is_not_ours(out)
    chosen = [name for name in FIGURES if name in only or not only]
    for name in _progress(chosen, say):
        unknown = plate.save(plate.draw(name), _pictures(out, name))
        if unknown:
            tell = say or _tell
            tell(f"{name}: no font has {unknown[:20]!r}, so it is drawn as SVG only")
    return _write(out, [language] if language else list(LANGUAGES))


def _write(out: Path, languages: Sequence[str]) -> Path:
    """Write the pages of every figure that has pictures, in each language asked for or there."""
    present = {name: _relative(out, name) for name in FIGURES if _relative(out, name)}
    plates = [plate.read(name) for name in present]
    covers = {name: _cover(pictures) for name, pictures in present.items()}
    written = [one for one in LANGUAGES if one in languages or _home(out, one).exists()]
    both = len(written) > 1
    for one in written:
        folder = _home(out, one).parent
        for each in plates:
            text = page.page(each, present[each.name], list(present), one, both)
            files.write(folder / f"{each.name}.html", text)
        files.write(_home(out, one), page.index(plates, covers, one, both))
    files.write(out / "gallery.css", (STATIC / "gallery.css").read_bytes())
    return _home(out, languages[0])


def _home(out: Path, language: str) -> Path:
    return (out if language == "en" else out / language) / "index.html"


def _pictures(out: Path, name: str) -> Path:
    return out / "pictures" / name


def _relative(out: Path, name: str) -> list[str]:
    """List the pictures of a figure, PNG before SVG, as a page at the top names them."""
    found = sorted(_pictures(out, name).glob("[0-9]*-*"))
    return [path.relative_to(out).as_posix() for path in found]


def _cover(pictures: Sequence[str]) -> str:
    return next((path for path in pictures if path.endswith(".png")), pictures[0])


def _refuse_what_is_not_ours(out: Path) -> None:
    first = out / "index.html"
    if first.exists() and page.MARK not in first.read_text("utf-8", errors="replace"):
        raise RegardError(
            f"{first} is not a gallery's and would be lost; --out with another folder would do"
        )


def _progress(names: Sequence[str], say: Callable[[str], None] | None) -> Iterator[str]:
    """Go through the figures, with a bar on a terminal and with lines elsewhere."""
    live = say is None and sys.stderr.isatty()
    bar = Progress(
        TextColumn("{task.completed:.0f}/{task.total:.0f}"),
        BarColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
        auto_refresh=False,  # a figure may have to train a model, which has a bar of its own
        disable=not live,
    )
    task = bar.add_task("", total=len(names))
    with bar:
        for number, name in enumerate(names, 1):
            bar.update(task, description=name, refresh=True)
            started = monotonic()
            yield name
            bar.update(task, completed=number, refresh=True)
            if not live:
                tell = say or _tell
                tell(f"{number}/{len(names)} {name} ({monotonic() - started:.1f} s)")


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
