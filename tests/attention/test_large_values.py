"""Large keys: hidden ones have no influence, and finite input gives finite results."""

import pytest
import torch

from regard.attention import (
    BACKENDS,
    SCORE_NAMES,
    Cosine,
    Gaussian,
    Kernel,
    MultiHeadAttention,
    attend,
    look,
    make_score,
    weights,
)
from regard.attention.scores import epanechnikov, triangular
from regard.masks import causal, documents, lengths, padding, prefix, window

KEYS, VISIBLE = 20, 6


def hidden_last_masks(queries):
    """Masks of every kind that hide all keys but the first six, from `queries` queries."""
    keep = torch.arange(KEYS) < VISIBLE
    ids = keep.int()
    return {
        "lengths": lengths([VISIBLE]),
        "lengths per query": lengths(torch.full((1, queries), VISIBLE)),
        "prefix": prefix(VISIBLE),
        "padding": padding(keep[None]),
        "documents": documents(torch.ones(1, queries).int(), ids[None]),
        "tensor": keep.expand(queries, KEYS),
        "causal": causal(align=VISIBLE - queries),
        "window": window(KEYS, ahead=0, align=VISIBLE - queries),
        "and": causal(align=VISIBLE) & lengths([VISIBLE]),
        "or": lengths([2]) | prefix(VISIBLE),
        "not": ~padding(~keep[None]),
    }


@pytest.mark.parametrize(
    ("kind", "offset", "backend"),
    [(kind, 2000.0, "fused") for kind in hidden_last_masks(1)]
    + [("lengths", 10_000.0, backend) for backend in BACKENDS],
)
def test_hidden_keys_do_not_change_the_gaussian(kind, offset, backend):
    keys, values = torch.zeros(1, KEYS, 1), torch.randn(1, KEYS, 1)
    keys[0, :VISIBLE, 0] = offset + torch.arange(VISIBLE)
    queries, mask = torch.full((1, 1, 1), offset + 2.3), hidden_last_masks(1)[kind]
    arguments = {"score": "gaussian", "backend": backend}
    computed = attend(queries, keys, values, mask=mask, **arguments)
    expected = attend(queries, keys[:, :VISIBLE], values[:, :VISIBLE], **arguments)
    torch.testing.assert_close(computed, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("needs_grad", [False, True])
def test_keys_hidden_by_a_bias_do_not_change_the_gaussian(needs_grad):
    keys, values = torch.zeros(1, KEYS, 1), torch.randn(1, KEYS, 1)
    keys[0, :VISIBLE, 0] = 2000 + torch.arange(VISIBLE)
    queries = torch.full((1, 1, 1), 2002.3, requires_grad=needs_grad)
    bias = torch.zeros(1, KEYS)
    bias[:, VISIBLE:] = -torch.inf
    computed = attend(queries, keys, values, score="gaussian", bias=bias)
    expected = attend(queries, keys[:, :VISIBLE], values[:, :VISIBLE], score="gaussian")
    torch.testing.assert_close(computed, expected, rtol=1e-6, atol=1e-6)


def test_keys_after_the_last_query_of_a_causal_mask_do_not_change_the_gaussian():
    keys, values = torch.zeros(KEYS, 1), torch.randn(KEYS, 1)
    keys[:VISIBLE, 0] = 2000 + torch.arange(VISIBLE)
    queries, mask = keys[:VISIBLE] + 0.3, causal(align="first")
    computed = attend(queries, keys, values, score="gaussian", mask=mask)
    expected = attend(queries, keys[:VISIBLE], values[:VISIBLE], score="gaussian", mask=mask)
    torch.testing.assert_close(computed, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("backend", BACKENDS)
def test_keys_that_a_mask_allows_to_one_query_are_not_taken_for_hidden(backend):
    keys, values = 1000 * torch.arange(KEYS)[:, None].float(), torch.randn(KEYS, 1)
    queries = keys[VISIBLE:][:1]
    arguments = {"score": "gaussian", "backend": backend}
    computed = attend(queries, keys, values, mask=causal(align="last"), **arguments)
    torch.testing.assert_close(computed, values[VISIBLE:][:1])


@pytest.mark.parametrize("key_heads", [2, 6])
def test_padding_far_away_does_not_change_multi_head_gaussian_attention(key_heads):
    attention = MultiHeadAttention(12, heads=6, key_heads=key_heads, score="gaussian").eval()
    words, queries = torch.randn(2, 9, 12), torch.randn(2, 4, 12)
    words[1, 3:] = 500.0
    with torch.no_grad():
        padded = attention.look(queries, words, mask=lengths([9, 3]))
        alone = attention.look(queries[1:], words[1:, :3])
    torch.testing.assert_close(padded.context[1:], alone.context, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(padded.weights[1:, ..., :3], alone.weights, rtol=1e-5, atol=1e-5)


def test_each_document_is_as_precise_as_alone():
    # two texts that are 3000 bandwidths apart; a centre can be near one of them at most
    words = torch.randn(9, 3)
    words[4:] += 3000
    ids = torch.tensor([0] * 4 + [1] * 5)
    computed = attend(words, score="gaussian", mask=documents(ids))
    expected = torch.cat([attend(part.double(), score="gaussian") for part in words.split([4, 5])])
    torch.testing.assert_close(computed.double(), expected, rtol=1e-6, atol=1e-6)


SCORES = {
    "gaussian": Gaussian(2.0),
    "learnable gaussian": Gaussian(2.0, learnable=True),
    "epanechnikov": Kernel(epanechnikov, 4.0, learnable=True),
    "triangular": Kernel(triangular, 4.0),
    "average": "average",
    "cosine": Cosine(0.5),
}


@pytest.mark.parametrize("hidden", [True, False], ids=["hidden", "visible"])
@pytest.mark.parametrize("backend", [None, "blockwise"])
@pytest.mark.parametrize(
    ("dtype", "large"),
    [(torch.float32, 1e20), (torch.bfloat16, -3e38), (torch.float64, 1e200)],
    ids=str,
)
@pytest.mark.parametrize("name", SCORES)
def test_keys_with_squares_beyond_the_range_give_finite_results(
    name, dtype, large, backend, hidden
):
    score = SCORES[name]
    sizes = (2, 3, 5, 4), (2, 3, 7, 4), (2, 3, 7, 6)
    inputs = [torch.randn(size, dtype=torch.float64) for size in sizes]
    inputs[1][..., 4:, :] = large
    inputs[1][1, :, 5] = 0.5 * large
    if not hidden:
        inputs[0][1, 2] = large  # a whole row of queries that is near these keys
    inputs = [x.to(dtype).requires_grad_() for x in inputs]
    mask = lengths([4, 4]) if hidden else None
    context = attend(*inputs, score=score, mask=mask, backend=backend)
    shown = weights(*inputs[:2], score=score, mask=mask)
    gradients = torch.autograd.grad(context.float().sum(), inputs, allow_unused=True)
    assert context.isfinite().all()
    assert shown.isfinite().all()
    assert all(gradient is None or gradient.isfinite().all() for gradient in gradients)
    if hidden:
        visible = (inputs[0], *(x[..., :4, :] for x in inputs[1:]))
        expected = attend(*visible, score=score, backend=backend)
        torch.testing.assert_close(context, expected)


@pytest.mark.parametrize("backend", ["fused", "blockwise", "dense"])
def test_gaussian_of_huge_distances_attends_to_the_nearest_key(backend):
    queries, keys = torch.tensor([[0.0], [9e20]]), torch.tensor([[1e20], [5e20], [8e20]])
    output = look(queries, keys, score="gaussian", backend=backend)
    assert output.weights.tolist() == [[1, 0, 0], [0, 0, 1]]
    assert output.context.equal(keys[[0, 2]])


def test_cosine_of_huge_vectors_is_their_cosine():
    queries, keys = torch.randn(5, 4), torch.randn(7, 4)
    expected = attend(queries, keys, score="cosine")
    computed = attend(1e25 * queries, 1e30 * keys, keys, score="cosine")
    torch.testing.assert_close(computed, expected)


@pytest.mark.parametrize("score", ["gaussian", "epanechnikov", "cosine"])
def test_large_keys_give_finite_results_under_transforms(score):
    queries, keys = torch.randn(2, 5, 4), torch.randn(2, 7, 4)
    keys[:, 4:] = 1e20

    def loss(queries, keys):
        return attend(queries, keys, torch.ones(7, 3), score=score, mask=lengths(5)).sum()

    gradients = torch.func.vmap(torch.func.grad(loss, (0, 1)))(queries, keys)
    assert all(gradient.isfinite().all() for gradient in gradients)


FILLERS = {"largest": 1.0, "smallest": -1.0, "infinite": torch.inf, "NaN": torch.nan}


@pytest.mark.parametrize("filler", FILLERS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", SCORE_NAMES)
def test_hidden_keys_and_values_may_be_anything(name, dtype, filler):
    score = make_score(name, (4, 4)).to(dtype)
    queries, keys, values = (torch.randn(2, 3, n, w) for n, w in ((5, 4), (KEYS, 4), (KEYS, 6)))
    inputs = [x.to(dtype) for x in (queries, keys, values)]
    largest = torch.finfo(dtype).max
    for hidden in inputs[1:]:
        signs = torch.randn_like(hidden[..., VISIBLE:, :]).sign()
        hidden[..., VISIBLE:, :] = FILLERS[filler] * largest * signs
    alone = [inputs[0], *(x[..., :VISIBLE, :] for x in inputs[1:])]
    expected, expected_gradients = context_and_gradients(alone, score)
    bias = torch.zeros(5, KEYS, dtype=dtype)
    bias[:, VISIBLE:] = -torch.inf
    keep = torch.arange(KEYS) < VISIBLE
    masks = lengths([VISIBLE] * 2), padding(keep), keep.expand(5, KEYS), prefix(VISIBLE)
    hiding = [*({"mask": mask} for mask in masks), {"bias": bias}]
    for arguments in hiding:
        for backend in (None, "blockwise", "dense"):
            options = {**arguments, "backend": backend}
            context, gradients = context_and_gradients(inputs, score, **options)
            torch.testing.assert_close(context, expected, rtol=0.02, atol=0.02)
            for got, want in zip(gradients, expected_gradients, strict=True):
                assert got.isfinite().all()
                torch.testing.assert_close(
                    got[..., : want.shape[-2], :], want, rtol=0.05, atol=0.05
                )
            shown = look(*inputs, score=score, **options)
            assert shown.context.equal(attend(*inputs, score=score, **options))
            assert not shown.weights[..., VISIBLE:].any()


def context_and_gradients(inputs, score, **options):
    leaves = [x.detach().clone().requires_grad_() for x in inputs]
    context = attend(*leaves, score=score, **options)
    gradients = torch.autograd.grad(
        context.float().square().sum(), leaves, allow_unused=True, materialize_grads=True
    )
    return context.detach(), gradients
