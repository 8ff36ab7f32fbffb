import itertools
import re
import subprocess
import sys
from xml.etree import ElementTree

import pytest
import torch
from matplotlib import image
from matplotlib.colors import to_rgb

from regard.errors import RegardError
from regard.viz.heatmap import plot_heatmap, save_figure

QUERIES = ["ein", "kleines", "Haus"]
KEYS = ["a", "very", "small", "house"]
WEIGHTS = [[0.7, 0.1, 0.1, 0.1], [0.05, 0.35, 0.6, 0.0], [0.0, 0.0, 0.3, 0.7]]


def words(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def numbers(axes):
    return [text.get_text() for text in axes.texts]


def test_queries_are_rows_and_keys_are_columns_named_on_top():
    axes = plot_heatmap(WEIGHTS, QUERIES, KEYS).axes[0]
    assert words(axes.yaxis) == QUERIES
    assert words(axes.xaxis) == KEYS
    assert axes.xaxis.get_ticks_position() == "top"
    assert axes.images[0].get_array().tolist() == WEIGHTS
    # the first query is above the second
    assert axes.transData.transform((0, 0))[1] > axes.transData.transform((0, 1))[1]


def test_the_scale_runs_from_zero_to_one_unless_told_otherwise():
    assert plot_heatmap(WEIGHTS, QUERIES, KEYS).axes[0].images[0].get_clim() == (0.0, 1.0)
    assert plot_heatmap(WEIGHTS, QUERIES, KEYS, top=0.8).axes[0].images[0].get_clim() == (0.0, 0.8)


def scale(figure):
    return figure.axes[0].images[0].colorbar


def test_the_colour_bar_shows_the_scale_and_whether_weights_go_beyond():
    drawn = plot_heatmap(WEIGHTS, QUERIES, KEYS, top=0.7)
    assert (scale(drawn).vmin, scale(drawn).vmax, scale(drawn).extend) == (0.0, 0.7, "neither")
    assert scale(plot_heatmap(WEIGHTS, QUERIES, KEYS, top=0.5)).extend == "max"


def test_the_colours_are_cividis():
    assert plot_heatmap(WEIGHTS, QUERIES, KEYS).axes[0].images[0].get_cmap().name == "cividis"


def test_a_small_map_shows_its_numbers_in_reading_order():
    shown = numbers(plot_heatmap(WEIGHTS, QUERIES, KEYS).axes[0])
    assert shown[:5] == ["0.70", "0.10", "0.10", "0.10", "0.05"]
    assert shown[-4:] == ["0", "0", "0.30", "0.70"]


def test_numbers_are_white_on_dark_and_black_on_light():
    texts = plot_heatmap([[0.0, 1.0]], ["a"], ["x", "y"]).axes[0].texts
    assert [to_rgb(text.get_color()) for text in texts] == [(1, 1, 1), (0, 0, 0)]


@pytest.mark.parametrize(("size", "shown"), [((12, 5), 60), ((13, 5), 0), ((5, 13), 0)])
def test_a_large_map_shows_colours_only(size, shown):
    queries, keys = map(str, range(size[0])), map(str, range(size[1]))
    drawn = plot_heatmap(torch.zeros(size), list(queries), list(keys))
    assert len(drawn.axes[0].texts) == shown


def extents(labels, figure):
    figure.draw_without_rendering()
    return [label.get_window_extent() for label in labels]


def test_short_key_words_stay_upright_and_do_not_touch():
    drawn = plot_heatmap(WEIGHTS, QUERIES, KEYS)
    labels = drawn.axes[0].get_xticklabels()
    assert {label.get_rotation() for label in labels} == {0}
    boxes = extents(labels, drawn)
    assert all(a.x1 < b.x0 for a, b in itertools.pairwise(boxes))


def test_long_key_words_are_turned():
    drawn = plot_heatmap(WEIGHTS, QUERIES, ["a", "remarkably", "small", "house"])
    assert {label.get_rotation() for label in drawn.axes[0].get_xticklabels()} == {60}


def test_a_very_long_word_is_cut():
    drawn = plot_heatmap([[1.0]], ["q" * 40], ["k" * 40]).axes[0]
    assert words(drawn.yaxis) == ["q" * 23 + "…"]
    assert words(drawn.xaxis) == ["k" * 23 + "…"]


def test_a_huge_map_stays_of_a_size_to_print_and_its_words_do_not_touch():
    names = [str(number) for number in range(300)]
    drawn = plot_heatmap(torch.zeros(300, 200), names, names[:200])
    assert max(drawn.get_size_inches()) < 30
    assert words(drawn.axes[0].yaxis)[:3] == ["0", "3", "6"]
    boxes = extents(drawn.axes[0].get_yticklabels(), drawn)
    assert all(a.y0 > b.y1 for a, b in itertools.pairwise(boxes))


def test_a_word_is_never_markup(tmp_path):
    drawn = plot_heatmap([[0.5, 0.5]], [r"$\frac$"], ["$x$", "\x1b"], title="$\\oops$")
    save_figure(drawn, tmp_path / "money.png")  # as a formula, the first word would not parse
    assert words(drawn.axes[0].xaxis) == ["$x$", r"\x1b"]


def test_the_title_stands_above():
    assert plot_heatmap(WEIGHTS, QUERIES, KEYS, title="Looks").get_suptitle() == "Looks"
    assert plot_heatmap(WEIGHTS, QUERIES, KEYS).get_suptitle() == ""


def test_marked_cells_are_framed_in_ink_that_shows_and_the_caption_stands_below():
    drawn = plot_heatmap(WEIGHTS, QUERIES, KEYS, marked=[(0, 3), (2, 3)], caption="Gold")
    frames = drawn.axes[0].patches
    middles = [(frame.get_x() + 0.42, frame.get_y() + 0.42) for frame in frames]
    assert middles == [(3, 0), (3, 2)]
    assert [to_rgb(frame.get_edgecolor()) for frame in frames] == [(1, 1, 1), (0, 0, 0)]
    assert drawn.get_supxlabel() == "Gold"


def test_a_wrong_number_of_words_is_refused():
    with pytest.raises(ValueError, match=r"queries must be .* 3 wanted, 4 came"):
        plot_heatmap(WEIGHTS, KEYS, KEYS)


@pytest.mark.parametrize(
    ("name", "start"),
    [("map.png", b"\x89PNG"), ("map.SVG", b"<?xml"), ("map.pdf", b"%PDF"), ("map", b"\x89PNG")],
)
def test_a_figure_is_saved_in_the_format_of_its_name(tmp_path, name, start):
    save_figure(plot_heatmap(WEIGHTS, QUERIES, KEYS), tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(start)
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_a_saved_picture_holds_the_colours_of_its_weights(tmp_path):
    save_figure(plot_heatmap([[0.0, 1.0]], ["a"], ["x", "y"]), tmp_path / "two.png")
    pixels = image.imread(tmp_path / "two.png")[..., :3].reshape(-1, 3)
    for colour in [(0, 34, 78), (254, 232, 56)]:
        near = abs(255 * pixels - colour).max(axis=1) < 2
        assert near.sum() > 60 * 60  # most of a cell of 0.6 inches


def test_an_unknown_format_is_refused_with_those_there_are(tmp_path):
    with pytest.raises(
        RegardError, match=r"no picture format is called 'docx' .*pdf, .*png, .*svg"
    ):
        save_figure(plot_heatmap(WEIGHTS, QUERIES, KEYS), tmp_path / "map.docx")


def test_a_folder_that_is_not_there_is_said_in_one_sentence(tmp_path):
    with pytest.raises(RegardError, match=r"cannot write .*map\.png: No such file or directory"):
        save_figure(plot_heatmap(WEIGHTS, QUERIES, KEYS), tmp_path / "nowhere" / "map.png")


def test_without_matplotlib_the_way_to_it_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(RegardError, match=r"pip install 'regard\[pictures\]' would do"):
        plot_heatmap(WEIGHTS, QUERIES, KEYS)


def test_pictures_import_neither_torch_nor_matplotlib_until_they_draw():
    check = "import sys, regard.viz; print({'torch', 'matplotlib'} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True)
    assert (found.stdout, found.stderr) == ("set()\n", "")


def test_drawing_leaves_pyplot_alone():
    check = (
        "import sys; from regard.viz.heatmap import plot_heatmap; "
        "plot_heatmap([[1.0]], ['a'], ['b']); print('matplotlib.pyplot' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True)
    assert (found.stdout, found.stderr) == ("False\n", "")


@pytest.mark.parametrize("part", ["word ", "word", "力"])
def test_a_long_title_is_as_wide_as_its_figure_and_has_few_lines(tmp_path, part):
    keys = [str(number) for number in range(9)]
    drawn = plot_heatmap([[1 / 9] * 9], ["a"], keys, title=part * 1200, caption=part * 1200)
    for text in (drawn.get_suptitle(), drawn.get_supxlabel()):
        assert text.count("\n") == 2 and text.endswith("…")
    save_figure(drawn, tmp_path / "long.svg")
    width = re.search(r'width="([\d.]+)pt"', (tmp_path / "long.svg").read_text("utf-8"))[1]
    assert float(width) < 1.3 * 72 * drawn.get_size_inches()[0]


def test_a_title_that_fits_stays_on_one_line():
    assert plot_heatmap([[1.0]], ["a"], ["b"], title="t" * 40).get_suptitle() == "t" * 40
    longer = plot_heatmap(
        [[1.0]], ["a"], ["b"], title=" ".join(["to be broken"] * 5)
    ).get_suptitle()
    assert longer == "to be broken to be broken to be broken\nto be broken to be broken"


@pytest.mark.parametrize(("kind", "start"), [("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_a_format_that_is_named_is_taken_whatever_the_ending(tmp_path, kind, start):
    save_figure(plot_heatmap(WEIGHTS, QUERIES, KEYS), tmp_path / "map.svg", kind)
    assert (tmp_path / "map.svg").read_bytes().startswith(start)


def test_words_that_xml_cannot_say_make_no_broken_drawing(tmp_path):
    save_figure(plot_heatmap([[1.0]], ["\uffff"], ["\x00"], title="\ufffe"), tmp_path / "odd.svg")
    assert ElementTree.parse(tmp_path / "odd.svg").getroot().tag.endswith("svg")
