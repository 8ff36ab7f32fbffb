import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from regard import RegardError
from regard.trace import Trace, build_translation_trace
from regard.viz import plot_all_heads, plot_head, plot_layer, plot_translation, save_figure


def map_axes(figure):
    return [axes for axes in figure.axes if axes.images]


def titles(figure):
    return [axes.get_title() for axes in map_axes(figure)]


def labels(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def test_head_has_labels_title_caption_and_gold_outlines(trace):
    drawn = plot_head(trace, "cross", 1, 0)
    axes = drawn.axes[0]
    assert labels(axes.yaxis) == ["猫", "坐", "着", "</s>"]
    assert drawn.get_suptitle() == 'a <script>"cat"</script>'
    assert drawn.get_supxlabel().replace("\n", " ") == (
        "a hand-made translator · Cross-attention · layer 1, head 0 (outlined: gold alignment)"
    )
    outlined = {(patch.get_y() + 0.42, patch.get_x() + 0.42) for patch in axes.patches}
    assert outlined == {(0, 1), (1, 2), (1, 3), (2, 2), (2, 3)}


def test_axis_titles_describe_rows_and_columns(trace):
    def axis_titles(**selection):
        axes = plot_head(trace, **selection).axes[0]
        return axes.get_ylabel(), axes.get_xlabel()

    assert axis_titles() == ("writing ↓", "reading →")
    assert axis_titles(rows="input") == ("decoder input ↓", "reading →")
    assert axis_titles(kind="decoder", rows="input") == ("query ↓", "key →")


def test_rows_named_by_input_words_have_their_own_gold_outlines(trace):
    axes = plot_head(trace, "cross", 1, 0, rows="input").axes[0]
    assert labels(axes.yaxis) == ["<s>", "猫", "坐", "着"]
    outlined = {(patch.get_y() + 0.42, patch.get_x() + 0.42) for patch in axes.patches}
    assert outlined == {(1, 1), (2, 2), (2, 3), (3, 2), (3, 3)}
    for plot in (plot_layer, plot_translation):
        drawn = map_axes(plot(trace, rows="input"))[-1]
        assert labels(drawn.yaxis) == ["<s>", "猫", "坐", "着"]


@pytest.mark.parametrize("plot", [plot_head, plot_layer, plot_translation])
def test_column_labels_are_between_their_title_and_the_map(trace, plot):
    drawn = plot(trace)
    drawn.canvas.draw()
    for axes in map_axes(drawn):
        map_top = axes.get_window_extent().y1
        boxes = [label.get_window_extent() for label in axes.get_xticklabels() if label.get_text()]
        assert boxes and min(box.y0 for box in boxes) >= map_top
        title = axes.xaxis.label.get_window_extent()
        assert title.y0 >= max(box.y0 for box in boxes)
        if axes.get_title():
            assert axes.title.get_window_extent().y0 >= title.y0


def test_maps_of_small_weights_have_their_own_scale_in_the_title():
    flat, peaked = np.full((3, 4), 0.25), np.eye(3, 4)
    trace = build_translation_trace(list("abcd"), list("xyz"), cross=[np.stack([flat, peaked])])
    drawn = plot_layer(trace)
    assert titles(drawn) == ["head 0 (0–0.25)", "head 1"]
    assert [axes.images[0].get_clim() for axes in map_axes(drawn)] == [(0, 0.25), (0, 1)]
    assert "largest weight" in drawn.get_supxlabel()
    one = plot_head(trace, "cross", 0, 0)
    assert one.axes[0].images[0].get_clim() == (0, 0.25)
    assert "scaled to the largest of this map" in one.get_supxlabel().replace("\n", " ")
    assert plot_head(trace, "cross", 0, 0, vmax=1.0).axes[0].images[0].get_clim() == (0, 1)


def test_attention_without_gold_has_no_outlines(trace):
    drawn = plot_head(trace, "encoder")
    assert not drawn.axes[0].patches
    assert drawn.get_supxlabel() == "a hand-made translator · Encoder · layer 0, head 0"


def test_heads_of_a_layer_are_in_order_on_one_scale(trace):
    drawn = plot_layer(trace, "cross", -1)
    assert titles(drawn) == ["head 0", "head 3"]
    assert {axes.images[0].get_clim() for axes in map_axes(drawn)} == {(0.0, 1.0)}
    assert {axes.images[0].get_cmap().name for axes in map_axes(drawn)} == {"cividis"}
    assert len(drawn.axes) == 2 + 1  # and one colour bar
    assert drawn.get_supxlabel().startswith("a hand-made translator · Cross-attention · layer 2")


def test_five_heads_take_two_rows_and_leave_the_rest_empty():
    weights = np.full((5, 2, 3), 1 / 3)
    drawn = plot_layer(build_translation_trace("abc", "xy", cross=[weights]))
    assert titles(drawn) == [f"head {n}" for n in range(5)]
    assert len({round(axes.get_subplotspec().rowspan.start) for axes in map_axes(drawn)}) == 2
    assert sum(not axes.axison for axes in drawn.axes) == 3


def test_all_heads_have_one_row_per_layer(trace):
    drawn = plot_all_heads(trace, "cross")
    assert titles(drawn) == ["0.0", "0.1", "1.0", "1.1", "2.0", "2.3"]
    label = " ".join(drawn.get_supxlabel().split())
    assert label == "a hand-made translator · Cross-attention: layer.head · writing ↓ reading →"
    assert all(not labels(axes.xaxis) for axes in map_axes(drawn))


def test_translation_shows_three_attentions_side_by_side(trace):
    drawn = plot_translation(trace, 0, 1)
    names = ("Encoder", "Decoder", "Cross-attention")
    assert titles(drawn) == [f"{name} · layer 0, head 1" for name in names]
    shown = [axes.images[0].get_array().shape for axes in map_axes(drawn)]
    assert shown == [(5, 5), (4, 4), (4, 5)]
    assert len({axes.get_subplotspec().rowspan.start for axes in map_axes(drawn)}) == 1
    assert len(map_axes(drawn)[2].patches) == 5


def test_translation_with_one_attention_shows_that_one():
    trace = build_translation_trace("abc", "xy", cross=[np.full((1, 2, 3), 1 / 3)])
    assert titles(plot_translation(trace)) == ["Cross-attention · layer 0, head 0"]


def test_labels_of_a_large_panel_do_not_overlap():
    weights = np.full((1, 90, 70), 1 / 70)
    drawn = plot_layer(build_translation_trace(["key"] * 70, ["query"] * 90, cross=[weights]))
    drawn.draw_without_rendering()
    boxes = [label.get_window_extent() for label in map_axes(drawn)[0].get_yticklabels()]
    assert all(a.y0 >= b.y1 for a, b in pairwise(boxes))


def test_svg_keeps_text_as_text_and_labels_are_not_markup(trace, tmp_path):
    save_figure(plot_translation(replace(trace, model="$x$ & <b>")), tmp_path / "three.svg")
    svg = (tmp_path / "three.svg").read_text("utf-8")
    shown = re.findall("<text[^>]*>([^<]*)</text>", svg)
    assert {"猫", "着", "cat", "&lt;/s&gt;"} <= set(shown)
    assert "<script" not in svg and "<b>" not in svg


def test_missing_layer_and_empty_trace_are_refused(trace):
    with pytest.raises(RegardError, match=r"no layer 7 in cross"):
        plot_layer(trace, "cross", 7)
    with pytest.raises(RegardError, match=r"no attention maps, so there is nothing to draw"):
        plot_translation(Trace(tokens=trace.tokens, maps=()))


@pytest.mark.parametrize("plot", [plot_all_heads, plot_layer])
@pytest.mark.parametrize("line", ["first key", "previous token"])
def test_line_of_one_cell_is_visible_in_a_map_of_more_cells_than_pixels(plot, line):
    count = 400
    weights = (
        np.eye(count, k=-1) if line == "previous token" else np.eye(1, count) + np.zeros((count, 1))
    )
    maps = [np.stack([weights] * 6)] * 6
    tokens = [str(n) for n in range(count)]
    figure = plot(build_translation_trace(tokens, tokens, cross=maps))
    figure.canvas.draw()
    pixels = np.asarray(figure.canvas.buffer_rgba())[..., :3].astype(int)
    for axes in map_axes(figure):
        assert axes.images[0].get_extent() == [-0.5, count - 0.5, count - 0.5, -0.5]
        box = axes.get_window_extent()
        top = len(pixels) - int(box.y1)
        panel = pixels[top : top + int(box.height), int(box.x0) : int(box.x1)]
        is_bright = (panel[..., 0] > 200) & (panel[..., 2] < 100)  # the end of cividis
        assert is_bright.any(axis=1)[5:-5].all()


@pytest.mark.parametrize("plot", [plot_head, plot_layer, plot_all_heads])
def test_caption_of_a_one_token_map_fits_the_figure(plot):
    trace = build_translation_trace(["Hi"], ["Salut"], cross=[[[[1.0]]]])
    figure = plot(trace)
    figure.canvas.draw()
    box, width = figure._supxlabel.get_window_extent(), figure.get_window_extent().width
    assert box.x0 >= 0 and box.x1 <= width
