"""Maps of layers × heads."""

import numpy as np
import pytest
import torch
from matplotlib import image

from regard.errors import RegardError
from regard.viz import font_families, plot_head_map, plot_head_map_difference


def test_positive_values_are_coloured_from_zero_to_the_largest():
    figure = plot_head_map(torch.tensor([[0.2, 0.4, 0.0]]), label="BLEU")
    drawn = figure.axes[0].images[0]
    assert drawn.get_clim() == pytest.approx((0, 0.4))
    assert figure.axes[1].get_ylabel() == "BLEU"


def test_values_of_both_signs_are_coloured_alike_on_both_sides_of_zero():
    drawn = plot_head_map([[-0.5, 0.25]]).axes[0].images[0]
    assert drawn.get_clim() == (-0.5, 0.5)


@pytest.mark.parametrize("shape", [(6, 8), (1, 1), (24, 16)])
def test_saved_figure_has_all_of_its_labels(shape, tmp_path):
    values = np.random.default_rng(0).random(shape)
    plot_head_map_difference(values, values[::-1]).savefig(tmp_path / "map.png")
    pixels = image.imread(tmp_path / "map.png")[..., :3]
    for edge in (pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]):
        assert (edge == 1).all()  # a label that is cut off reaches an edge


def test_layers_are_rows_and_heads_columns():
    figure = plot_head_map(np.arange(6).reshape(2, 3), layers=["encoder.0", "encoder.1"])
    axes = figure.axes[0]
    assert [x.get_text() for x in axes.get_yticklabels()] == ["encoder.0", "encoder.1"]
    assert [x.get_text() for x in axes.texts] == ["0", "1.0", "2.0", "3.0", "4.0", "5.0"]


def test_missing_head_has_no_number():
    figure = plot_head_map([[1.0, 2.0], [3.0, float("nan")]])
    assert [x.get_text() for x in figure.axes[0].texts] == ["1.0", "2.0", "3.0"]


def test_large_map_has_fewer_labels_and_no_numbers():
    axes = plot_head_map(np.ones((40, 24))).axes[0]
    assert not axes.texts
    assert len(axes.get_yticks()) == 14


def test_two_maps_share_a_scale_and_the_third_is_their_difference():
    figure = plot_head_map_difference([[1.0, 3.0]], [[4.0, 2.0]], titles=("a", "b"))
    first, second, change = (axes.images[0] for axes in figure.axes[:3])
    assert first.get_clim() == second.get_clim() == (0, 4)
    np.testing.assert_array_equal(change.get_array(), [[3.0, -1.0]])
    assert change.get_clim() == (-3, 3)
    assert figure.axes[2].get_title() == "b − a"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: plot_head_map([1.0, 2.0]), r"\(layer, head\), but the shape is \(2,\)"),
        (lambda: plot_head_map([[float("inf")]]), "one is infinite"),
        (lambda: plot_head_map([[1.0]], layers=["a", "b"]), "one label per row of values, 1"),
        (lambda: plot_head_map([[1.0]], vmax=0.0), "vmax must be a number above 0"),
        (lambda: plot_head_map_difference([[1.0]], [[1.0, 2.0]]), "same layers and heads"),
    ],
)
def test_wrong_values_are_refused(make, message):
    with pytest.raises(RegardError, match=message):
        make()


def test_label_of_the_colour_bar_has_the_fonts_of_titles():
    """Otherwise Chinese labels are boxes."""
    label = plot_head_map([[1.0, 2.0]], label="损失 $x$").axes[-1].yaxis.label
    assert label.get_text() == "损失 $x$" and not label.get_parse_math()
    assert label.get_fontfamily() == list(font_families())


def test_layers_are_named_once_next_to_two_maps_and_their_difference():
    names = ["model.decoder.layers.0.encoder_attn", "model.decoder.layers.1.encoder_attn"]
    figure = plot_head_map_difference([[1.0], [2.0]], [[2.0], [2.0]], layers=names)
    shown = [[x.get_text() for x in axes.get_yticklabels()] for axes in figure.axes[:3]]
    assert shown == [names, ["", ""], ["", ""]] or shown == [names, [], []]
