import subprocess
import sys

import pytest
import torch

from regard.attention import Additive, ScaledDot, attend, weights
from regard.attention.backends import blockwise, dense
from regard.masks import causal, lengths


@pytest.mark.parametrize("block_scores", [1, 30, 100, 10_000])
def test_blocks_of_any_size_give_the_context_and_gradients_of_dense(block_scores, monkeypatch):
    monkeypatch.setattr(blockwise, "BLOCK_SCORES", block_scores)
    score = Additive(12, hidden_width=4)
    inputs = [torch.randn(2, 5, 12), torch.randn(2, 7, 12), torch.randn(2, 7, 3)]
    inputs = [x.requires_grad_() for x in inputs]
    mask = causal(align="last") & lengths([4, 7])
    arguments = {"score": score, "mask": mask, "bias": torch.randn(2, 5, 7)}
    expected = attend(*inputs, **arguments, backend="dense")
    computed = attend(*inputs, **arguments, backend="blockwise")
    torch.testing.assert_close(computed, expected)
    parameters = (*inputs, *score.parameters())
    for gradient, expected_gradient in zip(
        torch.autograd.grad(computed.square().sum(), parameters),
        torch.autograd.grad(expected.square().sum(), parameters),
        strict=True,
    ):
        torch.testing.assert_close(gradient, expected_gradient)


def test_recomputation_for_the_backward_pass_repeats_the_dropout(monkeypatch):
    monkeypatch.setattr(blockwise, "BLOCK_SCORES", 14)
    values = torch.randn(1, 7, 3, requires_grad=True)
    queries, keys = torch.randn(1, 5, 12), torch.randn(1, 7, 12)
    score = ScaledDot(cap=9.0)
    context = attend(queries, keys, values, score=score, dropout=0.5, backend="blockwise")
    (gradient,) = torch.autograd.grad(context.sum(), values)
    # the context is linear in the values, so it must equal the gradient's inner product with them
    torch.testing.assert_close((gradient * values).sum(), context.sum())


def test_scores_of_one_block_are_computed_at_a_time(monkeypatch):
    monkeypatch.setattr(blockwise, "BLOCK_SCORES", 64)
    counts = []

    def score(queries, keys):
        counts.append(queries.shape[-2] * keys.shape[-2])
        return queries @ keys.mT

    attend(torch.randn(50, 4), torch.randn(20, 4), score=score, backend="blockwise")
    assert max(counts) <= 64
    assert sum(counts) == 50 * 20


@pytest.mark.parametrize("block_scores", [1, 40, 10_000])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("mask", [None, causal(align="last") & lengths([0, 6])], ids=str)
@pytest.mark.parametrize("score", ["scaled_dot", "gaussian", "triangular"])
def test_weights_written_block_by_block_equal_dense_weights(
    score, mask, dtype, block_scores, monkeypatch
):
    queries, keys = torch.randn(2, 6, 5, 12).to(dtype), torch.randn(2, 3, 7, 12).to(dtype)
    expected = weights(queries, keys, score=score, mask=mask)
    monkeypatch.setattr(blockwise, "BLOCK_SCORES", block_scores)
    monkeypatch.setattr(dense, "MAX_SCORES", 1)

    def refuse(call):
        raise AssertionError("the weights must be written block by block")

    monkeypatch.setattr(dense, "weights", refuse)
    torch.testing.assert_close(weights(queries, keys, score=score, mask=mask), expected)


@pytest.mark.parametrize("mask", [None, causal(align="last")], ids=["no mask", "causal"])
def test_weights_of_one_block_are_computed_at_a_time(mask, monkeypatch):
    monkeypatch.setattr(blockwise, "BLOCK_SCORES", 64)
    monkeypatch.setattr(dense, "MAX_SCORES", 1)
    counts = []

    class Counting(ScaledDot):
        def forward(self, queries, keys):
            scores = super().forward(queries, keys)
            counts.append(scores.numel())
            return scores

    queries, keys = torch.randn(3, 50, 4), torch.randn(3, 20, 4)
    weights(queries, keys, score=Counting(), mask=mask)
    assert max(counts) <= 64
    assert sum(counts) == 3 * 50 * 20


@pytest.mark.slow
def test_memory_grows_with_the_keys_and_not_with_the_pairs():
    script = """
import resource, torch
from regard.attention import Additive, attend
score, x = Additive(16), torch.randn(1, 12288, 16)
with torch.no_grad():
    attend(x[:, :64], score=score)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    attend(x, score=score)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    mebibytes_of_all_scores = 12288**2 * 4 / 2**20
    assert float(run.stdout) < mebibytes_of_all_scores / 5
