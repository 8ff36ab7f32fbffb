import math

import pytest
import torch

from regard.attention import Bilinear, Cosine, Dot, Gaussian, ScaledDot
from regard.attention.scores import PositiveParameter
from regard.errors import RegardError

FOLDING = [
    Dot(),
    ScaledDot(),
    ScaledDot(0.3),
    Cosine(0.2),
    Cosine(0.2, learnable=True),
    Bilinear(12),
    Gaussian(2.0),
    Gaussian(2.0, learnable=True),
]


def softmax_of(form):
    key_bias = 0 if form.key_bias is None else form.key_bias[:, None]
    return (form.scale * form.queries @ form.keys.mT + key_bias).softmax(-1)


@pytest.mark.parametrize("score", FOLDING, ids=repr)
def test_dot_product_form_has_the_softmax_of_the_score(score):
    score = score.double()
    queries, keys = torch.randn(2, 5, 12).double(), torch.randn(2, 7, 12).double()
    expected = score(queries, keys).softmax(-1)
    form = score.fold(queries, keys)
    torch.testing.assert_close(softmax_of(form), expected)
    absorbed = form.absorb_key_bias()
    assert absorbed.key_bias is None
    torch.testing.assert_close(softmax_of(absorbed), expected)


@pytest.mark.parametrize("learnable", [False, True])
@pytest.mark.parametrize("initial", [1e-6, 0.25, 1.0, 3e7])
def test_positive_parameter_has_its_initial_value(initial, learnable):
    value = PositiveParameter(initial, learnable).value
    assert value.shape == ()
    assert value.item() == pytest.approx(initial)


def test_positive_parameter_is_a_parameter_only_if_learnable():
    assert len(list(PositiveParameter(2.0, learnable=True).parameters())) == 1
    assert not list(PositiveParameter(2.0, learnable=False).parameters())


def test_learnable_positive_parameter_is_in_the_state_dict():
    first, second = (PositiveParameter(initial, learnable=True) for initial in (2.0, 5.0))
    second.load_state_dict(first.state_dict())
    assert second.value.item() == pytest.approx(2.0)


@pytest.mark.parametrize("direction", [-1, 1])
def test_gradient_descent_keeps_a_positive_parameter_above_zero(direction):
    parameter = PositiveParameter(1.0, learnable=True)
    before = parameter.value.item()
    optimizer = torch.optim.SGD(parameter.parameters(), lr=0.5)
    for _ in range(50):
        optimizer.zero_grad()
        (parameter.value.log() * -direction).backward()
        optimizer.step()
    after = parameter.value.item()
    assert 0 < after < math.inf
    assert (after - before) * direction > 0, "it follows the gradient"


@pytest.mark.parametrize("learnable", [False, True])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_positive_parameter_does_not_promote_other_tensors(dtype, learnable):
    value = PositiveParameter(2.0, learnable).value
    assert (torch.ones(3, dtype=dtype) / value).dtype == dtype


@pytest.mark.parametrize("initial", [0.0, -1.5, math.nan, math.inf])
@pytest.mark.parametrize("learnable", [False, True])
def test_positive_parameter_refuses_what_is_not_above_zero(initial, learnable):
    message = f"bandwidth must be finite and above 0, but it is {initial}; 1.0 is the default"
    with pytest.raises(RegardError, match=message):
        PositiveParameter(initial, learnable, "bandwidth")


@pytest.mark.parametrize("learnable", [False, True])
def test_repr_of_a_positive_parameter_shows_value_and_kind(learnable):
    expected = f"PositiveParameter(0.5, learnable={learnable})"
    assert repr(PositiveParameter(0.5, learnable)) == expected
