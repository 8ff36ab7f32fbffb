import pytest
import torch

from regard.gallery.word_map import word_map
from regard.viz.heatmap import new_figure


@pytest.fixture
def drawn():
    axes = new_figure(4.0, 4.0).subplots()
    weights = torch.tensor([[0.8, 0.0, 0.0], [0.5, 0.5 - 1e-12, 1e-12]])
    word_map(axes, weights, ["le", "chat"], ["the", "$cat$", "mat"], gold=[(1, 2)])
    return axes


def middle(patch):
    x, y = patch.get_xy()
    return round(y + patch.get_height() / 2), round(x + patch.get_width() / 2)


def test_only_cells_that_are_exactly_zero_are_hatched(drawn):
    hatched = [middle(patch) for patch in drawn.patches if patch.get_hatch()]
    assert sorted(hatched) == [(0, 1), (0, 2)]


def test_gold_cells_are_outlined(drawn):
    assert [middle(patch) for patch in drawn.patches if not patch.get_hatch()] == [(1, 2)]


def test_colours_run_from_zero_to_one_whatever_the_weights(drawn):
    assert drawn.images[0].get_clim() == (0.0, 1.0)
    assert [label.get_text() for label in drawn.get_yticklabels()] == ["le", "chat"]
