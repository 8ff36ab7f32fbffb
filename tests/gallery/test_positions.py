import itertools
import math

import pytest
import torch

from regard.gallery.positions import LENGTH, STEP, WIDTH, by_distance, draw, shift
from regard.positions import sinusoidal


@pytest.fixture(scope="module")
def pictures():
    return draw()


def test_curves_are_columns_of_the_sinusoidal_table(pictures):
    for column, line in zip((6, 7, 8, 9), pictures["table"].axes[1].lines, strict=True):
        wave = math.cos if column % 2 else math.sin
        rate = 10_000 ** -(column // 2 * 2 / WIDTH)
        expected = [wave(rate * position) for position in range(LENGTH)]
        assert line.get_ydata() == pytest.approx(expected, abs=1e-5)


def test_counter_is_binary(pictures):
    bits = pictures["turns"].axes[0].images[0].get_array()
    for position in range(LENGTH):
        digits = "".join(str(bit) for bit in bits[::-1, position])
        assert int(digits, 2) == position


def test_each_step_rotates_by_the_same_angle(pictures):
    for pair, axes in zip((0, 2, 4, 6), pictures["turns"].axes[2:], strict=True):
        ends = [complex(line.get_xdata()[1], line.get_ydata()[1]) for line in axes.lines]
        turns = [after / before for before, after in itertools.pairwise(ends)]
        rate = 10_000 ** (-2 * pair / WIDTH)
        assert turns == pytest.approx([complex(math.cos(rate), math.sin(rate))] * 7, abs=1e-5)


def test_one_rotation_matrix_shifts_every_position():
    table = sinusoidal(LENGTH, 8)
    matrix = shift(table, STEP)
    assert torch.allclose(table[:-STEP].double() @ matrix, table[STEP:].double(), atol=1e-6)
    turn = torch.tensor([[math.cos(5), -math.sin(5)], [math.sin(5), math.cos(5)]])
    assert torch.allclose(matrix[:2, :2], turn.double(), atol=1e-4)
    assert torch.allclose(matrix @ matrix.T, torch.eye(8).double(), atol=1e-2)


def test_dot_products_of_positions_depend_on_distance_alone(pictures):
    products = torch.tensor(pictures["shift"].axes[1].images[0].get_array())
    for apart in (0, 1, 7, 40):
        diagonal = products.diagonal(apart)
        assert torch.allclose(diagonal, diagonal[0].expand(len(diagonal)), atol=1e-4)


@pytest.mark.parametrize("kind", ["rotary", "ALiBi"])
def test_rotary_and_alibi_scores_depend_on_distance_alone(kind):
    assert torch.allclose(by_distance(kind, 20), by_distance(kind, 200), atol=1e-4)


def test_added_sinusoids_depend_on_position_and_alibi_decreases_with_distance():
    assert not torch.allclose(by_distance("sinusoidal", 20), by_distance("sinusoidal", 200), atol=1)
    falling = by_distance("ALiBi", 20)[20:].diff()
    assert torch.allclose(falling, torch.tensor(-(2.0**-4)).expand(20))
