import pytest
import torch

from regard.gallery import complexity

LENGTHS = (4, 8, 16)


@pytest.fixture
def figure(monkeypatch):
    monkeypatch.setattr(complexity, "LENGTHS", LENGTHS)
    return complexity.draw()["costs"]


def test_operation_counts_match_the_formulas(figure):
    d, k = complexity.WIDTH, complexity.KERNEL_SIZE
    expected = {
        0: (
            [n * n * d for n in LENGTHS],
            [n * d * d for n in LENGTHS],
            [k * n * d * d for n in LENGTHS],
        ),
        2: ([1, 1, 1], list(LENGTHS), [1, 1, 1]),
        3: ([1, 1, 1], list(LENGTHS), [2, 3, 6]),
    }
    for panel, rows in expected.items():
        assert [list(line.get_ydata()) for line in figure.axes[panel].lines] == list(rows)


def test_every_layer_is_timed_at_every_length(figure):
    lines = figure.axes[1].lines
    assert len(lines) == 3
    assert all(len(line.get_ydata()) == 3 and min(line.get_ydata()) > 0 for line in lines)


def test_timing_runs_in_one_thread_and_restores_the_thread_count():
    calls = []
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        complexity.seconds(lambda rows: calls.append((rows.shape, torch.get_num_threads())), 5, 3)
        assert calls == [((1, 5, complexity.WIDTH), 1)] * 4
        assert torch.get_num_threads() == 2
        with pytest.raises(ZeroDivisionError):
            complexity.seconds(lambda rows: 1 / 0, 5)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_every_layer_keeps_the_input_shape():
    rows = torch.randn(1, 6, complexity.WIDTH)
    attention, recurrence, convolution = complexity.layers().values()
    assert attention(rows).shape == recurrence(rows)[0].shape == convolution(rows).mT.shape
