"""The pages of the gallery as HTML that needs no network."""

import re
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from regard.gallery import FIGURES, LANGUAGES
from regard.gallery.figure_page import Plate
from regard.gallery.localize import told

MARK = '<meta name="generator" content="regard gallery">'
# "file:" because some browsers say that no two files are of the same origin
POLICY = (
    "default-src 'none'; img-src 'self' file:; style-src 'self' file:; "
    "base-uri 'none'; form-action 'none'"
)
SAID = {
    "en": {
        "site": "The attention gallery",
        "lead": "Every figure of the chapter, drawn by the code that stands below it.",
        "notice": "What to notice",
        "try": "What to try",
        "code": "The code that drew it",
        "words": "",
        "previous": "Previous",
        "next": "Next",
    },
    "zh": {
        "site": "注意力画廊",
        "lead": "这一章的每一幅图，都由图下的代码画出。",
        "notice": "看什么",
        "try": "试一试",
        "code": "画出它的代码",
        "words": "（代码中的英文字样，在图里译成了中文）",
        "previous": "上一幅",
        "next": "下一幅",
    },
}


def index(plates: Sequence[Plate], covers: Mapping[str, str], language: str, others: bool) -> str:
    """Write the page that leads to all others: a card per figure."""
    said = SAID[language]
    cards = "\n".join(_card(plate, covers[plate.name], language) for plate in plates)
    body = (
        f'<header class="top"><span class="brand">regard</span>'
        f"{_languages('index', language, others)}</header>\n"
        f'<main>\n<h1>{said["site"]}</h1>\n<p class="lead">{said["lead"]}</p>\n'
        f'<ol class="cards">\n{cards}\n</ol>\n</main>'
    )
    return _document(said["site"], body, language)


def page(
    plate: Plate, pictures: Sequence[str], present: Sequence[str], language: str, others: bool
) -> str:
    """Write the page of one figure; `pictures` are files, `present` the figures that have pages."""
    said, text = SAID[language], plate.texts[language]
    place = present.index(plate.name)
    back = _step(present[place - 1], said["previous"], "previous") if place else "<span></span>"
    on = _step(present[place + 1], said["next"], "next") if place + 1 < len(present) else ""
    body = (
        f'<header class="top"><a class="brand" href="index.html">{said["site"]}</a>'
        f"{_languages(plate.name, language, others)}</header>\n<main>\n"
        f'<h1><span class="number">{_number(plate.name)}</span> {_marked(text.title)}</h1>\n'
        f'<p class="lead">{_marked(text.question)}</p>\n'
        f'<div class="formula">{_formula(plate, language)}</div>\n'
        f"{_pictures(plate, pictures, language)}\n"
        f"{_list(said['notice'], text.notice)}\n{_list(said['try'], text.attempts)}\n"
        f"<section>\n<h2>{said['code']}</h2>\n"
        f'<p class="path">src/regard/gallery/{plate.name}.py{said["words"]}</p>\n'
        f"{_highlighted(plate.code)}\n"
        f'</section>\n<nav class="steps">{back}{on}</nav>\n</main>'
    )
    return _document(f"{text.title} · {said['site']}", body, language)


def _document(title: str, body: str, language: str) -> str:
    tag = {"en": "en", "zh": "zh-CN"}[language]
    return (
        f'<!DOCTYPE html>\n<html lang="{tag}">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n{MARK}\n'
        f"<title>{escape(title)}</title>\n"
        f'<link rel="stylesheet" href="{"" if language == "en" else "../"}gallery.css">\n'
        f"</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _languages(name: str, language: str, others: bool) -> str:
    if not others:
        return ""
    (other,) = set(LANGUAGES) - {language}
    href = f"zh/{name}.html" if other == "zh" else f"../{name}.html"
    tag = {"en": "en", "zh": "zh-CN"}[other]
    return f'<a class="language" href="{href}" lang="{tag}" hreflang="{tag}">{LANGUAGES[other]}</a>'


def _card(plate: Plate, cover: str, language: str) -> str:
    text = plate.texts[language]
    return (
        f'<li><a class="card" href="{plate.name}.html">'
        f'<img src="{cover}" alt="" loading="lazy">'
        f'<span class="title"><span class="number">{_number(plate.name)}</span> '
        f"{_marked(text.title)}</span><span>{_marked(text.question)}</span></a></li>"
    )


def _formula(plate: Plate, language: str) -> str:
    """Give the formula with its words, if it has some, in the language of the page."""
    words = plate.texts[language].words
    return re.sub(r"(?<=<mtext>)[^<]+", lambda found: told(found[0], words), plate.formula)


def _pictures(plate: Plate, pictures: Sequence[str], language: str) -> str:
    """Show each picture as the first of its files, and offer all of them."""
    files: dict[str, list[str]] = {}
    for path in pictures:
        files.setdefault(Path(path).stem.split("-", 1)[1], []).append(path)
    return "\n".join(_picture(plate, name, files[name], language) for name in files)


def _picture(plate: Plate, name: str, paths: Sequence[str], language: str) -> str:
    text = plate.texts[language]
    caption = text.pictures.get(name, "")
    links = " · ".join(f'<a href="{path}">{Path(path).suffix[1:].upper()}</a>' for path in paths)
    return (
        f'<figure>\n<a href="{paths[0]}"><img src="{paths[0]}" '
        f'alt="{escape(caption or f"{text.title}: {name}")}"></a>\n'
        f"<figcaption><span>{_marked(caption)}</span> <span>{links}</span></figcaption>\n</figure>"
    )


def _list(title: str, sentences: Sequence[str]) -> str:
    items = "\n".join(f"<li>{_marked(sentence)}</li>" for sentence in sentences)
    return f"<section>\n<h2>{title}</h2>\n<ul>\n{items}\n</ul>\n</section>"


def _step(name: str, said: str, side: str) -> str:
    return f'<a class="{side}" rel="{side[:4]}" href="{name}.html">{said}</a>'


def _number(name: str) -> int:
    return FIGURES.index(name) + 1


def _marked(sentence: str) -> str:
    """Escape a sentence; what stands between backticks is code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(sentence))


def _highlighted(code: str) -> str:
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer

    return str(highlight(code, PythonLexer(), HtmlFormatter(cssclass="code")))
