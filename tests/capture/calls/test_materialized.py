import torch

from regard.capture.calls import CapturedCall, MaterializedWeights


def test_blocks_are_slices_of_the_weights():
    weights = torch.rand(2, 3, 5, 7)
    call = MaterializedWeights(weights)
    assert isinstance(call, CapturedCall)
    assert torch.equal(call.weights(slice(1, 2), [2, 0], slice(1, 3)), weights[1:, [2, 0], 1:3])


def test_lower_triangular_weights_are_causal():
    assert MaterializedWeights(torch.rand(2, 3, 5, 5).tril()).is_causal
    assert not MaterializedWeights(torch.rand(2, 3, 5, 7)).is_causal


def test_padding_of_a_short_first_item_is_not_causal():
    weights = torch.rand(2, 3, 5, 5)
    weights[0, ..., 1:] = 0
    assert not MaterializedWeights(weights).is_causal


def test_keys_without_weight_are_masked_only_if_there_was_a_mask():
    mask = torch.arange(7) < torch.tensor([[[[4]]], [[[7]]]])
    weights = torch.rand(2, 3, 5, 7) * mask
    assert MaterializedWeights(weights).fully_masked_keys() is None
    masked = MaterializedWeights(weights, has_mask=True).fully_masked_keys()
    assert masked.tolist() == [[False] * 4 + [True] * 3, [False] * 7]


def test_extra_keys_have_no_position():
    mask = torch.ones(5, 6, dtype=torch.bool).tril()
    mask[:, 5] = True
    assert MaterializedWeights(torch.rand(1, 1, 5, 6) * mask, extra_keys=1).is_causal
