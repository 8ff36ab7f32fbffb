import matplotlib.font_manager
import pytest

from regard import RegardError
from regard.viz import fonts, plot_heatmap, save_figure


@pytest.fixture
def no_east_asian_font(monkeypatch):
    """Only matplotlib's own fonts are installed, as on many computers."""
    monkeypatch.setattr(fonts, "_east_asian_fonts", lambda: ())


def test_matplotlib_font_has_latin_and_arabic(no_east_asian_font):
    assert fonts.missing_glyphs(["a cat", "une école", "قطة", "▁ …"]) == ""


def test_missing_glyphs_are_listed_in_order(no_east_asian_font):
    assert fonts.missing_glyphs(["a 猫", "猫坐"]) == "猫坐"


@pytest.mark.parametrize("name", ["cat.png", "cat.pdf"])
def test_picture_with_missing_glyphs_is_refused_with_a_fix(no_east_asian_font, tmp_path, name):
    drawn = plot_heatmap([[1.0]], ["猫"], ["cat"])
    with pytest.raises(
        RegardError, match=r"no installed font has '猫', .*; save an \.svg or \.html"
    ):
        save_figure(drawn, tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_svg_with_missing_glyphs_is_saved_as_text(no_east_asian_font, tmp_path):
    save_figure(plot_heatmap([[1.0]], ["猫"], ["cat"], title="坐"), tmp_path / "cat.svg")
    svg = (tmp_path / "cat.svg").read_text("utf-8")
    assert ">猫</text>" in svg and ">坐</text>" in svg


def test_known_east_asian_fonts_come_after_matplotlibs_own(monkeypatch):
    monkeypatch.setattr(matplotlib.font_manager, "get_font_names", lambda: ["SimHei", "Arial"])
    fonts._east_asian_fonts.cache_clear()
    try:
        assert fonts.font_families()[-1] == "SimHei"
    finally:
        fonts._east_asian_fonts.cache_clear()


def test_newly_installed_font_is_found_on_disk(monkeypatch):
    """A file with the name of a Chinese font, though it is matplotlib's own."""
    real = matplotlib.font_manager.findfont("DejaVu Sans")
    monkeypatch.setattr(
        matplotlib.font_manager, "findSystemFonts", lambda: ["/x/Arial.ttf", NamedAs(real)]
    )
    names = fonts._newly_installed_font()
    del matplotlib.font_manager.fontManager.ttflist[-len(names) :]
    assert names == ("DejaVu Sans",)


class NamedAs(str):
    """A path that reads as another: no Chinese font need be installed for the test."""

    def replace(self, *_):
        return "/fonts/NotoSansCJK-Regular.ttc"


def test_no_east_asian_font_is_found_if_none_is_installed(monkeypatch):
    monkeypatch.setattr(matplotlib.font_manager, "findSystemFonts", lambda: ["/x/Arial.ttf"])
    assert fonts._newly_installed_font() == ()
