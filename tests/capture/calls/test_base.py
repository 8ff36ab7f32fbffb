import pytest
import torch
from torch.nn.attention.bias import causal_lower_right, causal_upper_left
from torch.nn.functional import scaled_dot_product_attention

from regard import recover_weights
from regard.capture.calls.base import Asked, Dot, Whole

ALL = slice(None)


def vectors(queries=5, keys=7, heads=4, key_heads=4):
    size = (2, heads, queries, 8), (2, key_heads, keys, 8)
    return torch.randn(size[0]) * 3, torch.randn(size[1])


def masked(shape, share=0.3):
    mask = torch.rand(shape) > share
    mask[..., 0] = True
    return mask


CASES = {
    "plain": {},
    "scale": {"scale": 0.7},
    "causal": {"is_causal": True},
    "boolean": {"attn_mask": masked((2, 4, 5, 7))},
    "for all heads": {"attn_mask": masked((2, 1, 5, 7))},
    "one row for all": {"attn_mask": masked((2, 1, 1, 7))},
    "two axes": {"attn_mask": masked((5, 7))},
    "three axes": {"attn_mask": masked((4, 5, 7))},
    "added": {"attn_mask": torch.randn(2, 4, 5, 7)},
    "added minus infinity": {
        "attn_mask": torch.zeros(5, 7).masked_fill(~masked((5, 7)), -torch.inf)
    },
    "grouped": {"enable_gqa": True},
    "grouped and causal": {"enable_gqa": True, "is_causal": True},
}


@pytest.mark.parametrize("case", CASES)
def test_weights_are_those_of_the_kernel(case):
    settings = CASES[case]
    key_heads = 2 if "grouped" in case else 4
    queries, keys = vectors(key_heads=key_heads)

    def kernel(queries, keys, values):
        return scaled_dot_product_attention(queries, keys, values, **settings)

    asked = Dot(queries, keys, keys, **settings)
    assert isinstance(asked, Asked)
    assert asked.sizes == (2, 4, 5, 7)
    whole = torch.zeros(2, 4, 5, 7)
    found = asked.weigh(ALL, [0, 1, 2, 3], ALL)
    whole[..., : found.shape[-1]] = found
    torch.testing.assert_close(whole, recover_weights(kernel, queries, keys))
    part = asked.weigh(slice(1, 2), [3], slice(2, 4))
    torch.testing.assert_close(part[0, 0], whole[1, 3, 2:4, : part.shape[-1]])


def test_a_query_that_may_look_nowhere_sees_nothing():
    mask = torch.ones(5, 7, dtype=torch.bool)
    mask[2] = False
    weights = Dot(*vectors(), vectors()[1], mask).weigh(ALL, [0, 1, 2, 3], ALL)
    assert not weights[:, :, 2].any()
    torch.testing.assert_close(weights[:, :, 3].sum(-1), torch.ones(2, 4))


@pytest.mark.parametrize("axes", [2, 3, 5])
def test_other_numbers_of_axes_are_brought_to_four(axes):
    shape = (2, 3, 4, 5, 8)[-axes:]
    queries, keys = torch.randn(shape), torch.randn(*shape[:-2], 7, 8)
    asked = Dot(queries, keys, keys)
    batch, heads = asked.sizes[:2]
    assert batch * heads == torch.Size(shape[:-2]).numel()
    expected = recover_weights(scaled_dot_product_attention, queries, keys)
    found = asked.weigh(ALL, list(range(heads)), ALL)
    torch.testing.assert_close(found.reshape(expected.shape), expected)


MASKS_OF_OTHER_AXES = [
    ((5, 8), (7,)),
    ((5, 8), (5, 7)),
    ((2, 5, 8), (5, 7)),
    ((2, 5, 8), (2, 5, 7)),
    ((2, 5, 8), (2, 1, 7)),
    ((2, 3, 4, 5, 8), (4, 5, 7)),
    ((2, 3, 4, 5, 8), (3, 1, 5, 7)),
    ((2, 3, 4, 5, 8), (2, 1, 4, 5, 7)),
    ((2, 3, 4, 5, 8), (2, 3, 1, 1, 7)),
]


@pytest.mark.parametrize("shape, mask_shape", MASKS_OF_OTHER_AXES)
def test_masks_of_other_numbers_of_axes_belong_to_their_own_sentences(shape, mask_shape):
    queries, keys = torch.randn(shape), torch.randn(*shape[:-2], 7, 8)
    mask = masked(mask_shape)

    def kernel(queries, keys, values):
        return scaled_dot_product_attention(queries, keys, values, attn_mask=mask)

    asked = Dot(queries, keys, keys, mask)
    expected = recover_weights(kernel, queries, keys)
    found = asked.weigh(ALL, list(range(asked.sizes[1])), ALL)
    torch.testing.assert_close(found.reshape(expected.shape), expected)


def test_half_precision_is_widened():
    queries, keys = (x.to(torch.bfloat16) for x in vectors())
    weights = Dot(queries, keys, keys).weigh(ALL, [0, 1, 2, 3], ALL)
    assert weights.dtype == torch.float32
    expected = (queries.float() @ keys.float().mT / 8**0.5).softmax(-1)
    torch.testing.assert_close(weights, expected)


def test_the_given_vectors_and_mask_are_left_alone():
    queries, keys = vectors()
    mask = torch.randn(5, 7)
    before = [x.clone() for x in (queries, keys, mask)]
    Dot(queries, keys, keys, mask).weigh(ALL, [0, 1, 2, 3], ALL)
    assert all(torch.equal(*pair) for pair in zip(before, (queries, keys, mask), strict=True))


@pytest.mark.parametrize("least", [-torch.inf, torch.finfo(torch.float32).min])
def test_masks_that_hide_what_comes_later_are_causal(least):
    stairs = torch.ones(5, 5, dtype=torch.bool).tril()
    added = torch.zeros(5, 5).masked_fill(~stairs, least)
    queries, keys = vectors(5, 5)
    for mask in (stairs, added, added + torch.randn(5, 5)):
        assert Dot(queries, keys, keys, mask).causal
    for mask in (None, torch.ones(5, 5, dtype=torch.bool), stairs.T, torch.randn(5, 5)):
        assert not Dot(queries, keys, keys, mask).causal
    assert Dot(queries, keys, keys, is_causal=True).causal


def test_the_first_query_of_a_cache_stands_behind_what_was_there():
    queries, keys = vectors(2, 7)
    assert Dot(queries, keys, keys).offset == 5
    room = torch.arange(7) <= torch.tensor([[3], [4]])  # two of seven places are still empty
    asked = Dot(queries, keys, keys, room)
    assert asked.offset == 3 and asked.causal


def test_causal_blocks_reach_no_further_than_their_last_row():
    queries, keys = vectors(6, 6)
    asked = Dot(queries, keys, keys, is_causal=True)
    assert asked.reach(4) == 4
    assert asked.weigh(ALL, [0], slice(2, 4)).shape == (2, 1, 2, 4)


def test_whole_weights_are_handed_out_in_parts():
    weights = torch.rand(2, 3, 5, 7)
    asked = Whole(weights)
    assert isinstance(asked, Asked) and not asked.causal
    assert torch.equal(asked.weigh(slice(1, 2), [2, 0], slice(1, 3)), weights[1:, [2, 0], 1:3])
    assert Whole(torch.rand(2, 3, 5, 5).tril()).causal


def test_one_head_of_queries_may_meet_many_of_keys():
    queries, keys = vectors(heads=1, key_heads=3)
    asked = Dot(queries, keys, keys)
    assert asked.sizes == (2, 3, 5, 7)
    expected = (queries @ keys.mT / 8**0.5).softmax(-1)
    torch.testing.assert_close(asked.weigh(ALL, [0, 1, 2], ALL), expected)
    torch.testing.assert_close(asked.weigh(ALL, [2, 0], ALL), expected[:, [2, 0]])


@pytest.mark.parametrize("bias, queries", [(causal_upper_left, 5), (causal_lower_right, 5)])
def test_the_causal_biases_of_torch_hide_what_they_stand_for(bias, queries):
    queries, keys = vectors(queries, 7)

    def kernel(queries, keys, values):
        return scaled_dot_product_attention(queries, keys, values, attn_mask=bias(5, 7))

    asked = Dot(queries, keys, keys, bias(5, 7))
    assert asked.causal and asked.offset == (2 if bias is causal_lower_right else 0)
    torch.testing.assert_close(
        asked.weigh(ALL, [0, 1, 2, 3], ALL), recover_weights(kernel, queries, keys)
    )


def test_a_short_first_sentence_does_not_speak_for_the_batch():
    queries, keys = vectors(5, 5)
    mask = (torch.arange(5) < torch.tensor([1, 5])[:, None])[:, None, None]
    assert not Dot(queries, keys, keys, mask).causal
    weights = torch.rand(2, 3, 5, 5)
    weights[0, ..., 1:] = 0
    assert not Whole(weights).causal


def test_only_masks_hide():
    queries, keys = vectors()
    assert Dot(queries * 1e3, keys, keys).hidden() is None
    mask = torch.arange(7) < torch.tensor([[[4]], [[7]]])
    expected = [[False] * 4 + [True] * 3, [False] * 7]
    assert Dot(queries, keys, keys, mask[:, None]).hidden().tolist() == expected
    assert Dot(queries, keys, keys, is_causal=True).hidden()[1].tolist() == [False] * 5 + [True] * 2
    weights = torch.rand(2, 3, 5, 7) * mask[:, None]
    assert Whole(weights).hidden() is None
    assert Whole(weights, masked=True).hidden().tolist() == expected


def test_keys_that_were_added_are_no_positions():
    queries, keys = vectors(5, 6)
    assert Dot(queries, keys, keys, added=1).offset == 0
    mask = torch.ones(5, 6, dtype=torch.bool).tril()
    mask[:, 5] = True
    assert Dot(queries, keys, keys, mask, added=1).causal
    assert Whole(torch.rand(1, 1, 5, 6) * mask, added=1).causal
