"""Builds the gallery: draws the chosen figures and writes the pages of all figures drawn so far."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from time import monotonic
from warnings import catch_warnings, filterwarnings

from rich.progress import BarColumn, TextColumn, TimeElapsedColumn

from regard._support import files
from regard._support.progress import ProgressDisplay, echo_to_stderr
from regard.errors import RegardError, unknown_name
from regard.gallery import FIGURES, LANGUAGES, figure_page, templates
from regard.gallery.localize import localize_pictures
from regard.gallery.translators import train_in_background

STATIC = Path(__file__).parent / "static"


def build_site(
    out: Path,
    only: Collection[str] = (),
    language: str | None = None,
    log: Callable[[str], None] | None = None,
) -> Path:
    """Build the site, or the given figures and language of it, and return its index page.

    Pages are written for every figure that has pictures, from this build or an earlier one.
    """
    for name in only:
        if name not in FIGURES:
            raise unknown_name("figure of the gallery", name, FIGURES)
    if language not in (None, *LANGUAGES):
        raise unknown_name("language of the gallery", str(language), LANGUAGES)
    languages = [language] if language else list(LANGUAGES)
    _check_folder(out, languages)
    names = [name for name in FIGURES if name in only or not only]
    figure_page.check_dependencies(names)
    _write_pages(out, languages)  # marks the folder, so that an interrupted build can be resumed
    missing: dict[str, str] = {}
    with train_in_background() if "bahdanau" in names else nullcontext():
        for name in _track(names, log):
            glyphs = _draw(name, {code: _folder(out, code) for code in languages})
            missing |= {name: glyphs} if glyphs else {}
    if missing:
        (log or echo_to_stderr)(_missing_fonts_message(missing))
    return _write_pages(out, languages)


def _draw(name: str, folders: Mapping[str, Path]) -> str:
    """Draw a figure once, save it in each language, and return the characters no font has."""
    texts, missing = figure_page.load_page(name).texts, ""
    with catch_warnings():
        filterwarnings("ignore", "Glyph .* missing from", UserWarning)  # it is reported at the end
        pictures = figure_page.draw_figure(name)
        for language, folder in folders.items():  # English, in which they are drawn, is first
            localize_pictures(pictures, texts[language].translations)
            missing += figure_page.save_pictures(pictures, folder / "pictures" / name)
    return missing


def _missing_fonts_message(missing: Mapping[str, str]) -> str:
    characters = "".join(dict.fromkeys("".join(missing.values())))[:20]
    return (
        f"no installed font has {characters!r}: these pictures are written as SVG only, and "
        f"animations stay in English ({', '.join(missing)}); install Noto Sans CJK to get PNG, too"
    )


def _write_pages(out: Path, languages: Sequence[str]) -> Path:
    """Write the pages of every figure that has pictures, in the given and existing languages."""
    written = [code for code in LANGUAGES if code in languages or _index(out, code).exists()]
    pictures = {code: _pictures(_folder(out, code)) for code in written}
    for code in written:
        pages = [figure_page.load_page(name) for name in pictures[code]]
        covers = {name: _cover(paths) for name, paths in pictures[code].items()}
        for page in pages:
            translated = all(page.name in names for names in pictures.values()) and len(written) > 1
            shown = pictures[code][page.name]
            sizes = {path: figure_page.picture_size(_folder(out, code) / path) for path in shown}
            html = templates.render_figure_page(page, sizes, list(pictures[code]), code, translated)
            files.write_file(_folder(out, code) / f"{page.name}.html", html)
        index = templates.render_index(pages, covers, code, len(written) > 1)
        files.write_file(_index(out, code), index)
    files.write_file(out / "gallery.css", (STATIC / "gallery.css").read_bytes())
    return _index(out, languages[0])


def _folder(out: Path, language: str) -> Path:
    return out if language == "en" else out / language


def _index(out: Path, language: str) -> Path:
    return _folder(out, language) / "index.html"


def _pictures(folder: Path) -> dict[str, list[str]]:
    """Return the pictures of each drawn figure, PNG before SVG, relative to its page."""
    paths = {name: figure_page.list_pictures(folder / "pictures" / name) for name in FIGURES}
    return {
        name: [path.relative_to(folder).as_posix() for path in figure_paths]
        for name, figure_paths in paths.items()
        if figure_paths
    }


def _cover(pictures: Sequence[str]) -> str:
    return next((path for path in pictures if path.endswith(".png")), pictures[0])


def _check_folder(out: Path, languages: Sequence[str]) -> None:
    """Raise if the folder holds files that are not a gallery's and would be overwritten."""
    for language in languages:
        index, folder = _index(out, language), _folder(out, language)
        if index.exists() and templates.GENERATOR not in index.read_text("utf-8", errors="replace"):
            raise RegardError(
                f"{index} is not part of a gallery and would be overwritten; choose another out="
            )
        if not index.exists() and not _is_empty(folder):
            raise RegardError(
                f"{folder} contains other files, which might be overwritten; choose a new out="
            )


def _is_empty(folder: Path) -> bool:
    """Return whether a folder has no files but those of the gallery's other language."""
    names = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    return {name for name in names if not name.startswith(".")} <= {"gallery.css", *LANGUAGES}


def _track(names: Sequence[str], log: Callable[[str], None] | None) -> Iterator[str]:
    """Yield the figures with a progress bar on a terminal, and a line for each elsewhere."""
    columns = (
        TextColumn("{task.completed:.0f}/{task.total:.0f}"),
        BarColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
    )
    # no auto-refresh: a figure may train a model, which shows a bar of its own
    with ProgressDisplay(*columns, total=len(names), echo=log, auto_refresh=False) as display:
        for number, name in enumerate(names, 1):
            display.update(number - 1, description=name, refresh=True)
            started = monotonic()
            yield name
            display.update(number, refresh=True)
            if not display.is_live:
                display.print(f"{number}/{len(names)} {name} ({monotonic() - started:.1f} s)")
