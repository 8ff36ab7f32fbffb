import re
from html import unescape
from html.parser import HTMLParser

import pytest

from regard.gallery import figure_page, templates
from regard.gallery.figure_page import FigurePage, FigureText

VOID = {"meta", "link", "img", "br"}
SPIKY = '<b>&" `a < b`'
PICTURES = {
    "viz/n/1-one.png": (1000, 400),
    "viz/n/1-one.svg": (1000, 400),
    "viz/n/2-two.gif": (900, 800),
}


class Nested(HTMLParser):
    """Fails where an element is not closed in its turn."""

    def __init__(self):
        super().__init__()
        self.open, self.tags = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def parsed(html):
    parser = Nested()
    parser.feed(html)
    parser.close()
    assert parser.open == []
    return parser.tags


@pytest.fixture
def spiky():
    text = FigureText(SPIKY, SPIKY, (SPIKY,), (SPIKY,), {"one": SPIKY})
    return FigurePage("scores", "<math></math>", "x = '<script>'\n", {"en": text, "zh": text})


@pytest.mark.parametrize("language", ["en", "zh"])
def test_texts_and_code_are_escaped(spiky, language):
    html = templates.render_figure_page(spiky, PICTURES, ["scores"], language, True)
    html += templates.render_index([spiky], {"scores": "viz/n/1-one.png"}, language, True)
    names = [tag for tag, _ in parsed(html)]
    assert not {"b", "script"} & set(names)
    assert html.count("<code>a &lt; b</code>") >= 5


def test_page_shows_the_source_file():
    known = figure_page.load_page("five_tokens")
    html = templates.render_figure_page(known, PICTURES, ["five_tokens"], "en", True)
    block = re.search(r'<div class="code"><pre>(.*?)</pre>', html, re.DOTALL).group(1)
    assert unescape(re.sub("<[^>]+>", "", block)) == known.code


def test_formula_words_are_localized():
    known = figure_page.load_page("scores")
    english, chinese = (
        templates.render_figure_page(known, PICTURES, ["scores"], language, True)
        for language in ("en", "zh")
    )
    assert "<mtext>scaled dot</mtext>" in english and "<mtext>缩放点积</mtext>" not in english
    assert "<mtext>缩放点积</mtext>" in chinese and "<mtext>scaled dot</mtext>" not in chinese


def test_each_picture_is_shown_once_with_links_to_all_formats(spiky):
    page = parsed(templates.render_figure_page(spiky, PICTURES, ["scores"], "zh", True))
    assert [at["src"] for tag, at in page if tag == "img"] == [
        "viz/n/1-one.png",
        "viz/n/2-two.gif",
    ]
    links = {at["href"] for tag, at in page if tag == "a"}
    assert set(PICTURES) <= links
    assert all(at["alt"] for tag, at in page if tag == "img")


def test_pictures_have_their_size_and_only_wide_ones_scroll_on_a_phone(spiky):
    def classes(**sizes):
        pictures = {f"viz/n/1-{name}.png": size for name, size in sizes.items()}
        page = parsed(templates.render_figure_page(spiky, pictures, ["scores"], "en", True))
        images = [at for tag, at in page if tag == "img"]
        assert [(int(at["width"]), int(at["height"])) for at in images] == list(sizes.values())
        return [at.get("class") for tag, at in page if tag == "figure"]

    assert classes(row=(1018, 330), square=(850, 820), tall=(480, 530)) == ["wide", None, None]
    assert classes(small=(620, 310)) == [None]


def test_page_links_to_neighbours_and_translation(spiky):
    around = ["kernel_regression", "scores", "complexity"]
    for language, twin in (("en", "zh/scores.html"), ("zh", "../scores.html")):
        page = parsed(templates.render_figure_page(spiky, PICTURES, around, language, True))
        links = [at["href"] for tag, at in page if tag == "a"]
        assert links[:2] == ["index.html", twin]
        assert links[-2:] == ["kernel_regression.html", "complexity.html"]
    alone = parsed(templates.render_figure_page(spiky, PICTURES, ["scores"], "en", False))
    assert "zh/scores.html" not in [at.get("href") for _, at in alone]


def test_content_security_policy_forbids_network_and_scripts(spiky):
    page = parsed(templates.render_figure_page(spiky, PICTURES, ["scores"], "en", True))
    (policy,) = [at["content"] for tag, at in page if at.get("http-equiv")]
    assert policy.startswith("default-src 'none';")
    assert "http" not in policy and "unsafe" not in policy and "script-src" not in policy


def test_figure_numbers_do_not_depend_on_missing_figures(spiky):
    html = templates.render_index([spiky], {"scores": "a.png"}, "en", False)
    assert '<span class="number">2</span>' in html
