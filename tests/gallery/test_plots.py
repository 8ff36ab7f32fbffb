import math

import pytest
import torch

from regard.gallery.plots import matrix_heatmap, word_heatmap
from regard.viz import new_figure


@pytest.fixture
def axes():
    return new_figure(2.0, 2.0).subplots()


def test_cells_are_annotated_and_exact_zero_is_bare(axes):
    matrix_heatmap(axes, torch.tensor([[0.0, 0.25], [1.0, math.nan]]), vmax=1.0, cell_format=".2f")
    written = {text.get_position(): text.get_text() for text in axes.texts}
    assert written == {(0, 0): "0", (1, 0): "0.25", (0, 1): "1.00", (1, 1): "NaN"}


def test_annotation_contrasts_with_its_cell(axes):
    matrix_heatmap(axes, torch.tensor([[0.0, 1.0, math.nan]]), vmax=1.0, cell_format=".2f")
    dark, light, white = (sum(text.get_color()) for text in axes.texts)
    assert dark == 3 and light == white == 0


def test_diverging_scale_is_centred_at_zero(axes):
    image = matrix_heatmap(axes, torch.tensor([[-3.0, 1.0]]), diverging=True)
    assert image.get_clim() == (-3, 3)


def test_scale_runs_from_zero_to_the_largest_value(axes):
    assert matrix_heatmap(axes, torch.tensor([[0.5, 2.0]])).get_clim() == (0, 2)


def test_rows_and_columns_are_labelled(axes):
    matrix_heatmap(axes, torch.ones(2, 3), ["a", "b"], ["c", "d", "猫"], title="t")
    assert [label.get_text() for label in axes.get_xticklabels()] == ["c", "d", "猫"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "b"]
    assert axes.get_title() == "t"


@pytest.fixture
def word_map_axes():
    axes = new_figure(4.0, 4.0).subplots()
    weights = torch.tensor([[0.8, 0.0, 0.0], [0.5, 0.5 - 1e-12, 1e-12]])
    word_heatmap(axes, weights, ["le", "chat"], ["the", "$cat$", "mat"], gold=[(1, 2)])
    return axes


def cell_of(patch):
    x, y = patch.get_xy()
    return round(y + patch.get_height() / 2), round(x + patch.get_width() / 2)


def test_only_exact_zeros_are_hatched(word_map_axes):
    hatched = [cell_of(patch) for patch in word_map_axes.patches if patch.get_hatch()]
    assert sorted(hatched) == [(0, 1), (0, 2)]


def test_gold_cells_are_outlined(word_map_axes):
    assert [cell_of(patch) for patch in word_map_axes.patches if not patch.get_hatch()] == [(1, 2)]


def test_word_heatmap_scale_runs_from_zero_to_one(word_map_axes):
    assert word_map_axes.images[0].get_clim() == (0.0, 1.0)
    assert [label.get_text() for label in word_map_axes.get_yticklabels()] == ["le", "chat"]


def test_word_map_says_what_rows_and_columns_are(word_map_axes):
    assert (word_map_axes.get_ylabel(), word_map_axes.get_xlabel()) == ("query ↓", "key →")


def test_word_map_without_row_labels_has_no_title_of_rows(axes):
    titles = ("writing ↓", "reading →")
    word_heatmap(axes, torch.eye(2), ["", ""], ["the", "cat"], axis_titles=titles)
    assert (axes.get_ylabel(), axes.get_xlabel()) == ("", "reading →")
