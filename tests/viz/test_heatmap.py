import itertools
import re
import subprocess
import sys
from xml.etree import ElementTree

import pytest
import torch
from matplotlib import image
from matplotlib.colors import to_rgb

from regard import RegardError
from regard.viz import plot_heatmap, save_figure

QUERIES = ["ein", "kleines", "Haus"]
KEYS = ["a", "very", "small", "house"]
WEIGHTS = [[0.7, 0.1, 0.1, 0.1], [0.05, 0.35, 0.6, 0.0], [0.0, 0.0, 0.3, 0.7]]


def labels(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def numbers(axes):
    return [text.get_text() for text in axes.texts]


def test_queries_label_rows_and_keys_label_columns_at_the_top():
    axes = plot_heatmap(WEIGHTS, QUERIES, KEYS).axes[0]
    assert labels(axes.yaxis) == QUERIES
    assert labels(axes.xaxis) == KEYS
    assert axes.xaxis.get_ticks_position() == "top"
    assert axes.images[0].get_array().tolist() == WEIGHTS
    # the first query is above the second
    assert axes.transData.transform((0, 0))[1] > axes.transData.transform((0, 1))[1]


def test_figure_at_the_end_of_a_cell_is_shown_as_a_picture():
    formatters = pytest.importorskip("IPython.core.formatters")
    picture = formatters.PNGFormatter()(plot_heatmap(WEIGHTS, QUERIES, [*KEYS[:3], "猫"]))
    assert picture.startswith(b"\x89PNG")


def test_colour_scale_runs_from_zero_to_vmax():
    assert plot_heatmap(WEIGHTS, QUERIES, KEYS).axes[0].images[0].get_clim() == (0.0, 1.0)
    assert plot_heatmap(WEIGHTS, QUERIES, KEYS, vmax=0.8).axes[0].images[0].get_clim() == (0.0, 0.8)


def colour_bar(figure):
    return figure.axes[0].images[0].colorbar


def test_colour_bar_shows_the_scale_and_overflow():
    bar = colour_bar(plot_heatmap(WEIGHTS, QUERIES, KEYS, vmax=0.7))
    assert (bar.vmin, bar.vmax, bar.extend) == (0.0, 0.7, "neither")
    assert colour_bar(plot_heatmap(WEIGHTS, QUERIES, KEYS, vmax=0.5)).extend == "max"


def test_colour_map_is_cividis():
    assert plot_heatmap(WEIGHTS, QUERIES, KEYS).axes[0].images[0].get_cmap().name == "cividis"


def test_small_map_shows_numbers_that_do_not_round_to_zero():
    shown = numbers(plot_heatmap(WEIGHTS, QUERIES, KEYS).axes[0])
    assert shown[:5] == ["0.70", "0.10", "0.10", "0.10", "0.05"]
    assert shown[-2:] == ["0.30", "0.70"]
    assert numbers(plot_heatmap([[0.0, 0.004, 0.996]], ["a"], KEYS[:3]).axes[0]) == ["1.00"]


def test_numbers_are_white_on_dark_and_black_on_light_cells():
    texts = plot_heatmap([[0.1, 0.9]], ["a"], ["x", "y"]).axes[0].texts
    assert [to_rgb(text.get_color()) for text in texts] == [(1, 1, 1), (0, 0, 0)]


@pytest.mark.parametrize(("size", "shown"), [((12, 5), 60), ((13, 5), 0), ((5, 13), 0)])
def test_large_map_shows_no_numbers(size, shown):
    queries, keys = map(str, range(size[0])), map(str, range(size[1]))
    drawn = plot_heatmap(torch.full(size, 0.1), list(queries), list(keys))
    assert len(drawn.axes[0].texts) == shown


def extents(ticks, figure):
    figure.draw_without_rendering()
    return [label.get_window_extent() for label in ticks]


def test_short_key_labels_are_upright_and_do_not_overlap():
    drawn = plot_heatmap(WEIGHTS, QUERIES, KEYS)
    ticks = drawn.axes[0].get_xticklabels()
    assert {label.get_rotation() for label in ticks} == {0}
    boxes = extents(ticks, drawn)
    assert all(a.x1 < b.x0 for a, b in itertools.pairwise(boxes))


def test_long_key_labels_are_rotated():
    drawn = plot_heatmap(WEIGHTS, QUERIES, ["a", "remarkably", "small", "house"])
    assert {label.get_rotation() for label in drawn.axes[0].get_xticklabels()} == {60}


def test_very_long_label_is_truncated():
    drawn = plot_heatmap([[1.0]], ["q" * 40], ["k" * 40]).axes[0]
    assert labels(drawn.yaxis) == ["q" * 23 + "…"]
    assert labels(drawn.xaxis) == ["k" * 23 + "…"]


def test_huge_map_has_a_printable_size_and_labels_that_do_not_overlap():
    names = [str(number) for number in range(300)]
    drawn = plot_heatmap(torch.zeros(300, 200), names, names[:200])
    assert max(drawn.get_size_inches()) < 30
    assert labels(drawn.axes[0].yaxis)[:3] == ["0", "3", "6"]
    boxes = extents(drawn.axes[0].get_yticklabels(), drawn)
    assert all(a.y0 > b.y1 for a, b in itertools.pairwise(boxes))


def test_label_is_never_markup(tmp_path):
    drawn = plot_heatmap([[0.5, 0.5]], [r"$\frac$"], ["$x$", "\x1b"], title="$\\oops$")
    save_figure(drawn, tmp_path / "money.png")  # as a formula, the first word would not parse
    assert labels(drawn.axes[0].xaxis) == ["$x$", r"\x1b"]


def test_title_is_above_the_map():
    assert plot_heatmap(WEIGHTS, QUERIES, KEYS, title="Head").get_suptitle() == "Head"
    assert plot_heatmap(WEIGHTS, QUERIES, KEYS).get_suptitle() == ""


def test_outlines_contrast_with_their_cells_and_the_caption_is_below():
    drawn = plot_heatmap(WEIGHTS, QUERIES, KEYS, outlined=[(0, 3), (2, 3)], caption="Gold")
    patches = drawn.axes[0].patches
    centres = [(patch.get_x() + 0.42, patch.get_y() + 0.42) for patch in patches]
    assert centres == [(3, 0), (3, 2)]
    assert [to_rgb(patch.get_edgecolor()) for patch in patches] == [(1, 1, 1), (0, 0, 0)]
    assert drawn.get_supxlabel() == "Gold"


def test_wrong_number_of_labels_is_refused():
    with pytest.raises(RegardError, match="queries must have .* 3, not 4"):
        plot_heatmap(WEIGHTS, KEYS, KEYS)


@pytest.mark.parametrize(
    ("name", "start"),
    [("map.png", b"\x89PNG"), ("map.SVG", b"<?xml"), ("map.pdf", b"%PDF"), ("map", b"\x89PNG")],
)
def test_figure_is_saved_in_the_format_of_its_extension(tmp_path, name, start):
    save_figure(plot_heatmap(WEIGHTS, QUERIES, KEYS), tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(start)
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_saved_picture_has_the_colours_of_its_weights(tmp_path):
    save_figure(plot_heatmap([[0.0, 1.0]], ["a"], ["x", "y"]), tmp_path / "two.png")
    pixels = image.imread(tmp_path / "two.png")[..., :3].reshape(-1, 3)
    for colour in [(0, 34, 78), (254, 232, 56)]:
        near = abs(255 * pixels - colour).max(axis=1) < 2
        assert near.sum() > 60 * 60  # most of a cell of 0.6 inches


def test_unknown_format_is_refused_with_the_choices(tmp_path):
    with pytest.raises(
        RegardError, match=r"no picture format is called 'docx' .*pdf, .*png, .*svg"
    ):
        save_figure(plot_heatmap(WEIGHTS, QUERIES, KEYS), tmp_path / "map.docx")


def test_missing_folder_is_reported_in_one_line(tmp_path):
    with pytest.raises(RegardError, match=r"cannot write .*map\.png: No such file or directory"):
        save_figure(plot_heatmap(WEIGHTS, QUERIES, KEYS), tmp_path / "nowhere" / "map.png")


def test_missing_matplotlib_is_reported_with_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(RegardError, match=r"not installed: pip install 'regard\[pictures\]'"):
        plot_heatmap(WEIGHTS, QUERIES, KEYS)


def test_importing_viz_imports_neither_torch_nor_matplotlib():
    check = "import sys, regard.viz; print({'torch', 'matplotlib'} & set(sys.modules))"
    result = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True)
    assert (result.stdout, result.stderr) == ("set()\n", "")


def test_plotting_does_not_import_pyplot():
    check = (
        "import sys; from regard.viz import plot_heatmap; "
        "plot_heatmap([[1.0]], ['a'], ['b']); print('matplotlib.pyplot' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True)
    assert (result.stdout, result.stderr) == ("False\n", "")


@pytest.mark.parametrize("part", ["word ", "word", "力"])
def test_long_title_is_wrapped_to_the_figure_and_truncated(tmp_path, part):
    keys = [str(number) for number in range(9)]
    drawn = plot_heatmap([[1 / 9] * 9], ["a"], keys, title=part * 1200, caption=part * 1200)
    for text in (drawn.get_suptitle(), drawn.get_supxlabel()):
        assert text.count("\n") == 2 and text.endswith("…")
    save_figure(drawn, tmp_path / "long.svg")
    width = re.search(r'width="([\d.]+)pt"', (tmp_path / "long.svg").read_text("utf-8"))[1]
    assert float(width) < 1.3 * 72 * drawn.get_size_inches()[0]


def test_title_is_wrapped_only_if_it_does_not_fit():
    assert plot_heatmap([[1.0]], ["a"], ["b"], title="t" * 40).get_suptitle() == "t" * 40
    longer = plot_heatmap(
        [[1.0]], ["a"], ["b"], title=" ".join(["to be broken"] * 5)
    ).get_suptitle()
    assert longer == "to be broken to be broken to be broken\nto be broken to be broken"


@pytest.mark.parametrize(("kind", "start"), [("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_given_format_overrides_the_extension(tmp_path, kind, start):
    save_figure(plot_heatmap(WEIGHTS, QUERIES, KEYS), tmp_path / "map.svg", kind)
    assert (tmp_path / "map.svg").read_bytes().startswith(start)


def test_characters_invalid_in_xml_give_a_valid_svg(tmp_path):
    save_figure(plot_heatmap([[1.0]], ["\uffff"], ["\x00"], title="\ufffe"), tmp_path / "odd.svg")
    assert ElementTree.parse(tmp_path / "odd.svg").getroot().tag.endswith("svg")
