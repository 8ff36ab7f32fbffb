import subprocess
import sys

import pytest
import torch

from regard.attention import Additive, ScaledDot, attend, weights
from regard.attention.backends import blockwise
from regard.masks import causal, lengths


@pytest.mark.parametrize("size", [1, 30, 100, 10_000])
def test_blocks_of_any_size_give_the_same_context_and_gradients(size, monkeypatch):
    monkeypatch.setattr(blockwise, "BLOCK", size)
    score = Additive(12, hidden_width=4)
    inputs = [torch.randn(2, 5, 12), torch.randn(2, 7, 12), torch.randn(2, 7, 3)]
    inputs = [x.requires_grad_() for x in inputs]
    bias = torch.randn(2, 5, 7)
    mask = causal(align="last") & lengths([4, 7])
    settings = {"score": score, "mask": mask, "bias": bias}
    whole, parts = (
        attend(*inputs, **settings, backend=backend) for backend in ("dense", "blockwise")
    )
    torch.testing.assert_close(parts, whole)
    parameters = (*inputs, *score.parameters())
    for got, wanted in zip(
        torch.autograd.grad(parts.square().sum(), parameters),
        torch.autograd.grad(whole.square().sum(), parameters),
        strict=True,
    ):
        torch.testing.assert_close(got, wanted)


def test_dropout_falls_alike_when_blocks_are_computed_again_for_gradients(monkeypatch):
    monkeypatch.setattr(blockwise, "BLOCK", 14)
    values = torch.randn(1, 7, 3, requires_grad=True)
    queries, keys = torch.randn(1, 5, 12), torch.randn(1, 7, 12)
    context = attend(
        queries, keys, values, score=ScaledDot(cap=9.0), dropout=0.5, backend="blockwise"
    )
    (gradient,) = torch.autograd.grad(context.sum(), values)
    # the context is linear in the values, so it must equal the gradient's inner product with them
    torch.testing.assert_close((gradient * values).sum(), context.sum())


def test_the_scores_of_one_block_only_are_held(monkeypatch):
    monkeypatch.setattr(blockwise, "BLOCK", 64)
    held = []

    def score(queries, keys):
        held.append(queries.shape[-2] * keys.shape[-2])
        return queries @ keys.mT

    attend(torch.randn(50, 4), torch.randn(20, 4), score=score, backend="blockwise")
    assert max(held) <= 64
    assert sum(held) == 50 * 20


@pytest.mark.parametrize("block", [1, 40, 10_000])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("mask", [None, causal(align="last") & lengths([0, 6])], ids=str)
@pytest.mark.parametrize("score", ["scaled_dot", "gaussian", "triangular"])
def test_weights_written_block_by_block_are_those_of_all_at_once(
    score, mask, dtype, block, monkeypatch
):
    queries, keys = torch.randn(2, 6, 5, 12).to(dtype), torch.randn(2, 3, 7, 12).to(dtype)
    at_once = weights(queries, keys, score=score, mask=mask)
    written = []
    monkeypatch.setattr(blockwise, "BLOCK", block)
    monkeypatch.setattr(sys.modules["regard.attention.functional"], "STREAM_FROM", 1)
    whole = blockwise.weights
    monkeypatch.setattr(blockwise, "weights", lambda job: written.append(job) or whole(job))
    torch.testing.assert_close(weights(queries, keys, score=score, mask=mask), at_once)
    assert written, "the weights must have come block by block"


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
    all_scores = 12288**2 * 4 / 2**20
    assert float(run.stdout) < all_scores / 5
