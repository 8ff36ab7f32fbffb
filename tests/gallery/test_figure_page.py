import re
import sys
from xml.etree import ElementTree

import pytest
from PIL import Image

from regard.errors import RegardError
from regard.gallery import FIGURES, LANGUAGES, figure_page
from regard.gallery.figure_page import Animation
from regard.viz import fonts, new_figure


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_has_all_texts_in_both_languages(name):
    page = figure_page.load_page(name)
    assert set(page.texts) == set(LANGUAGES)
    for language, text in page.texts.items():
        assert len(text.notice) >= 2 and len(text.exercises) >= 1
        for sentence in (text.title, text.question, *text.notice, *text.exercises):
            assert sentence.strip() == sentence != ""
            assert bool(re.search("[\u4e00-\u9fff]", sentence)) == (language == "zh"), sentence
        assert set(text.captions) == set(page.texts["en"].captions)


@pytest.mark.parametrize("name", FIGURES)
def test_every_formula_is_valid_mathml(name):
    formula = figure_page.load_page(name).formula.strip().replace("xmlns=", "data-ns=")
    assert ElementTree.fromstring(formula).tag == "math"


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_a_short_file_with_a_draw_function(name):
    code = figure_page.load_page(name).code
    assert "\ndef draw() -> dict[str, " in code
    assert len(code.splitlines()) <= 130


def test_pictures_are_saved_in_order_as_png_svg_and_gif(tmp_path):
    first, second = new_figure(1.0, 1.0), new_figure(1.0, 1.0)
    first.text(0.5, 0.5, "some words")
    film = Animation([new_figure(1.0, 1.0), new_figure(1.0, 1.0)], [100, 300])
    film.frames[1].text(0.5, 0.5, "moved")
    assert figure_page.save_pictures({"z": first, "a": second, "m": film}, tmp_path) == ""
    names = ["1-z.png", "1-z.svg", "2-a.png", "2-a.svg", "3-m.gif"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    assert (tmp_path / "1-z.png").read_bytes().startswith(b"\x89PNG")
    assert "some words" in (tmp_path / "1-z.svg").read_text("utf-8")
    with Image.open(tmp_path / "3-m.gif") as moving:
        assert (moving.n_frames, moving.info["loop"], moving.info["duration"]) == (2, 0, 100)
        moving.seek(1)
        assert moving.info["duration"] == 300


def test_all_formats_of_a_picture_have_the_size_of_the_figure(tmp_path):
    figure_page.save_pictures({"wide": new_figure(6.0, 1.5)}, tmp_path)
    for suffix in ("png", "svg"):
        width, height = figure_page.picture_size(tmp_path / f"1-wide.{suffix}")
        assert abs(width - 6 * 96) <= 40 and abs(height - 1.5 * 96) <= 40  # cropped to the content
    png, svg = (figure_page.picture_size(tmp_path / f"1-wide.{s}") for s in ("png", "svg"))
    assert max(abs(a - b) for a, b in zip(png, svg, strict=True)) <= 1
    Image.new("RGB", (48, 52)).save(tmp_path / "2-film.gif")
    assert figure_page.picture_size(tmp_path / "2-film.gif") == (48, 52)


def test_stale_pictures_are_removed_and_other_files_kept(tmp_path):
    figure_page.save_pictures({"old": new_figure(1.0, 1.0)}, tmp_path)
    mine = {"mine.txt", "1-notes.txt", "2024-thesis", "3.png", "1-old.png.bak"}
    for name in mine:
        (tmp_path / name).write_text("kept")
    figure_page.save_pictures({"new": Animation([new_figure(1.0, 1.0)], [100])}, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"1-new.gif", *mine}
    assert figure_page.list_pictures(tmp_path) == [tmp_path / "1-new.gif"]


def test_picture_with_missing_glyphs_is_saved_as_svg_only(tmp_path, monkeypatch):
    monkeypatch.setattr(fonts, "font_families", lambda: ["DejaVu Sans"])
    drawn = new_figure(1.0, 1.0)
    drawn.text(0.5, 0.5, "猫cat猫")
    assert figure_page.save_pictures({"cat": drawn}, tmp_path) == "猫"
    assert [path.name for path in tmp_path.iterdir()] == ["1-cat.svg"]
    assert "猫cat猫" in (tmp_path / "1-cat.svg").read_text("utf-8")


def test_layout_is_computed_when_saving(tmp_path):
    drawn = new_figure(4.0, 3.0)
    axes = drawn.subplots()
    tops = []
    for title in ("one line", "two\nlines", "one line"):
        axes.set_title(title)
        figure_page.save_pictures({"one": drawn}, tmp_path)
        tops.append(axes.get_position().y1)
    assert tops[1] < tops[0] - 0.03  # the map makes space for the second line
    assert tops[2] == pytest.approx(tops[0], abs=1e-3)


def test_table_cells_are_among_the_text_artists(tmp_path, monkeypatch):
    monkeypatch.setattr(fonts, "font_families", lambda: ["DejaVu Sans"])
    drawn = new_figure(1.0, 1.0)
    drawn.subplots().table([["猫", "cat"]])
    assert {"猫", "cat"} <= {label.get_text() for label in figure_page.text_artists(drawn)}
    assert figure_page.save_pictures({"cat": drawn}, tmp_path) == "猫"


def test_missing_package_is_a_user_error_and_a_missing_module_of_regard_is_not(monkeypatch):
    def missing(name):
        raise ModuleNotFoundError(name=name)

    monkeypatch.setattr(figure_page, "import_module", lambda _: missing("sklearn"))
    with pytest.raises(RegardError, match=r"'five_tokens' needs sklearn.*regard\[gallery\]"):
        figure_page.draw_figure("five_tokens")
    monkeypatch.setattr(figure_page, "import_module", lambda _: missing("regard.nowhere"))
    with pytest.raises(ModuleNotFoundError):
        figure_page.draw_figure("five_tokens")


@pytest.mark.parametrize("missing", ["matplotlib", "pygments", "sklearn.datasets"])
def test_dependencies_are_checked_before_drawing(monkeypatch, missing):
    monkeypatch.setitem(sys.modules, missing, None)
    for figure in ("spelling", "words_and_image"):
        monkeypatch.delitem(sys.modules, f"regard.gallery.{figure}", raising=False)
    with pytest.raises(
        RegardError, match=f"needs {missing.partition('.')[0]}, which is not installed"
    ):
        figure_page.check_dependencies(["five_tokens", "words_and_image"])
