import itertools
import re
import sys
from contextlib import contextmanager, nullcontext
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from regard.cli import app
from regard.errors import RegardError
from regard.gallery import figure_page, site
from regard.gallery.localize import localize
from regard.viz import new_figure

pytestmark = pytest.mark.train  # it draws whole pages

QUICK = ("kernel_regression", "five_tokens")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A site of two figures, and its log."""
    out, log = tmp_path_factory.mktemp("site") / "gallery", []
    assert site.build_site(out, QUICK, log=log.append) == out / "index.html"
    return out, log


def written(folder):
    """List what stands in the SVG pictures of a folder."""
    trees = [ElementTree.fromstring(path.read_bytes()) for path in folder.glob("*.svg")]
    return [text.text or "" for tree in trees for text in tree.iter() if text.tag.endswith("text")]


@pytest.fixture
def stubbed(monkeypatch):
    """Figures that take no time, and no translators to learn for them."""
    monkeypatch.setattr(figure_page, "draw_figure", lambda name: {"one": new_figure(1.0, 1.0)})
    monkeypatch.setattr(site, "train_in_background", nullcontext)


class Addresses(HTMLParser):
    def __init__(self):
        super().__init__()
        self.links = []

    def handle_starttag(self, tag, attrs):
        self.links += [value for name, value in attrs if name in ("href", "src", "srcset", "data")]


def test_every_figure_has_a_page_in_both_languages(built):
    out, log = built
    names = {"index.html", *(f"{name}.html" for name in QUICK)}
    assert {path.name for path in out.glob("*.html")} == names
    assert {path.name for path in (out / "zh").glob("*.html")} == names
    assert "What to notice" in (out / "five_tokens.html").read_text("utf-8")
    assert "看什么" in (out / "zh" / "five_tokens.html").read_text("utf-8")
    counted = [line.split(" (")[0] for line in log if not line.startswith("no installed font")]
    assert counted == ["1/2 kernel_regression", "2/2 five_tokens"]


def test_links_are_local_and_exist(built):
    out, _ = built
    pages = [*out.rglob("*.html")]
    assert len(pages) == 2 * (len(QUICK) + 1)
    for page in pages:
        parser = Addresses()
        parser.feed(page.read_text("utf-8"))
        assert len(parser.links) >= 4
        for address in parser.links:
            assert not re.match(r"[a-z]+:|//", address), address
            assert (page.parent / address).is_file(), address


def test_styles_and_svg_load_nothing_from_the_network(built):
    out, _ = built
    assert not re.search(r"url\(|@import", (out / "gallery.css").read_text("utf-8"))
    pictures = [*out.rglob("*.svg")]
    assert pictures
    for svg in pictures:
        loaded = re.findall(r'(?:href|src)="([^"]*)"', svg.read_text("utf-8"))
        assert all(address.startswith(("#", "data:")) for address in loaded)


def test_every_picture_has_a_caption(built):
    out, _ = built
    for name, language in itertools.product(QUICK, ("en", "zh")):
        folder = out / ("" if language == "en" else language) / "pictures" / name
        drawn = {path.stem.split("-", 1)[1] for path in folder.iterdir()}
        assert drawn == set(figure_page.load_page(name).texts[language].captions)


@pytest.mark.parametrize("name", QUICK)
def test_labels_are_in_the_language_of_the_page(built, name):
    out, _ = built
    words = figure_page.load_page(name).texts["zh"].translations
    english, chinese = (written(folder / "pictures" / name) for folder in (out, out / "zh"))
    assert {phrase for phrase in words if phrase in english}  # and none is left:
    assert not {text for text in chinese if localize(text, words) != text}
    assert any(translation in chinese for translation in words.values())
    assert not re.search("[\u4e00-\u9fff]", "".join(english))


@pytest.mark.browser
def test_offline_browser_shows_every_picture(built, chromium):
    out, _ = built
    context = chromium.new_context(offline=True, viewport={"width": 390, "height": 800})
    window, requests, messages = context.new_page(), [], []
    window.on("request", lambda request: requests.append(request.url))
    window.on("console", lambda message: messages.append(message.text))
    for page in ("index.html", "zh/index.html", *(f"{name}.html" for name in QUICK)):
        window.goto((out / page).as_uri())
        for image in window.query_selector_all("img"):
            image.scroll_into_view_if_needed()
            window.wait_for_function("image => image.complete && image.naturalWidth > 0", arg=image)
        assert window.evaluate("document.documentElement.scrollWidth") <= 390
    window.click("a.previous")
    assert window.url.endswith(f"/{QUICK[0]}.html")
    context.close()
    assert requests and all(url.startswith("file:") for url in requests)
    assert messages == []


def test_drawing_one_figure_keeps_the_others(tmp_path, stubbed):
    site.build_site(tmp_path, ["scores", "complexity"], log=lambda _: None)
    site.build_site(tmp_path, ["positions"], log=lambda _: None)
    index = (tmp_path / "index.html").read_text("utf-8")
    places = [index.index(f'href="{name}.html"') for name in ("scores", "positions", "complexity")]
    assert places == sorted(places)
    assert 'href="positions.html"' in (tmp_path / "scores.html").read_text("utf-8")


def test_single_language_has_no_link_to_the_other(tmp_path, stubbed):
    home = site.build_site(tmp_path, ["scores"], "zh", log=lambda _: None)
    assert home == tmp_path / "zh" / "index.html"
    assert not (tmp_path / "index.html").exists()
    assert "English" not in home.read_text("utf-8")
    site.build_site(tmp_path, ["scores"], "en", log=lambda _: None)
    assert "English" in home.read_text("utf-8")
    assert 'href="../scores.html"' in (tmp_path / "zh" / "scores.html").read_text("utf-8")


def test_page_without_translation_has_no_language_link(tmp_path, stubbed):
    site.build_site(tmp_path, ["scores"], log=lambda _: None)
    site.build_site(tmp_path, ["positions"], "zh", log=lambda _: None)
    assert "English" not in (tmp_path / "zh" / "positions.html").read_text("utf-8")
    assert "English" in (tmp_path / "zh" / "scores.html").read_text("utf-8")
    assert not (tmp_path / "positions.html").exists()


def test_missing_fonts_cause_no_warnings_of_matplotlib(tmp_path, monkeypatch):
    def draw(name):
        figure = new_figure(1.0, 1.0)
        figure.text(0.5, 0.5, "\U000f0000")  # a private character, which no font has
        figure.draw_without_rendering()
        return {"one": figure}

    monkeypatch.setattr(figure_page, "draw_figure", draw)
    log = []
    site.build_site(tmp_path, ["scores"], log=log.append)
    assert len(log) == 2 and log[-1].startswith("no installed font has ")


def test_missing_fonts_are_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(figure_page, "draw_figure", lambda name: {"one": new_figure(1.0, 1.0)})
    monkeypatch.setattr(figure_page, "missing_glyphs_in", lambda picture: "猫")
    log = []
    site.build_site(tmp_path, ["scores", "complexity"], log=log.append)
    assert len(log) == 3
    assert log[-1].startswith("no installed font has '猫': these pictures are written as SVG only")
    assert "(scores, complexity)" in log[-1]
    assert "1-one.svg" in (tmp_path / "index.html").read_text("utf-8")


def test_foreign_index_page_is_not_overwritten(tmp_path, stubbed):
    (tmp_path / "index.html").write_text("mine")
    with pytest.raises(RegardError, match=r"index\.html is not part of a gallery"):
        site.build_site(tmp_path, ["scores"])
    assert [path.name for path in tmp_path.iterdir()] == ["index.html"]


@pytest.mark.parametrize("language", [None, "en"])
def test_folder_with_other_files_is_refused(tmp_path, stubbed, language):
    mine = tmp_path / "pictures" / "scores" / "1-mine.png"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    with pytest.raises(RegardError, match="contains other files, which might be overwritten"):
        site.build_site(tmp_path, ["scores"], language)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [mine]


def test_language_folder_with_other_files_is_refused(tmp_path, stubbed):
    site.build_site(tmp_path, ["scores"], "en", log=lambda _: None)
    mine = tmp_path / "zh" / "pictures" / "scores" / "1-mine.png"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    with pytest.raises(RegardError, match="contains other files"):
        site.build_site(tmp_path, ["scores"], log=lambda _: None)
    assert mine.read_text() == "mine"


def test_interrupted_build_can_be_resumed(tmp_path, stubbed, monkeypatch):
    drawn = figure_page.draw_figure

    def stopped(name):
        if name == "complexity":
            raise KeyboardInterrupt
        return drawn(name)

    monkeypatch.setattr(figure_page, "draw_figure", stopped)
    with pytest.raises(KeyboardInterrupt):
        site.build_site(tmp_path, ["scores", "complexity"], log=lambda _: None)
    monkeypatch.setattr(figure_page, "draw_figure", drawn)
    site.build_site(tmp_path, ["scores", "complexity"], log=lambda _: None)
    assert 'href="complexity.html"' in (tmp_path / "index.html").read_text("utf-8")


def test_missing_package_is_reported_before_writing(tmp_path, stubbed, monkeypatch):
    monkeypatch.setitem(sys.modules, "pygments", None)
    with pytest.raises(RegardError, match="needs pygments, which is not installed"):
        site.build_site(tmp_path / "gallery", ["scores"])
    assert not (tmp_path / "gallery").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--only", "score"], "no figure of the gallery is called 'score'. Did you mean 'scores'?"),
        (["--lang", "zn"], "no language of the gallery is called 'zn'. Choose from: en, zh."),
    ],
)
def test_unknown_names_are_refused_before_drawing(tmp_path, arguments, message):
    result = CliRunner().invoke(app, ["gallery", "--out", str(tmp_path / "out"), *arguments])
    assert result.exit_code == 1
    assert message in result.stderr
    assert not (tmp_path / "out").exists()


def test_command_prints_the_index_page(tmp_path, stubbed):
    result = CliRunner().invoke(app, ["gallery", "--out", str(tmp_path), "--only", "scores"])
    assert (result.exit_code, result.stdout.strip()) == (0, str(tmp_path / "index.html"))
    assert result.stderr.startswith("1/1 scores")


@pytest.mark.parametrize("name", ["bahdanau", "scores"])
def test_translators_train_in_background_for_the_figure_that_needs_them(
    name, stubbed, monkeypatch, tmp_path
):
    events = []

    @contextmanager
    def train_in_background():
        events.append("started")
        yield
        events.append("stopped")

    monkeypatch.setattr(site, "train_in_background", train_in_background)
    site.build_site(tmp_path / "gallery", (name,), "en", log=lambda line: events.append("drawn"))
    assert events == (["started", "drawn", "stopped"] if name == "bahdanau" else ["drawn"])
