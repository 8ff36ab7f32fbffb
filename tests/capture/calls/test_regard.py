import pytest
import torch

from regard import masks, weights
from regard.attention import SCORE_NAMES, DotProductForm, Score, make_score
from regard.attention.call import prepare_call
from regard.capture.calls import CapturedCall, SDPACall, capture_regard_call

ALL = slice(None)

MASKS = {
    "none": None,
    "causal": masks.causal(align="first"),
    "lengths": masks.lengths([4, 6]),
    "both": masks.causal(align="last") & masks.lengths([4, 6]),
}


def capture_call(queries, keys, score="scaled_dot", mask=None, bias=None, offset=None):
    return capture_regard_call(prepare_call(queries, keys, None, score, mask, bias, offset))


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("name", SCORE_NAMES)
def test_weights_agree_for_every_score_and_mask(name, mask):
    score = make_score(name, (12, 12))
    queries, keys = torch.randn(2, 3, 5, 12), torch.randn(2, 3, 7, 12)
    call = capture_call(queries, keys, score, MASKS[mask])
    assert isinstance(call, CapturedCall)
    expected = weights(queries, keys, score=score, mask=MASKS[mask]).detach()
    with torch.no_grad():
        computed = call.weights(ALL, [0, 1, 2], ALL)
        block = call.weights(slice(1, 2), [2, 0], slice(1, 3))
    num_keys = computed.shape[-1]
    torch.testing.assert_close(computed, expected[..., :num_keys])
    assert not expected[..., num_keys:].any()
    torch.testing.assert_close(block, expected[1:, [2, 0], 1:3, : block.shape[-1]])


def test_bias_and_grouped_heads_are_applied():
    queries, keys = torch.randn(2, 4, 5, 12), torch.randn(2, 2, 7, 12)
    bias = torch.randn(4, 5, 7)[None]
    computed = capture_call(queries, keys, bias=bias).weights(ALL, [0, 1, 2, 3], ALL)
    torch.testing.assert_close(computed, weights(queries, keys, bias=bias))


def test_batch_without_head_axis_has_one_head():
    queries, keys = torch.randn(2, 5, 12), torch.randn(2, 7, 12)
    mask = masks.lengths([4, 6])
    call = capture_call(queries, keys, mask=mask)
    assert call.shape == (2, 1, 5, 7)
    torch.testing.assert_close(call.weights(ALL, [0], ALL)[:, 0], weights(queries, keys, mask=mask))


def test_dot_product_score_is_computed_head_by_head():
    queries, keys = torch.randn(2, 3, 5, 12), torch.randn(2, 3, 7, 12)
    assert isinstance(capture_call(queries, keys), SDPACall)
    assert not capture_call(queries, keys, make_score("additive", (12, 12))).heads_independent


@pytest.mark.parametrize(
    "mask, is_causal",
    [
        (masks.causal(), True),
        (masks.causal() & masks.lengths([4, 5]), True),
        (masks.window(2, ahead=0), True),
        (masks.window(2), False),
        (masks.window(2, ahead=1), False),
        (masks.lengths([4, 5]), False),
        (masks.lengths([1, 1]), False),
        (None, False),
    ],
)
def test_mask_that_hides_later_keys_is_causal(mask, is_causal):
    rows = torch.randn(2, 3, 5, 12)
    assert capture_call(rows, rows, mask=mask).is_causal == is_causal


def test_offset_of_a_cache_is_kept():
    queries, keys = torch.randn(2, 3, 1, 12), torch.randn(2, 3, 7, 12)
    assert capture_call(queries, keys, mask=masks.causal(), offset=6).offset == 6


def test_mask_and_bias_make_keys_fully_masked():
    rows = torch.randn(2, 3, 5, 12)
    expected = [[False] * 4 + [True], [False] * 5]
    mask = masks.lengths([4, 5]) & masks.causal()
    assert capture_call(rows, rows, mask=mask).fully_masked_keys().tolist() == expected
    bias = torch.zeros(2, 1, 1, 5)
    bias[0, ..., 4] = -torch.inf
    assert capture_call(rows, rows, bias=bias).fully_masked_keys().tolist() == expected
    additive = make_score("additive", (12, 12))
    assert capture_call(rows, rows, additive).fully_masked_keys() is None


class HalvedDot(Score):
    """A user's score that folds into a dot product without scale."""

    def forward(self, queries, keys):
        return (queries / 2) @ keys.mT

    def fold(self, queries, keys):
        return DotProductForm(queries / 2, keys)


def test_custom_score_that_folds_has_its_own_weights():
    queries, keys = torch.randn(2, 3, 5, 12), torch.randn(2, 3, 7, 12)
    computed = capture_call(queries, keys, HalvedDot()).weights(ALL, [0, 1, 2], ALL)
    torch.testing.assert_close(computed, weights(queries, keys, score=HalvedDot()))
