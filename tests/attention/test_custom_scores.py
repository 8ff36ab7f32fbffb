"""Scores of users: functions, modules, and subclasses of Score."""

import pytest
import torch
from torch import nn
from torch.nn.functional import dropout as apply_dropout

from helpers.attention_inputs import random_vectors
from regard.attention import (
    BACKENDS,
    DotProductForm,
    FunctionScore,
    MultiHeadAttention,
    Score,
    attend,
    look,
)
from regard.attention.backends import dense
from regard.attention.scores import as_score
from regard.errors import RegardError


def dot(queries, keys):
    return queries @ keys.mT


class WithDropout(Score):
    """A score that draws random numbers, and folds."""

    def forward(self, queries, keys):
        return apply_dropout(queries, 0.5) @ keys.mT

    def fold(self, queries, keys):
        return DotProductForm(apply_dropout(queries, 0.5), keys)


class PerHead(Score):
    """A score with a factor for each head, which folds."""

    def __init__(self, heads):
        super().__init__()
        self.factors = torch.linspace(0.1, 3, heads)[:, None, None]

    def forward(self, queries, keys):
        return (queries * self.factors) @ keys.mT

    def fold(self, queries, keys):
        return DotProductForm(queries * self.factors, keys)


class KeySum(Score):
    """A score that is the same for all queries, and returns one row; it folds."""

    def forward(self, queries, keys):
        return keys.sum(-1)[..., None, :]

    def fold(self, queries, keys):
        return DotProductForm(torch.ones_like(queries), keys)


def test_function_is_a_score():
    queries, keys, values = random_vectors()

    def nearness(queries, keys):
        return -torch.cdist(queries, keys, p=1)

    output = look(queries, keys, values, score=nearness)
    expected = (-torch.cdist(queries, keys, p=1)).softmax(-1)
    torch.testing.assert_close(output.weights, expected)
    torch.testing.assert_close(output.context, expected @ values)


def test_defaults_of_score_suit_a_formula_alone():
    class Dot(Score):
        def forward(self, queries, keys):
            return dot(queries, keys)

    score, (queries, keys, _) = Dot(), random_vectors()
    assert not score.is_dot_product and not score.is_head_independent
    assert score.widths is None and not score.needs_equal_widths
    assert score.pairwise is score
    assert score.project_queries(queries) is queries and score.project_keys(keys) is keys
    with pytest.raises(RegardError, match="Dot does not fold into a dot product"):
        score.fold(queries, keys)


def test_score_with_a_fold_is_a_dot_product_and_runs_fused():
    queries, keys, values = random_vectors()
    assert KeySum().is_dot_product
    fused = attend(queries, keys, values, score=KeySum(), backend="fused")
    torch.testing.assert_close(
        fused, attend(queries, keys, values, score=KeySum(), backend="dense")
    )


def test_score_without_forward_asks_for_it():
    with pytest.raises(NotImplementedError, match="Score must implement forward"):
        Score()(torch.ones(2, 3), torch.ones(2, 3))


def test_as_score_returns_a_score_and_wraps_other_callables():
    score, module = PerHead(2), nn.Bilinear(3, 3, 1)
    assert as_score(score) is score
    assert isinstance(as_score(dot), FunctionScore)
    wrapped = as_score(module)
    assert list(wrapped.parameters()) == list(module.parameters())


def test_wrapped_function_may_need_gradients_and_random_numbers():
    assert as_score(dot).may_need_grad and as_score(dot).may_use_rng
    module = nn.Linear(3, 3)
    assert as_score(module).may_need_grad and as_score(module).may_use_rng
    assert not as_score(module.requires_grad_(False)).may_need_grad
    assert not as_score(module.eval()).may_use_rng


def test_gradient_reaches_a_parameter_that_a_function_closes_over():
    factor = torch.ones((), requires_grad=True)
    queries, keys, values = random_vectors()
    for backend in ("dense", "blockwise"):
        context = attend(
            queries, keys, values, score=lambda q, k: factor * dot(q, k), backend=backend
        )
        (gradient,) = torch.autograd.grad(context.square().sum(), factor)
        assert gradient.abs() > 0


def test_module_that_is_no_score_trains_inside_multihead_attention():
    class Weighted(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(4))

        def forward(self, queries, keys):
            return (queries * self.weight) @ keys.mT

    module = Weighted()
    attention = MultiHeadAttention(12, 3, score=module)
    attention(torch.randn(2, 5, 12)).square().sum().backward()
    assert module.weight.grad.abs().sum() > 0
    assert not attention.eval().score.may_use_rng


@pytest.mark.parametrize("backend", BACKENDS)
def test_look_consumes_the_random_numbers_of_attend(backend):
    vectors = random_vectors()
    arguments = {"score": WithDropout(), "dropout": 0.4, "backend": backend}
    torch.manual_seed(7)
    context, afterwards = attend(*vectors, **arguments), torch.rand(5)
    torch.manual_seed(7)
    assert torch.equal(look(*vectors, **arguments).context, context)
    assert torch.equal(torch.rand(5), afterwards)


@pytest.mark.parametrize("length", [7, 40])
def test_score_that_depends_on_the_head_has_the_weights_of_its_context(length, monkeypatch):
    monkeypatch.setattr(dense, "MAX_SCORES", 4 * 20 * 20)
    words = torch.randn(1, 4, length, 8)
    with torch.no_grad():
        output = look(words, score=PerHead(4))
    torch.testing.assert_close(output.context, output.weights @ words)


def test_score_may_return_one_row_for_all_queries():
    queries, keys, values = random_vectors()
    with torch.no_grad():
        output = look(queries, keys, values, score=KeySum())
    torch.testing.assert_close(output.context, output.weights @ values)


@pytest.mark.parametrize("backend", ["blockwise", "dense"])
def test_scores_of_keys_alone_or_queries_alone_are_broadcast(backend):
    queries, keys, values = random_vectors()
    by_key = attend(queries, keys, values, score=lambda q, k: k.norm(dim=-1)[..., None, :])
    by_pair = attend(
        queries,
        keys,
        values,
        score=lambda q, k: k.norm(dim=-1)[..., None, :] + 0 * (q @ k.mT),
        backend=backend,
    )
    torch.testing.assert_close(by_key, by_pair)
    by_query = attend(
        queries, keys, values, score=lambda q, k: q.sum(-1, keepdim=True), backend=backend
    )
    torch.testing.assert_close(by_query, values.mean(-2, keepdim=True).expand_as(by_query))


@pytest.mark.parametrize("backend", ["blockwise", "dense"])
def test_scores_of_a_wrong_shape_are_refused(backend):
    factors = torch.linspace(0.1, 3, 4)[:, None, None]
    message = r"score must return .*\(2, 1, 12, 5\).*is \(2, 4, 12, 5\)"
    with pytest.raises(RegardError, match=message):
        attend(
            torch.randn(2, 4, 3, 8),
            torch.randn(2, 1, 5, 8),
            score=lambda queries, keys: (queries * factors) @ keys.mT,
            backend=backend,
        )
    with pytest.raises(RegardError, match=r"score must return .*, but the shape is \(2, 5\)"):
        attend(torch.randn(2, 3, 8), torch.randn(2, 5, 8), score=lambda q, k: k.norm(dim=-1))


@pytest.mark.parametrize("backend", [None, "dense", "blockwise"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_function_may_score_in_half_precision(dtype, backend):
    shapes = (2, 6, 5, 12), (2, 3, 7, 12), (2, 3, 7, 4)
    inputs = [(torch.randn(shape) / 2).to(dtype) for shape in shapes]
    mask = torch.rand(2, 6, 5, 7) > 0.3
    output = look(*inputs, score=dot, mask=mask, backend=backend)
    assert output.context.dtype == output.weights.dtype == dtype
    assert torch.equal(output.context, attend(*inputs, score=dot, mask=mask, backend=backend))
    expected = attend(*(rows.float() for rows in inputs), score=dot, mask=mask)
    torch.testing.assert_close(output.context.float(), expected, rtol=0, atol=3e-2)


def test_multihead_attention_in_half_precision_takes_a_function_as_score():
    attention = MultiHeadAttention(12, 3, score=dot).to(torch.bfloat16)
    assert attention(torch.randn(2, 5, 12).to(torch.bfloat16)).dtype == torch.bfloat16
