import pytest
import torch

from regard.gallery.masked_softmax import draw, tokens

COUNTS = torch.tensor([1, 2, 2, 4, 5, 0])
ROW, KEY = torch.arange(6)[:, None], torch.arange(6)
WANTED = [
    torch.ones(6, 6, dtype=torch.bool),
    (KEY < 5).expand(6, 6),
    COUNTS[:, None] > KEY,
    (KEY < 5).expand(6, 6),
    KEY <= ROW,
    (KEY - ROW).abs() <= 1,
    (KEY <= ROW) & (KEY < 5),
    (KEY <= ROW) & (KEY >= ROW - 2) & (KEY < 5),
]


@pytest.fixture(scope="module")
def pictures():
    return draw()


def matrix(axes):
    return torch.tensor(axes.images[0].get_array().filled(float("nan")))


def test_masked_keys_get_zero_weight_and_rows_are_renormalised(pictures):
    row = tokens()[0].double()
    powers = (row @ row.T / 8**0.5).exp()
    for axes, allowed in zip(pictures["masks"].axes[:8], WANTED, strict=True):
        heights = powers * allowed
        expected = heights / heights.sum(-1, keepdim=True).clamp(min=1e-300)
        assert torch.allclose(matrix(axes).double(), expected, atol=1e-6)
        assert (matrix(axes)[~allowed] == 0).all()


def test_only_masked_cells_are_hatched(pictures):
    for axes, allowed in zip(pictures["masks"].axes[:8], WANTED, strict=True):
        hatched = {(round(p.get_y() + 0.5), round(p.get_x() + 0.5)) for p in axes.patches}
        assert hatched == {tuple(cell) for cell in (~allowed).nonzero().tolist()}


def test_fully_masked_row_is_nan_uniform_or_zero(pictures):
    infinite, large, ours = map(matrix, pictures["fully-masked"].axes[:3])
    assert infinite[-1].isnan().all()
    assert torch.allclose(large[-1], torch.tensor(1 / 6).to(large.dtype))
    assert (ours[-1] == 0).all()
    assert torch.allclose(ours[:-1], large[:-1]) and torch.allclose(ours[:-1], infinite[:-1])
