import math

import pytest
import torch

from regard.attention.scores.parameter import PositiveParameter


@pytest.mark.parametrize("learnable", [False, True])
@pytest.mark.parametrize("start", [1e-6, 0.25, 1.0, 3e7])
def test_it_starts_where_it_is_told(start, learnable):
    number = PositiveParameter("bandwidth", start, learnable).value
    assert number.shape == ()
    assert number.item() == pytest.approx(start)


def test_learned_it_is_one_parameter_and_fixed_it_is_none():
    assert len(list(PositiveParameter("bandwidth", 2.0, learnable=True).parameters())) == 1
    assert not list(PositiveParameter("bandwidth", 2.0, learnable=False).parameters())


def test_learned_it_is_saved_and_read_back():
    ours, other = (PositiveParameter("bandwidth", start, learnable=True) for start in (2.0, 5.0))
    other.load_state_dict(ours.state_dict())
    assert other.value.item() == pytest.approx(2.0)


@pytest.mark.parametrize("wish", [-1, 1])
def test_it_stays_above_zero_however_it_is_pulled(wish):
    positive = PositiveParameter("bandwidth", 1.0, learnable=True)
    before = positive.value.item()
    optimizer = torch.optim.SGD(positive.parameters(), lr=0.5)
    for _ in range(50):
        optimizer.zero_grad()
        (positive.value.log() * -wish).backward()
        optimizer.step()
    after = positive.value.item()
    assert 0 < after < math.inf
    assert (after - before) * wish > 0, "it learns in the direction it is pulled"


@pytest.mark.parametrize("learnable", [False, True])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_it_does_not_widen_the_tensors_it_meets(dtype, learnable):
    number = PositiveParameter("bandwidth", 2.0, learnable).value
    assert (torch.ones(3, dtype=dtype) / number).dtype == dtype


@pytest.mark.parametrize("start", [0.0, -1.5, math.nan, math.inf])
@pytest.mark.parametrize("learnable", [False, True])
def test_what_is_not_above_zero_is_refused(start, learnable):
    with pytest.raises(ValueError, match=f"width must be a finite number above 0.*is {start}; 1.0"):
        PositiveParameter("width", start, learnable)


@pytest.mark.parametrize("learnable", [False, True])
def test_the_repr_shows_the_number(learnable):
    assert (
        repr(PositiveParameter("bandwidth", 0.5, learnable))
        == f"PositiveParameter(0.5, learnable={learnable})"
    )
