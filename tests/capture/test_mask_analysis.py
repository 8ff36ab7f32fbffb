import pytest
import torch
from torch import nn
from torch.nn.attention.bias import causal_lower_right, causal_upper_left

from regard.capture.calls.mask_analysis import (
    as_tensor,
    fully_masked_keys,
    is_causal,
    is_causal_sampled,
    visible_to_any,
)


def causal_mask(queries, keys, offset=0):
    return torch.ones(queries, keys, dtype=torch.bool).tril(offset)[None, None]


def padding_mask(*lengths, keys=5):
    return (torch.arange(keys) < torch.tensor(lengths)[:, None])[:, None, None]


@pytest.mark.parametrize("expanded", [True, False])
@pytest.mark.parametrize("lengths", [[1, 5], [1], [1, 1]])
def test_padding_mask_is_not_causal(lengths, expanded):
    mask = padding_mask(*lengths).expand(-1, 3, 5, -1)
    assert not is_causal(mask if expanded else mask.contiguous(), 0)


def test_every_batch_item_and_head_must_be_causal():
    mask = causal_mask(5, 5).repeat(2, 3, 1, 1)
    assert is_causal(mask, 0)
    assert is_causal(mask & padding_mask(1, 5), 0)
    mask[1, 2, 0, 4] = True
    assert not is_causal(mask, 0)


def test_later_keys_are_counted_from_the_offset():
    assert is_causal(causal_mask(3, 7, 4), 4)
    assert not is_causal(causal_mask(3, 7, 4), 0)


def test_extra_keys_may_be_visible_in_a_causal_mask():
    mask = causal_mask(5, 6)
    mask[..., 5] = True
    assert is_causal(mask, 0, extra_keys=1) and not is_causal(mask, 0)


@pytest.mark.parametrize("minimum", [None, -torch.inf, -1e4, torch.finfo(torch.float32).min])
def test_keys_masked_for_all_queries_are_fully_masked(minimum):
    mask = (padding_mask(2, 5) & causal_mask(5, 5)).expand(2, 3, 5, 5)
    if minimum is not None:
        mask = torch.zeros(2, 3, 5, 5).masked_fill(~mask, minimum)
    assert fully_masked_keys(mask).tolist() == [[False] * 2 + [True] * 3, [False] * 5]


@pytest.mark.parametrize("queries, keys, offset", [(5, 5, 0), (3, 7, 4), (600, 600, 0)])
def test_sampled_rows_and_blocks_agree_with_the_whole_mask(queries, keys, offset):
    mask = causal_mask(queries, keys, offset)[0, 0]
    full = torch.ones_like(mask)
    for rows in (mask, full):
        sampled = is_causal_sampled(
            lambda row, key, rows=rows: bool(rows[row, key:].any()), queries, keys, offset
        )
        assert sampled == is_causal(rows[None, None], offset)
    visible = visible_to_any(lambda start, stop: mask[None, start:stop].any(1), queries)
    assert torch.equal(visible, mask.any(0)[None])


def test_causal_biases_of_torch_are_materialized():
    assert torch.equal(as_tensor(causal_upper_left(3, 5)), causal_mask(3, 5)[0, 0])
    assert torch.equal(as_tensor(causal_lower_right(3, 5)), causal_mask(3, 5, 2)[0, 0])


def test_mask_of_an_unknown_tensor_subclass_is_refused():
    class Strange(torch.Tensor):
        pass

    learned = nn.Parameter(torch.zeros(2))
    assert as_tensor(learned) is learned
    with pytest.raises(TypeError, match="Strange is an unknown tensor subclass"):
        as_tensor(torch.zeros(2).as_subclass(Strange))
