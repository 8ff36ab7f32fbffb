import math

import pytest
import torch

from regard.gallery.plots import cells
from regard.viz.heatmap import new_figure


@pytest.fixture
def axes():
    return new_figure(2.0, 2.0).subplots()


def test_numbers_are_written_in_their_cells_and_an_exact_zero_is_plain(axes):
    cells(axes, torch.tensor([[0.0, 0.25], [1.0, math.nan]]), top=1.0, written=".2f")
    written = {text.get_position(): text.get_text() for text in axes.texts}
    assert written == {(0, 0): "0", (1, 0): "0.25", (0, 1): "1.00", (1, 1): "NaN"}


def test_ink_is_light_on_dark_and_dark_on_light(axes):
    cells(axes, torch.tensor([[0.0, 1.0, math.nan]]), top=1.0, written=".2f")
    dark, light, white = (sum(text.get_color()) for text in axes.texts)
    assert dark == 3 and light == white == 0


def test_a_signed_map_has_zero_in_its_middle(axes):
    image = cells(axes, torch.tensor([[-3.0, 1.0]]), signed=True)
    assert image.get_clim() == (-3, 3)


def test_an_unsigned_map_runs_from_zero_to_the_greatest_number(axes):
    assert cells(axes, torch.tensor([[0.5, 2.0]])).get_clim() == (0, 2)


def test_rows_and_columns_are_named(axes):
    cells(axes, torch.ones(2, 3), ["a", "b"], ["c", "d", "猫"], title="t")
    assert [label.get_text() for label in axes.get_xticklabels()] == ["c", "d", "猫"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "b"]
    assert axes.get_title() == "t"
