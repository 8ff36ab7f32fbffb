"""Half precision, autocast and biases of another dtype."""

import pytest
import torch

from helpers.attention_inputs import KEYS, QUERIES, random_vectors
from regard.attention import Bilinear, Cosine, Gaussian, attend, look, make_score, weights
from regard.attention.scores import TanhSum


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_autocast_agrees_with_explicit_rounding(dtype):
    vectors = random_vectors()
    with torch.autocast("cpu", dtype=dtype):
        context = attend(*vectors)
    expected = attend(*(x.to(dtype) for x in vectors))
    torch.testing.assert_close(context.float(), expected.float(), rtol=0, atol=2e-2)


@pytest.mark.parametrize("name", ["dot", "scaled_dot", "cosine", "bilinear", "additive"])
def test_autocast_does_not_round_scores(name):
    score = make_score(name, (12, 12)) if name != "additive" else TanhSum(12)
    vectors = [(3 * torch.randn(2, 4, 9, 12)).bfloat16() for _ in range(3)]

    def run():
        return weights(*vectors[:2], score=score), attend(*vectors, score=score, backend="dense")

    expected = run()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        computed = run()
    for one, other in zip(computed, expected, strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("score", [Gaussian(), Cosine(0.01)], ids=["gaussian", "cosine"])
def test_autocast_does_not_round_what_a_score_folds_in_float32(score):
    centres = 4 * torch.randn(2, 1, 7, 32)
    keys = torch.cat([centres, centres + 0.1 * torch.randn(2, 1, 7, 32)], dim=-2)
    queries, values = centres + 0.1 * torch.randn(2, 1, 7, 32), torch.randn(2, 1, 14, 3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        computed = attend(queries, keys, values, score=score)
    expected = attend(queries, keys, values, score=score)
    torch.testing.assert_close(computed.float(), expected, rtol=0, atol=1e-2)


def test_float32_bias_is_not_rounded_to_half_precision():
    queries, keys, values = (torch.randn(2, 2, 5, 8).bfloat16() for _ in range(3))
    bias = 1000 + torch.randn(5, 5)
    expected = attend(*(x.double() for x in (queries, keys, values)), bias=bias.double())
    computed = attend(queries, keys, values, bias=bias)
    torch.testing.assert_close(computed.double(), expected, rtol=0, atol=0.03)


@pytest.mark.parametrize("backend", ["fused", "dense"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float16], ids=str)
def test_bias_of_another_dtype_is_added_in_that_of_the_scores(dtype, backend):
    vectors, bias = random_vectors(), torch.randn(QUERIES, KEYS).to(dtype)
    score = "dot" if backend == "fused" else lambda queries, keys: queries @ keys.mT
    expected = attend(*vectors, score=score, bias=bias.float())
    assert torch.equal(attend(*vectors, score=score, bias=bias), expected)
    output = look(*vectors, score=score, bias=bias)
    torch.testing.assert_close(output.context, expected)
    assert output.weights.dtype == torch.float32


@pytest.mark.parametrize("autocast", [False, True])
def test_bilinear_context_agrees_with_its_weights_in_bfloat16(autocast):
    score = Bilinear(32)
    queries, keys = 6 * torch.randn(2, 3, 99, 32), 6 * torch.randn(2, 3, 9, 32)
    values = torch.eye(9).expand(2, 3, 9, 9)  # so that the context is the weights
    if not autocast:
        score, queries, keys, values = (x.bfloat16() for x in (score, queries, keys, values))
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        output = look(queries, keys, values, score=score)
    eps = torch.finfo(torch.bfloat16).eps
    torch.testing.assert_close(output.context.float(), output.weights.float(), rtol=eps, atol=eps)


@pytest.mark.parametrize("name", ["cosine", "gaussian"])
def test_learnable_parameter_in_half_precision_is_exponentiated_in_float32(name):
    score = Cosine(0.3, True) if name == "cosine" else Gaussian(0.3, True)
    (log,) = score.bfloat16().parameters()
    value = score.temperature if name == "cosine" else score.bandwidth
    assert value.item() == pytest.approx(log.double().exp().item(), rel=1e-6)
