"""Builds the gallery: draws the chosen figures, and writes the pages of all that are there."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from time import monotonic

from rich.progress import BarColumn, TextColumn, TimeElapsedColumn

from regard._support import files
from regard._support.progress import ProgressDisplay, print_to_stderr
from regard.demo.models import find_cached
from regard.errors import RegardError, unknown_name
from regard.gallery import FIGURES, LANGUAGES, figure_page, localize, page
from regard.gallery.translators import learning_meanwhile

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
    languages = [language] if language else list(LANGUAGES)
    _refuse_what_is_not_ours(out, languages)
    chosen = [name for name in FIGURES if name in only or not only]
    figure_page.check(chosen)
    _write(out, languages)  # a folder that is begun is marked, so that it can be gone on with
    unknown: dict[str, str] = {}
    # if another translator has yet to learn for the figures before, these must not take its time
    ahead = "bahdanau" in chosen and find_cached("fr")
    with learning_meanwhile() if ahead else nullcontext():
        for name in _progress(chosen, say):
            letters = _draw(name, {one: _folder(out, one) for one in languages})
            unknown |= {name: letters} if letters else {}
    if unknown:
        (say or print_to_stderr)(_without_fonts(unknown))
    return _write(out, languages)


def _draw(name: str, folders: Mapping[str, Path]) -> str:
    """Draw a figure once, save it in each language, and give the letters that no font has."""
    pictures, texts, unknown = figure_page.draw(name), figure_page.read(name).texts, ""
    for language, folder in folders.items():  # English, in which they are drawn, is the first
        localize.put(pictures, texts[language].words)
        unknown += figure_page.save(pictures, folder / "pictures" / name)
    return unknown


def _without_fonts(unknown: Mapping[str, str]) -> str:
    letters = "".join(dict.fromkeys("".join(unknown.values())))[:20]
    return (
        f"no font of this computer has {letters!r}: such pictures are SVG only, in their reader's "
        f"fonts, and what moves stays in English ({', '.join(unknown)}); with Noto Sans CJK "
        "installed, they would be PNG, too"
    )


def _write(out: Path, languages: Sequence[str]) -> Path:
    """Write the pages of every figure that has pictures, in each language asked for or there."""
    written = [one for one in LANGUAGES if one in languages or _home(out, one).exists()]
    present = {one: _present(_folder(out, one)) for one in written}
    for one in written:
        plates = [figure_page.read(name) for name in present[one]]
        covers = {name: _cover(pictures) for name, pictures in present[one].items()}
        for each in plates:
            twin = all(each.name in names for names in present.values()) and len(written) > 1
            text = page.page(each, present[one][each.name], list(present[one]), one, twin)
            files.write_file(_folder(out, one) / f"{each.name}.html", text)
        files.write_file(_home(out, one), page.index(plates, covers, one, len(written) > 1))
    files.write_file(out / "gallery.css", (STATIC / "gallery.css").read_bytes())
    return _home(out, languages[0])


def _folder(out: Path, language: str) -> Path:
    return out if language == "en" else out / language


def _home(out: Path, language: str) -> Path:
    return _folder(out, language) / "index.html"


def _present(folder: Path) -> dict[str, list[str]]:
    """List the pictures of each figure that has some, PNG before SVG, as its page names them."""
    saved = {name: figure_page.saved(folder / "pictures" / name) for name in FIGURES}
    return {
        name: [path.relative_to(folder).as_posix() for path in paths]
        for name, paths in saved.items()
        if paths
    }


def _cover(pictures: Sequence[str]) -> str:
    return next((path for path in pictures if path.endswith(".png")), pictures[0])


def _refuse_what_is_not_ours(out: Path, languages: Sequence[str]) -> None:
    for language in languages:
        first, folder = _home(out, language), _folder(out, language)
        if first.exists() and page.MARK not in first.read_text("utf-8", errors="replace"):
            raise RegardError(
                f"{first} is not a gallery's and would be lost; --out with another folder would do"
            )
        if not first.exists() and not _is_free(folder):
            raise RegardError(
                f"{folder} holds other files, which might be lost; --out with a new folder would do"
            )


def _is_free(folder: Path) -> bool:
    """Tell whether a folder has nothing, or nothing but the other language's pages."""
    names = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    return {name for name in names if not name.startswith(".")} <= {"gallery.css", *LANGUAGES}


def _progress(names: Sequence[str], say: Callable[[str], None] | None) -> Iterator[str]:
    """Yield the figures, with a bar on a terminal and a line per figure elsewhere."""
    columns = (
        TextColumn("{task.completed:.0f}/{task.total:.0f}"),
        BarColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
    )
    # no auto-refresh: a figure may have to train a model, which shows a bar of its own
    with ProgressDisplay(*columns, total=len(names), echo=say, auto_refresh=False) as display:
        for number, name in enumerate(names, 1):
            display.update(number - 1, description=name, refresh=True)
            started = monotonic()
            yield name
            display.update(number, refresh=True)
            if not display.is_live:
                display.print(f"{number}/{len(names)} {name} ({monotonic() - started:.1f} s)")
