import pytest
import torch
from torch.nn.attention.bias import causal_lower_right, causal_upper_left
from torch.nn.functional import scaled_dot_product_attention

from regard import recover_weights
from regard.capture.calls import CapturedCall, SDPACall

ALL = slice(None)


def random_vectors(queries=5, keys=7, heads=4, key_heads=4):
    return torch.randn(2, heads, queries, 8) * 3, torch.randn(2, key_heads, keys, 8)


def random_mask(shape, masked_share=0.3):
    mask = torch.rand(shape) > masked_share
    mask[..., 0] = True
    return mask


def kernel_weights(queries, keys, **settings):
    def kernel(queries, keys, values):
        return scaled_dot_product_attention(queries, keys, values, **settings)

    return recover_weights(kernel, queries, keys)


CASES = {
    "no mask": {},
    "scale": {"scale": 0.7},
    "causal": {"is_causal": True},
    "boolean": {"attn_mask": random_mask((2, 4, 5, 7))},
    "broadcast over heads": {"attn_mask": random_mask((2, 1, 5, 7))},
    "broadcast over queries": {"attn_mask": random_mask((2, 1, 1, 7))},
    "two axes": {"attn_mask": random_mask((5, 7))},
    "three axes": {"attn_mask": random_mask((4, 5, 7))},
    "additive": {"attn_mask": torch.randn(2, 4, 5, 7)},
    "additive minus infinity": {
        "attn_mask": torch.zeros(5, 7).masked_fill(~random_mask((5, 7)), -torch.inf)
    },
    "grouped": {"enable_gqa": True},
    "grouped and causal": {"enable_gqa": True, "is_causal": True},
}


@pytest.mark.parametrize("case", CASES)
def test_weights_agree_with_the_kernel(case):
    settings = CASES[case]
    queries, keys = random_vectors(key_heads=2 if "grouped" in case else 4)
    call = SDPACall(queries, keys, keys, **settings)
    assert isinstance(call, CapturedCall)
    assert call.shape == (2, 4, 5, 7)
    weights = torch.zeros(2, 4, 5, 7)
    computed = call.weights(ALL, [0, 1, 2, 3], ALL)
    weights[..., : computed.shape[-1]] = computed
    torch.testing.assert_close(weights, kernel_weights(queries, keys, **settings))
    block = call.weights(slice(1, 2), [3], slice(2, 4))
    torch.testing.assert_close(block[0, 0], weights[1, 3, 2:4, : block.shape[-1]])


@pytest.mark.parametrize("keys, key_heads", [(200, 4), (150, 4), (230, 2)])
def test_causal_weights_of_many_rows_agree_with_the_kernel(keys, key_heads):
    queries, vectors = random_vectors(queries=200, keys=keys, key_heads=key_heads)
    settings = {"is_causal": True, "enable_gqa": key_heads < 4}
    computed = SDPACall(queries, vectors, vectors, **settings).weights(ALL, [3, 1], ALL)
    weights = torch.zeros(2, 2, 200, keys)
    weights[..., : computed.shape[-1]] = computed
    expected = kernel_weights(queries, vectors, **settings)[:, [3, 1]]
    torch.testing.assert_close(weights, expected)
    some = SDPACall(queries, vectors, vectors, **settings).weights(slice(1, 2), [3], slice(20, 190))
    torch.testing.assert_close(some[0, 0], expected[1, 0, 20:190, : some.shape[-1]])


def test_fully_masked_query_gets_zero_weights():
    mask = torch.ones(5, 7, dtype=torch.bool)
    mask[2] = False
    queries, keys = random_vectors()
    weights = SDPACall(queries, keys, keys, mask).weights(ALL, [0, 1, 2, 3], ALL)
    assert not weights[:, :, 2].any()
    torch.testing.assert_close(weights[:, :, 3].sum(-1), torch.ones(2, 4))


@pytest.mark.parametrize("num_axes", [2, 3, 5])
def test_any_number_of_axes_becomes_four(num_axes):
    shape = (2, 3, 4, 5, 8)[-num_axes:]
    queries, keys = torch.randn(shape), torch.randn(*shape[:-2], 7, 8)
    call = SDPACall(queries, keys, keys)
    batch, heads = call.shape[:2]
    assert batch * heads == torch.Size(shape[:-2]).numel()
    expected = kernel_weights(queries, keys)
    weights = call.weights(ALL, list(range(heads)), ALL)
    torch.testing.assert_close(weights.reshape(expected.shape), expected)


@pytest.mark.parametrize(
    "shape, mask_shape",
    [
        ((5, 8), (7,)),
        ((5, 8), (5, 7)),
        ((2, 5, 8), (5, 7)),
        ((2, 5, 8), (2, 5, 7)),
        ((2, 5, 8), (2, 1, 7)),
        ((2, 3, 4, 5, 8), (4, 5, 7)),
        ((2, 3, 4, 5, 8), (3, 1, 5, 7)),
        ((2, 3, 4, 5, 8), (2, 1, 4, 5, 7)),
        ((2, 3, 4, 5, 8), (2, 3, 1, 1, 7)),
    ],
)
def test_mask_with_other_axes_applies_to_its_own_batch_items(shape, mask_shape):
    queries, keys = torch.randn(shape), torch.randn(*shape[:-2], 7, 8)
    mask = random_mask(mask_shape)
    call = SDPACall(queries, keys, keys, mask)
    expected = kernel_weights(queries, keys, attn_mask=mask)
    weights = call.weights(ALL, list(range(call.shape[1])), ALL)
    torch.testing.assert_close(weights.reshape(expected.shape), expected)


def test_half_precision_is_upcast():
    queries, keys = (x.to(torch.bfloat16) for x in random_vectors())
    weights = SDPACall(queries, keys, keys).weights(ALL, [0, 1, 2, 3], ALL)
    assert weights.dtype == torch.float32
    expected = (queries.float() @ keys.float().mT / 8**0.5).softmax(-1)
    torch.testing.assert_close(weights, expected)


def test_inputs_are_not_modified():
    queries, keys = random_vectors()
    mask = torch.randn(5, 7)
    before = [x.clone() for x in (queries, keys, mask)]
    SDPACall(queries, keys, keys, mask).weights(ALL, [0, 1, 2, 3], ALL)
    assert all(torch.equal(*pair) for pair in zip(before, (queries, keys, mask), strict=True))


@pytest.mark.parametrize("minimum", [-torch.inf, torch.finfo(torch.float32).min])
def test_mask_that_hides_later_keys_is_causal(minimum):
    triangle = torch.ones(5, 5, dtype=torch.bool).tril()
    additive = torch.zeros(5, 5).masked_fill(~triangle, minimum)
    queries, keys = random_vectors(5, 5)
    for mask in (triangle, additive, additive + torch.randn(5, 5)):
        assert SDPACall(queries, keys, keys, mask).is_causal
    for mask in (None, torch.ones(5, 5, dtype=torch.bool), triangle.T, torch.randn(5, 5)):
        assert not SDPACall(queries, keys, keys, mask).is_causal
    assert SDPACall(queries, keys, keys, is_causal=True).is_causal


def test_padding_of_a_short_first_item_is_not_causal():
    queries, keys = random_vectors(5, 5)
    mask = (torch.arange(5) < torch.tensor([1, 5])[:, None])[:, None, None]
    assert not SDPACall(queries, keys, keys, mask).is_causal


def test_queries_over_a_cache_are_at_its_end():
    queries, keys = random_vectors(2, 7)
    assert SDPACall(queries, keys, keys).offset == 5


def test_queries_over_a_static_cache_are_at_the_end_of_its_filled_part():
    queries, keys = random_vectors(2, 7)
    two_unfilled = torch.arange(7) <= torch.tensor([[3], [4]])
    call = SDPACall(queries, keys, keys, two_unfilled)
    assert call.offset == 3 and call.is_causal


def test_causal_block_computes_no_keys_after_its_last_row():
    queries, keys = random_vectors(6, 6)
    call = SDPACall(queries, keys, keys, is_causal=True)
    assert call.visible_keys(4) == 4
    assert call.weights(ALL, [0], slice(2, 4)).shape == (2, 1, 2, 4)


def test_one_query_head_broadcasts_over_many_key_heads():
    queries, keys = random_vectors(heads=1, key_heads=3)
    call = SDPACall(queries, keys, keys)
    assert call.shape == (2, 3, 5, 7)
    expected = (queries @ keys.mT / 8**0.5).softmax(-1)
    torch.testing.assert_close(call.weights(ALL, [0, 1, 2], ALL), expected)
    torch.testing.assert_close(call.weights(ALL, [2, 0], ALL), expected[:, [2, 0]])


@pytest.mark.parametrize("bias, offset", [(causal_upper_left, 0), (causal_lower_right, 2)])
def test_causal_bias_of_torch_is_materialized(bias, offset):
    queries, keys = random_vectors()
    call = SDPACall(queries, keys, keys, bias(5, 7))
    assert call.is_causal and call.offset == offset
    torch.testing.assert_close(
        call.weights(ALL, [0, 1, 2, 3], ALL), kernel_weights(queries, keys, attn_mask=bias(5, 7))
    )


def test_only_a_mask_makes_keys_fully_masked():
    queries, keys = random_vectors()
    assert SDPACall(queries * 1e3, keys, keys).fully_masked_keys() is None
    mask = torch.arange(7) < torch.tensor([[[[4]]], [[[7]]]])
    expected = [[False] * 4 + [True] * 3, [False] * 7]
    assert SDPACall(queries, keys, keys, mask).fully_masked_keys().tolist() == expected
    causal = SDPACall(queries, keys, keys, is_causal=True).fully_masked_keys()
    assert causal.tolist() == [[False] * 5 + [True] * 2] * 2


def test_extra_keys_have_no_position():
    queries, keys = random_vectors(5, 6)
    assert SDPACall(queries, keys, keys, extra_keys=1).offset == 0
    mask = torch.ones(5, 6, dtype=torch.bool).tril()
    mask[:, 5] = True
    assert SDPACall(queries, keys, keys, mask, extra_keys=1).is_causal
