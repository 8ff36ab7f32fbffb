import matplotlib.font_manager
import pytest

from regard.errors import RegardError
from regard.viz import fonts
from regard.viz.heatmap import plot_heatmap, save_figure


@pytest.fixture
def no_east_asian_font(monkeypatch):
    """A computer as it often is: matplotlib's own fonts and no other."""
    monkeypatch.setattr(fonts, "_east_asian", lambda: ())


def test_latin_and_arabic_letters_are_there(no_east_asian_font):
    assert fonts.missing_glyphs(["a cat", "une école", "قطة", "▁ …"]) == ""


def test_missing_letters_are_named_in_order(no_east_asian_font):
    assert fonts.missing_glyphs(["a 猫", "猫坐"]) == "猫坐"


@pytest.mark.parametrize("name", ["cat.png", "cat.pdf"])
def test_a_picture_with_boxes_is_refused_and_the_way_out_is_said(
    no_east_asian_font, tmp_path, name
):
    drawn = plot_heatmap([[1.0]], ["猫"], ["cat"])
    with pytest.raises(RegardError, match=r"no font .* has '猫', .*boxes; an \.svg or \.html"):
        save_figure(drawn, tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_an_svg_leaves_the_letters_to_its_reader(no_east_asian_font, tmp_path):
    save_figure(plot_heatmap([[1.0]], ["猫"], ["cat"], title="坐"), tmp_path / "cat.svg")
    svg = (tmp_path / "cat.svg").read_text("utf-8")
    assert ">猫</text>" in svg and ">坐</text>" in svg


def test_fonts_that_matplotlib_knows_are_tried_after_its_own(monkeypatch):
    monkeypatch.setattr(matplotlib.font_manager, "get_font_names", lambda: ["SimHei", "Arial"])
    fonts._east_asian.cache_clear()
    try:
        assert fonts.font_families()[-1] == "SimHei"
    finally:
        fonts._east_asian.cache_clear()


def test_a_font_installed_since_is_found_on_the_disk(monkeypatch):
    """A file with the name of a Chinese font, though it is matplotlib's own."""
    real = matplotlib.font_manager.findfont("DejaVu Sans")
    monkeypatch.setattr(
        matplotlib.font_manager, "findSystemFonts", lambda: ["/x/Arial.ttf", NamedAs(real)]
    )
    found = fonts._newly_installed()
    del matplotlib.font_manager.fontManager.ttflist[-len(found) :]
    assert found == ("DejaVu Sans",)


class NamedAs(str):
    """A path that reads as another: no Chinese font need be installed for the test."""

    def replace(self, *_):
        return "/fonts/NotoSansCJK-Regular.ttc"


def test_without_any_there_is_none(monkeypatch):
    monkeypatch.setattr(matplotlib.font_manager, "findSystemFonts", lambda: ["/x/Arial.ttf"])
    assert fonts._newly_installed() == ()
