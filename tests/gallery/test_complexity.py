import pytest
import torch

from regard.gallery import complexity

LENGTHS = (4, 8, 16)


@pytest.fixture
def figure(monkeypatch):
    monkeypatch.setattr(complexity, "LENGTHS", LENGTHS)
    return complexity.draw()["costs"]


def test_the_counts_drawn_are_those_of_the_formulas(figure):
    d, k = complexity.WIDTH, complexity.REACH
    wanted = {
        0: (
            [n * n * d for n in LENGTHS],
            [n * d * d for n in LENGTHS],
            [k * n * d * d for n in LENGTHS],
        ),
        2: ([1, 1, 1], list(LENGTHS), [1, 1, 1]),
        3: ([1, 1, 1], list(LENGTHS), [2, 3, 6]),
    }
    for panel, rows in wanted.items():
        assert [list(line.get_ydata()) for line in figure.axes[panel].lines] == list(rows)


def test_every_kind_is_measured_at_every_length(figure):
    lines = figure.axes[1].lines
    assert len(lines) == 3
    assert all(len(line.get_ydata()) == 3 and min(line.get_ydata()) > 0 for line in lines)


def test_what_is_measured_is_the_layer_on_rows_of_that_length_in_one_thread():
    seen = []
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        complexity.seconds(lambda rows: seen.append((rows.shape, torch.get_num_threads())), 5, 3)
        assert seen == [((1, 5, complexity.WIDTH), 1)] * 4
        assert torch.get_num_threads() == 2
        with pytest.raises(ZeroDivisionError):
            complexity.seconds(lambda rows: 1 / 0, 5)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_each_layer_gives_rows_of_the_same_size():
    rows = torch.randn(1, 6, complexity.WIDTH)
    attention, recurrence, convolution = complexity.layers().values()
    assert attention(rows).shape == recurrence(rows)[0].shape == convolution(rows).mT.shape
