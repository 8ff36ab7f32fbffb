import pytest
import torch
from torch import nn
from torch.nn.attention.bias import causal_lower_right, causal_upper_left

from regard.capture.mask_analysis import hidden_from_all, hides_later, plain


def stairs(queries, keys, offset=0):
    return torch.ones(queries, keys, dtype=torch.bool).tril(offset)[None, None]


def padded(*lengths, keys=5):
    return (torch.arange(keys) < torch.tensor(lengths)[:, None])[:, None, None]


@pytest.mark.parametrize("stretched", [True, False])
def test_padding_is_not_what_comes_later(stretched):
    for lengths in ([1, 5], [1], [1, 1]):
        mask = padded(*lengths).expand(-1, 3, 5, -1)
        assert not hides_later(mask if stretched else mask.contiguous(), 0), lengths


def test_every_sentence_and_head_is_asked():
    mask = stairs(5, 5).repeat(2, 3, 1, 1)
    assert hides_later(mask, 0)
    assert hides_later(mask & padded(1, 5), 0)
    mask[1, 2, 0, 4] = True
    assert not hides_later(mask, 0)


def test_later_is_counted_from_where_the_first_query_stands():
    assert hides_later(stairs(3, 7, 4), 4)
    assert not hides_later(stairs(3, 7, 4), 0)


def test_keys_that_were_added_stand_nowhere():
    mask = stairs(5, 6)
    mask[..., 5] = True
    assert hides_later(mask, 0, added=1) and not hides_later(mask, 0)


@pytest.mark.parametrize("least", [None, -torch.inf, -1e4, torch.finfo(torch.float32).min])
def test_keys_that_nobody_may_see_are_hidden(least):
    mask = (padded(2, 5) & stairs(5, 5)).expand(2, 3, 5, 5)
    if least is not None:
        mask = torch.zeros(2, 3, 5, 5).masked_fill(~mask, least)
    assert hidden_from_all(mask).tolist() == [[False] * 2 + [True] * 3, [False] * 5]


def test_the_causal_biases_of_torch_are_what_they_stand_for():
    assert torch.equal(plain(causal_upper_left(3, 5)), stairs(3, 5)[0, 0])
    assert torch.equal(plain(causal_lower_right(3, 5)), stairs(3, 5, 2)[0, 0])


def test_a_mask_of_unknown_numbers_is_refused():
    class Strange(torch.Tensor):
        pass

    learned = nn.Parameter(torch.zeros(2))
    assert plain(learned) is learned
    with pytest.raises(TypeError, match="the mask is a Strange, whose numbers are not known"):
        plain(torch.zeros(2).as_subclass(Strange))
