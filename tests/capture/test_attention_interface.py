"""The lookup of attention functions of transformers, and their calls."""

import asyncio
import sys

import pytest
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

from regard.capture.attention_interface import AttentionFunctionCall, observe_attention_functions

transformers = pytest.importorskip("transformers")
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS, AttentionInterface  # noqa: E402

ALL = slice(None)


def run_kernel(module, query, key, value, attention_mask, **options):
    context = scaled_dot_product_attention(query, key, value, enable_gqa=True)
    return context.transpose(1, 2), None


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    functions = {**AttentionInterface._global_mapping, "kernel": run_kernel}
    monkeypatch.setattr(AttentionInterface, "_global_mapping", functions)


class Attention(nn.Module):
    is_causal = True


def make_call(weights, queries, keys, mask=None, **options):
    """Return a call whose function has returned weights × values, and the weights."""
    values = keys + 1
    repeated = values.repeat_interleave(queries.shape[1] // keys.shape[1], 1)
    context = (weights @ repeated).transpose(1, 2)
    return AttentionFunctionCall(
        "kernel", Attention(), queries, keys, values, mask, options, context
    )


def softmax_over(scores, visible):
    return scores.masked_fill(~visible, -torch.inf).softmax(-1).nan_to_num()


def distances(queries, keys):
    """Return how far each key is before the position of each query, the last keys' own."""
    return torch.arange(keys - queries, keys)[:, None] - torch.arange(keys)


QUERIES, KEYS = torch.randn(2, 4, 5, 8) * 3, torch.randn(2, 2, 7, 8)
SCORES = QUERIES @ KEYS.repeat_interleave(2, 1).transpose(-2, -1) * 0.4
CAUSAL = distances(5, 7) >= 0
PADDING = torch.tensor([[1] * 7, [0, 0, 1, 1, 1, 1, 1]])
PAIRS = torch.rand(2, 1, 5, 7) > 0.3
PAIRS[..., 0] = True
BIAS = torch.randn(1, 4, 5, 7)
SINKS = torch.randn(4)
CASES = {
    "causal, aligned with the last keys": (softmax_over(SCORES, CAUSAL), {}),
    "not causal": (SCORES.softmax(-1), {"is_causal": False}),
    "sliding window": (
        softmax_over(SCORES, CAUSAL & (distances(5, 7) < 3)),
        {"sliding_window": 3},
    ),
    "sliding window on both sides": (
        softmax_over(SCORES, distances(5, 7).abs() < 3),
        {"sliding_window": 3, "is_causal": False},
    ),
    "soft cap": (softmax_over((SCORES / 2).tanh() * 2, CAUSAL), {"softcap": 2.0}),
    "padding": (softmax_over(SCORES, CAUSAL & PADDING.bool()[:, None, None]), {"mask": PADDING}),
    "mask of pairs": (softmax_over(SCORES, PAIRS), {"mask": PAIRS}),
    "additive mask of pairs": (
        softmax_over(SCORES, PAIRS),
        {"mask": torch.zeros(PAIRS.shape).masked_fill(~PAIRS, -torch.inf)},
    ),
    "position bias": (softmax_over(SCORES + BIAS, CAUSAL), {"position_bias": BIAS}),
    "sinks": (
        torch.cat([SCORES, SINKS[None, :, None, None].expand(2, 4, 5, 1)], -1).softmax(-1)[..., :7],
        {"s_aux": SINKS, "is_causal": False},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_weights_follow_from_the_arguments(case):
    expected, options = CASES[case]
    call = make_call(expected, QUERIES, KEYS, scaling=0.4, **options)
    captured = call.to_captured()
    assert captured.shape == (2, 4, 5, 7)
    weights = captured.weights(ALL, [0, 1, 2, 3], ALL)
    torch.testing.assert_close(weights, expected, rtol=1e-5, atol=1e-6)


def test_packed_texts_are_separate():
    queries, keys = torch.randn(1, 2, 6, 8), torch.randn(1, 2, 6, 8)
    document = torch.tensor([0, 0, 0, 0, 1, 1])
    visible = (document[:, None] == document) & (distances(6, 6) >= 0)
    weights = softmax_over(queries @ keys.transpose(-2, -1) * 8**-0.5, visible)
    bounds = torch.tensor([0, 4, 6], dtype=torch.int32)
    positions = torch.tensor([[0, 1, 2, 3, 0, 1]])
    for options in (
        {"cu_seq_lens_q": bounds, "cu_seq_lens_k": bounds},
        {"position_ids": positions},
    ):
        captured = make_call(weights, queries, keys, **options).to_captured()
        torch.testing.assert_close(captured.weights(ALL, [0, 1], ALL), weights)


@pytest.mark.parametrize("case", ["causal, aligned with the last keys", "padding", "soft cap"])
def test_other_result_than_that_of_the_arguments_is_refused(case):
    other = CASES["not causal"][0]
    call = make_call(other, QUERIES, KEYS, scaling=0.4, **CASES[case][1])
    with pytest.raises(TypeError, match=r"'kernel' does not return softmax\(QKᵀ\)V"):
        call.to_captured()


def test_rows_of_padding_are_not_compared():
    visible = CAUSAL & PADDING.flip(1).bool()[:, None, None]
    expected = softmax_over(SCORES, visible)
    call = make_call(expected, QUERIES, KEYS, mask=PADDING.flip(1), scaling=0.4)
    call.context[1, -2:] = 0.0  # the kernel leaves padded queries out
    torch.testing.assert_close(call.to_captured().weights(ALL, [0, 1, 2, 3], ALL), expected)


def test_dropout_is_not_taken_for_another_function():
    weights, _ = CASES["causal, aligned with the last keys"]
    call = make_call(weights * 2, QUERIES, KEYS, scaling=0.4, dropout=0.5)
    torch.testing.assert_close(call.to_captured().weights(ALL, [0, 1, 2, 3], ALL), weights)


def test_paged_cache_is_refused():
    call = make_call(CASES["not causal"][0], QUERIES, KEYS, block_table=torch.zeros(1))
    with pytest.raises(TypeError, match=r"paged cache \(block_table=\)"):
        call.to_captured()


def test_observer_receives_the_call_and_may_replace_its_result():
    queries, seen = torch.randn(1, 2, 3, 8), []

    def observe(call, run):
        seen.append((call.name, call.queries, call.options, run()[0]))
        return "replaced"

    with observe_attention_functions(observe):
        function = ALL_ATTENTION_FUNCTIONS.get_interface("kernel", None)
        result = function(Attention(), queries, queries, queries, None, scaling=2.0)
    assert result == "replaced"
    ((name, received, options, context),) = seen
    assert name == "kernel" and received is queries and options == {"scaling": 2.0}
    assert context.shape == (1, 3, 2, 8)


def test_innermost_observer_is_called_inside_of_all_others():
    order = []

    def observe(name):
        def run_observed(call, run):
            order.append(name)
            return run()

        return run_observed

    queries = torch.randn(1, 2, 3, 8)
    with (
        observe_attention_functions(observe("first")),
        observe_attention_functions(observe("innermost"), innermost=True),
        observe_attention_functions(observe("last")),
    ):
        ALL_ATTENTION_FUNCTIONS["kernel"](Attention(), queries, queries, queries, None)
    assert order == ["last", "first", "innermost"]


def test_lookup_is_restored_after_an_error():
    with pytest.raises(KeyError), observe_attention_functions(lambda call, run: run()):
        assert ALL_ATTENTION_FUNCTIONS["kernel"] is not run_kernel
        raise KeyError
    assert ALL_ATTENTION_FUNCTIONS["kernel"] is run_kernel
    assert "__getitem__" not in AttentionInterface.__dict__


def test_lookup_is_restored_by_the_last_of_overlapping_contexts():
    async def hold(seconds):
        with observe_attention_functions(lambda call, run: run()):
            await asyncio.sleep(seconds)
        return ALL_ATTENTION_FUNCTIONS["kernel"] is run_kernel

    async def overlap():
        return await asyncio.gather(hold(0.01), hold(0.03))

    assert asyncio.run(overlap()) == [False, True]


def test_function_registered_meanwhile_stays_registered():
    with observe_attention_functions(lambda call, run: run()):
        AttentionInterface.register("another", run_kernel)
    assert ALL_ATTENTION_FUNCTIONS["another"] is run_kernel


def test_transformers_is_not_imported(monkeypatch):
    monkeypatch.delitem(sys.modules, "transformers.modeling_utils")
    with observe_attention_functions(lambda call, run: run()):
        assert "transformers.modeling_utils" not in sys.modules
