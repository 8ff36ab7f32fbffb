import numpy as np
import pytest
import torch

from helpers.summary_reference import summarize_by_formula
from regard.capture.calls import MaterializedWeights, SDPACall
from regard.capture.records import join_summaries, summarize_call
from regard.trace.block_summary import TensorSummary, heaviest_keys

ALL = slice(None)


def assert_summarizes(summary, weights):
    for b, item in enumerate(weights):
        expected = summarize_by_formula(item.double().numpy())
        for name in TensorSummary._fields:
            actual, reference = getattr(summary, name)[b].numpy(), getattr(expected, name)
            if name == "top_keys":
                actual = np.take_along_axis(item.numpy(), actual.astype(int), -1)
                actual = actual * (summary.top_weights[b].numpy() > 0)  # keys of weight 0 vary
                reference = expected.top_weights
            np.testing.assert_allclose(actual, reference, rtol=1e-5, atol=2e-5, err_msg=name)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("queries, keys", [(5, 7), (70, 70), (130, 130), (20, 1100)])
def test_many_blocks_give_the_summary_of_the_whole(queries, keys, causal):
    vectors, memory = torch.randn(2, 3, queries, 8) * 2, torch.randn(2, 3, keys, 8)
    call = SDPACall(vectors, memory, memory, is_causal=causal)
    weights = torch.zeros(2, 3, queries, keys)
    computed = call.weights(ALL, [0, 1, 2], ALL)
    weights[..., : computed.shape[-1]] = computed
    assert_summarizes(summarize_call(call, [0, 1, 2], first=0, block_weights=2**11), weights)


def test_selected_heads_are_summarized_in_their_order():
    weights = torch.rand(2, 4, 5, 7).softmax(-1)
    summary = summarize_call(MaterializedWeights(weights), [3, 1], first=0)
    assert_summarizes(summary, weights[:, [3, 1]])


def test_heads_that_are_computed_together_are_summarized_together():
    weights = torch.rand(2, 4, 50, 7).softmax(-1)
    call = MaterializedWeights(weights)
    call.heads_independent = False
    assert_summarizes(summarize_call(call, [0, 1, 2, 3], first=0, block_weights=2**9), weights)


def test_fully_masked_query_is_left_out_of_means():
    weights = torch.rand(2, 3, 5, 7).softmax(-1)
    weights[1, :, 2] = 0
    assert_summarizes(summarize_call(MaterializedWeights(weights), [0, 1, 2], first=0), weights)


def test_weight_above_one_by_rounding_gives_no_negative_entropy():
    weights = torch.tensor([[[[1.0000001, 0.0]]]])
    summary = summarize_call(MaterializedWeights(weights), [0], first=0)
    assert summary.entropy.min() >= 0


@pytest.mark.parametrize("keys", [5, 64, 1024, 1100])
def test_heaviest_keys_are_found_in_rows_of_any_length(keys):
    weights = torch.rand(2, 3, keys)
    values, indices = heaviest_keys(weights, 8)
    expected = weights.topk(min(8, keys)).values
    assert torch.equal(values, expected)
    assert torch.equal(weights.gather(-1, indices), expected)


def test_stable_search_prefers_the_first_of_equal_keys():
    _, indices = heaviest_keys(torch.full((2, 3, 2000), 0.0005), 8, stable=True)
    assert torch.equal(indices, torch.arange(8).expand(2, 3, 8))


def test_distance_is_measured_from_the_position_of_the_query():
    weights = torch.zeros(1, 1, 2, 7)
    weights[..., 0] = 1
    call = MaterializedWeights(weights)
    assert summarize_call(call, [0], first=5).distance.tolist() == [[[5.0, 6.0]]]
    assert summarize_call(call, [0], first=0).distance.tolist() == [[[0.0, 1.0]]]


def causal_steps(weights, first_rows):
    """Cut causal weights into a first pass of some rows, and single steps."""
    ranges = [(0, first_rows), *((n, n + 1) for n in range(first_rows, weights.shape[2]))]
    return [MaterializedWeights(weights[:, :, start:stop, :stop]) for start, stop in ranges]


def test_joined_steps_give_the_summary_of_the_whole():
    weights = torch.rand(1, 2, 6, 6).tril()
    weights = weights / weights.sum(-1, keepdim=True)
    parts = [summarize_call(step, [0, 1], step.offset) for step in causal_steps(weights, 3)]
    assert_summarizes(join_summaries(parts, 6), weights)


def test_unfilled_keys_of_a_static_cache_are_cut():
    weights = torch.zeros(1, 2, 4, 9)
    weights[..., :4] = torch.rand(4, 4).tril()
    steps = [MaterializedWeights(weights[:, :, n : n + 1]) for n in range(4)]
    joined = join_summaries([summarize_call(x, [0, 1], n) for n, x in enumerate(steps)], 4)
    assert joined.top_keys.max() < 4
    torch.testing.assert_close(joined.top_weights.sum(-1), weights.sum(-1))


def test_tiles_of_many_steps_are_redrawn_from_their_heaviest_keys():
    weights = torch.rand(1, 2, 100, 100).tril() ** 30 + 1e-9
    weights = (weights / weights.sum(-1, keepdim=True)).tril()
    parts = [summarize_call(step, [0, 1], step.offset) for step in causal_steps(weights, 1)]
    joined = join_summaries(parts, 100)
    expected = torch.tensor(summarize_by_formula(weights[0].double().numpy()).tiles)[None].float()
    assert (joined.tiles - expected).abs().max() < 0.1
    assert torch.allclose(joined.tiles.sum(), expected.sum(), rtol=0.05)
