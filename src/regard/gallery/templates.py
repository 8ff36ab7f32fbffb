"""HTML of the gallery: an index and a page per figure, without scripts or network."""

import re
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from regard.gallery import FIGURES, LANGUAGES
from regard.gallery.figure_page import FigurePage
from regard.gallery.localize import localize

GENERATOR = '<meta name="generator" content="regard gallery">'
# "file:" because some browsers treat every file as an origin of its own
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; img-src 'self' file:; style-src 'self' file:; "
    "base-uri 'none'; form-action 'none'"
)
# A picture of more pixels than this and flatter than this is not shrunk to the width of a phone.
MIN_WIDE_PIXELS, MIN_WIDE_ASPECT = 700, 1.2

Size = tuple[int, int]

MESSAGES = {
    "en": {
        "site": "The attention gallery",
        "lead": "Every figure of the chapter on attention, drawn by the code shown below it.",
        "notice": "What to notice",
        "try": "What to try",
        "code": "The code",
        "words": "",
        "previous": "Previous",
        "next": "Next",
    },
    "zh": {
        "site": "注意力画廊",
        "lead": "这一章的每一幅图，都由图下的代码画出。",
        "notice": "看什么",
        "try": "试一试",
        "code": "代码",
        "words": "（代码中的英文标签在图里译成中文）",
        "previous": "上一幅",
        "next": "下一幅",
    },
}


def render_index(
    pages: Sequence[FigurePage], covers: Mapping[str, str], language: str, translated: bool
) -> str:
    """Return the index page: a card per figure."""
    messages = MESSAGES[language]
    cards = "\n".join(_card(page, covers[page.name], language) for page in pages)
    body = (
        f'<header class="top"><span class="brand">regard</span>'
        f"{_language_link('index', language, translated)}</header>\n"
        f'<main>\n<h1>{messages["site"]}</h1>\n<p class="lead">{messages["lead"]}</p>\n'
        f'<ol class="cards">\n{cards}\n</ol>\n</main>'
    )
    return _document(messages["site"], body, language)


def render_figure_page(
    page: FigurePage,
    pictures: Mapping[str, Size],
    names: Sequence[str],
    language: str,
    translated: bool,
) -> str:
    """Return the page of one figure.

    Args:
        pictures: its picture files, relative to the page, and their sizes in CSS pixels.
        names: all figures that have pages, in order.
        translated: whether the page exists in the other language, too.
    """
    messages, text = MESSAGES[language], page.texts[language]
    number = names.index(page.name)
    previous = (
        _neighbour(names[number - 1], messages["previous"], "previous")
        if number
        else "<span></span>"
    )
    is_last = number + 1 == len(names)
    following = "" if is_last else _neighbour(names[number + 1], messages["next"], "next")
    body = (
        f'<header class="top"><a class="brand" href="index.html">{messages["site"]}</a>'
        f"{_language_link(page.name, language, translated)}</header>\n<main>\n"
        f'<h1><span class="number">{_number(page.name)}</span> {_markup(text.title)}</h1>\n'
        f'<p class="lead">{_markup(text.question)}</p>\n'
        f'<div class="formula">{_formula(page, language)}</div>\n'
        f"{_pictures(page, pictures, language)}\n"
        f"{_list(messages['notice'], text.notice)}\n{_list(messages['try'], text.exercises)}\n"
        f"<section>\n<h2>{messages['code']}</h2>\n"
        f'<p class="path">src/regard/gallery/{page.name}.py{messages["words"]}</p>\n'
        f"{_highlight(page.code)}\n"
        f'</section>\n<nav class="steps">{previous}{following}</nav>\n</main>'
    )
    return _document(f"{text.title} · {messages['site']}", body, language)


def _document(title: str, body: str, language: str) -> str:
    tag = {"en": "en", "zh": "zh-CN"}[language]
    return (
        f'<!DOCTYPE html>\n<html lang="{tag}">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{CONTENT_SECURITY_POLICY}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n{GENERATOR}\n'
        f"<title>{escape(title)}</title>\n"
        f'<link rel="stylesheet" href="{"" if language == "en" else "../"}gallery.css">\n'
        f"</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _language_link(name: str, language: str, translated: bool) -> str:
    if not translated:
        return ""
    (other,) = set(LANGUAGES) - {language}
    href = f"zh/{name}.html" if other == "zh" else f"../{name}.html"
    tag = {"en": "en", "zh": "zh-CN"}[other]
    return f'<a class="language" href="{href}" lang="{tag}" hreflang="{tag}">{LANGUAGES[other]}</a>'


def _card(page: FigurePage, cover: str, language: str) -> str:
    text = page.texts[language]
    return (
        f'<li><a class="card" href="{page.name}.html">'
        f'<img src="{cover}" alt="" loading="lazy">'
        f'<span class="title"><span class="number">{_number(page.name)}</span> '
        f"{_markup(text.title)}</span><span>{_markup(text.question)}</span></a></li>"
    )


def _formula(page: FigurePage, language: str) -> str:
    """Return the formula with its words, if any, in the language of the page."""
    translations = page.texts[language].translations
    return re.sub(
        r"(?<=<mtext>)[^<]+", lambda match: localize(match[0], translations), page.formula
    )


def _pictures(page: FigurePage, pictures: Mapping[str, Size], language: str) -> str:
    """Show each picture by its first file, with links to all of its files."""
    files: dict[str, list[str]] = {}
    for path in pictures:
        files.setdefault(Path(path).stem.split("-", 1)[1], []).append(path)
    return "\n".join(
        _picture(page, name, paths, pictures[paths[0]], language) for name, paths in files.items()
    )


def _picture(page: FigurePage, name: str, paths: Sequence[str], size: Size, language: str) -> str:
    """Return a figure; one whose text would be too small on a phone is marked as wide."""
    width, height = size
    is_wide = width > MIN_WIDE_PIXELS and width > MIN_WIDE_ASPECT * height
    css_class = ' class="wide"' if is_wide else ""
    text = page.texts[language]
    caption = text.captions.get(name, "")
    links = " · ".join(f'<a href="{path}">{Path(path).suffix[1:].upper()}</a>' for path in paths)
    return (
        f'<figure{css_class}>\n<a href="{paths[0]}">'
        f'<img src="{paths[0]}" width="{width}" height="{height}" '
        f'alt="{escape(caption or f"{text.title}: {name}")}"></a>\n'
        f"<figcaption><span>{_markup(caption)}</span> <span>{links}</span></figcaption>\n</figure>"
    )


def _list(title: str, sentences: Sequence[str]) -> str:
    items = "\n".join(f"<li>{_markup(sentence)}</li>" for sentence in sentences)
    return f"<section>\n<h2>{title}</h2>\n<ul>\n{items}\n</ul>\n</section>"


def _neighbour(name: str, label: str, side: str) -> str:
    return f'<a class="{side}" rel="{side[:4]}" href="{name}.html">{label}</a>'


def _number(name: str) -> int:
    return FIGURES.index(name) + 1


def _markup(sentence: str) -> str:
    """Escape a sentence; text between backticks becomes code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(sentence))


def _highlight(code: str) -> str:
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer

    return str(highlight(code, PythonLexer(), HtmlFormatter(cssclass="code")))
