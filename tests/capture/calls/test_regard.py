import pytest
import torch

from regard import masks, weights
from regard.attention import SCORE_NAMES, make_score
from regard.attention.call import prepare_call
from regard.capture.calls.base import Asked, Dot
from regard.capture.calls.regard import asked_of

ALL = slice(None)


def asked_for(queries, keys, score="scaled_dot", mask=None, bias=None, offset=None):
    return asked_of(prepare_call(queries, keys, None, score, mask, bias, offset))


MASKS = {
    "none": None,
    "causal": masks.causal(align="first"),
    "lengths": masks.lengths([4, 6]),
    "both": masks.causal(align="last") & masks.lengths([4, 6]),
}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("name", SCORE_NAMES)
def test_weights_are_those_of_every_score_and_mask(name, mask):
    score = make_score(name, (12, 12))
    queries, keys = torch.randn(2, 3, 5, 12), torch.randn(2, 3, 7, 12)
    asked = asked_for(queries, keys, score, MASKS[mask])
    assert isinstance(asked, Asked)
    expected = weights(queries, keys, score=score, mask=MASKS[mask]).detach()
    with torch.no_grad():
        found = asked.weigh(ALL, [0, 1, 2], ALL)
        part = asked.weigh(slice(1, 2), [2, 0], slice(1, 3))
    width = found.shape[-1]
    torch.testing.assert_close(found, expected[..., :width])
    assert not expected[..., width:].any()
    torch.testing.assert_close(part, expected[1:, [2, 0], 1:3, : part.shape[-1]])


def test_bias_and_grouped_heads():
    queries, keys = torch.randn(2, 4, 5, 12), torch.randn(2, 2, 7, 12)
    bias = torch.randn(4, 5, 7)[None]
    found = asked_for(queries, keys, bias=bias).weigh(ALL, [0, 1, 2, 3], ALL)
    torch.testing.assert_close(found, weights(queries, keys, bias=bias))


def test_a_batch_without_heads_has_one():
    queries, keys = torch.randn(2, 5, 12), torch.randn(2, 7, 12)
    asked = asked_for(queries, keys, mask=masks.lengths([4, 6]))
    assert asked.sizes == (2, 1, 5, 7)
    found = asked.weigh(ALL, [0], ALL)
    torch.testing.assert_close(found[:, 0], weights(queries, keys, mask=masks.lengths([4, 6])))


def test_a_score_that_folds_is_asked_head_by_head():
    queries, keys = torch.randn(2, 3, 5, 12), torch.randn(2, 3, 7, 12)
    assert isinstance(asked_for(queries, keys), Dot)
    assert not asked_for(queries, keys, make_score("additive", (12, 12))).apart


@pytest.mark.parametrize(
    "mask, causal",
    [
        (masks.causal(), True),
        (masks.causal() & masks.lengths([4, 5]), True),
        (masks.window(2, ahead=0), True),
        (masks.window(2), False),
        (masks.window(2, ahead=1), False),
        (masks.lengths([4, 5]), False),
        (None, False),
    ],
)
def test_masks_that_hide_what_comes_later_are_causal(mask, causal):
    rows = torch.randn(2, 3, 5, 12)
    assert asked_for(rows, rows, mask=mask).causal == causal


def test_the_first_query_of_a_cache_stands_behind_what_was_there():
    queries, keys = torch.randn(2, 3, 1, 12), torch.randn(2, 3, 7, 12)
    assert asked_for(queries, keys, mask=masks.causal(), offset=6).offset == 6


def test_masks_and_biases_hide():
    rows = torch.randn(2, 3, 5, 12)
    expected = [[False] * 4 + [True], [False] * 5]
    lengths, bias = masks.lengths([4, 5]), torch.zeros(2, 1, 1, 5)
    bias[0, ..., 4] = -torch.inf
    assert asked_for(rows, rows, mask=lengths & masks.causal()).hidden().tolist() == expected
    assert asked_for(rows, rows, bias=bias).hidden().tolist() == expected
    assert asked_for(rows, rows, make_score("additive", (12, 12))).hidden() is None
    assert not asked_for(rows, rows, mask=masks.lengths([1, 1])).causal


class Halved:
    """A score of the caller's that folds, and says so with two tensors and no more."""

    def __call__(self, queries, keys):
        return (queries / 2) @ keys.mT

    def fold(self, queries, keys):
        return queries / 2, keys


def test_a_fold_of_two_tensors_is_enough():
    queries, keys = torch.randn(2, 3, 5, 12), torch.randn(2, 3, 7, 12)
    found = asked_for(queries, keys, Halved()).weigh(ALL, [0, 1, 2], ALL)
    torch.testing.assert_close(found, weights(queries, keys, score=Halved()))
