"""Attention under the transforms of torch.func, against loops and finite differences."""

from copy import deepcopy

import pytest
import torch
from torch.autograd import forward_ad
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, vmap

from regard.attention import (
    Additive,
    Bilinear,
    Kernel,
    KVCache,
    MultiHeadAttention,
    attend,
    look,
    weights,
)
from regard.attention.scores import epanechnikov
from regard.config import ModelConfig
from regard.masks import causal
from regard.models import build
from regard.positions import Sinusoidal

SAMPLES, BATCH, LENGTH, WIDTH = 3, 2, 4, 6
STEP = 1e-5

# raised by torch at its first forward-mode derivative
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")


def _scores():
    return {
        "dot": "dot",
        "scaled_dot": "scaled_dot",
        "cosine": "cosine",
        "gaussian": "gaussian",
        "additive": Additive(WIDTH, WIDTH, 5).double(),
        "bilinear": Bilinear(WIDTH, WIDTH).double(),
        "epanechnikov": Kernel(epanechnikov, 9.0),
        "function": lambda queries, keys: (queries @ keys.mT).tanh(),
    }


def _calls():
    calls = {}
    for name, score in _scores().items():
        calls[f"attend, {name}"] = lambda q, k, v, s=score: attend(q, k, v, score=s)
        calls[f"weights, {name}"] = lambda q, k, v, s=score: weights(q, k, score=s)
        calls[f"blockwise, {name}"] = lambda q, k, v, s=score: attend(
            q, k, v, score=s, backend="blockwise"
        )
    calls["attend, causal"] = lambda q, k, v: attend(q, k, v, mask=causal())
    calls["look, causal"] = lambda q, k, v: torch.cat(look(q, k, v, mask=causal()), dim=-1)
    heads = MultiHeadAttention(WIDTH, 2).double()
    calls["multihead"] = lambda q, k, v: heads(q, k, v)
    return calls


@pytest.fixture(params=list(_calls()))
def call(request):
    return _calls()[request.param]


@pytest.fixture
def inputs():
    return [torch.randn(SAMPLES, BATCH, LENGTH, WIDTH, dtype=torch.float64) for _ in range(3)]


def test_vmap_agrees_with_a_loop(call, inputs):
    expected = torch.stack([call(*one) for one in zip(*inputs, strict=True)])
    torch.testing.assert_close(vmap(call)(*inputs), expected)


def test_vmap_over_queries_alone_agrees_with_a_loop(call, inputs):
    queries, keys, values = inputs[0], inputs[1][0], inputs[2][0]
    expected = torch.stack([call(one, keys, values) for one in queries])
    torch.testing.assert_close(vmap(call, in_dims=(0, None, None))(queries, keys, values), expected)


def test_jvp_agrees_with_finite_differences(call, inputs):
    tangents = [torch.randn_like(x) for x in inputs]
    _, slope = jvp(call, tuple(inputs), tuple(tangents))
    forward, backward = (
        call(*(x + sign * STEP * t for x, t in zip(inputs, tangents, strict=True)))
        for sign in (1, -1)
    )
    torch.testing.assert_close(slope, (forward - backward) / (2 * STEP), atol=1e-7, rtol=1e-6)

    with forward_ad.dual_level():
        duals = [forward_ad.make_dual(x, t) for x, t in zip(inputs, tangents, strict=True)]
        tangent = forward_ad.unpack_dual(call(*duals)).tangent
    torch.testing.assert_close(tangent, slope)


def test_per_sample_gradients_agree_with_a_backward_pass(call, inputs):
    def loss(*one):
        return call(*one).square().sum()

    queries = inputs[0].clone().requires_grad_()
    total = sum(loss(*one) for one in zip(queries, *inputs[1:], strict=True))
    (expected,) = torch.autograd.grad(total, queries)
    torch.testing.assert_close(vmap(grad(loss))(*inputs), expected)


@pytest.mark.filterwarnings("ignore:.*batching rule for .*attention_for_cpu_backward")
def test_reverse_and_forward_jacobians_agree(call, inputs):
    first = [x[0] for x in inputs]
    backwards, forwards = jacrev(call)(*first), jacfwd(call)(*first)
    torch.testing.assert_close(backwards, forwards)


def test_second_derivatives_agree_with_finite_differences(call, inputs):
    queries, keys, values = (x[0] for x in inputs)

    def loss(queries):
        return call(queries, keys, values).square().sum()

    direction = torch.randn_like(queries)
    computed = (hessian(loss)(queries) * direction).flatten(3).sum(dim=-1)
    forward, backward = (grad(loss)(queries + sign * STEP * direction) for sign in (1, -1))
    torch.testing.assert_close(computed, (forward - backward) / (2 * STEP), atol=1e-6, rtol=1e-5)


def test_gradient_of_a_gradient_agrees_with_finite_differences(call, inputs):
    queries, keys, values = (x[0] for x in inputs)
    direction = torch.randn_like(queries)

    def loss(queries):
        return call(queries, keys, values).square().sum()

    def slope(queries):
        return (grad(loss)(queries) * direction).sum()

    forward, backward = (grad(loss)(queries + sign * STEP * direction) for sign in (1, -1))
    expected = (forward - backward) / (2 * STEP)
    torch.testing.assert_close(grad(slope)(queries), expected, atol=1e-6, rtol=1e-5)


def test_vmap_over_masks_agrees_with_a_loop(inputs):
    masks = torch.rand(SAMPLES, LENGTH, LENGTH) > 0.4
    computed = vmap(lambda q, k, v, mask: attend(q, k, v, mask=mask))(*inputs, masks)
    expected = [attend(q, k, v, mask=m) for q, k, v, m in zip(*inputs, masks, strict=True)]
    torch.testing.assert_close(computed, torch.stack(expected))


def test_second_derivatives_exist_where_a_query_equals_a_key(inputs):
    rows, values, direction = (x[0] for x in inputs)
    for loss in (
        lambda x: attend(x, score="gaussian").square().sum(),
        lambda x: attend(x, rows, values, score="gaussian").square().sum(),
        lambda x: weights(x, rows, score="gaussian").square().sum(),
    ):
        forward, backward = (grad(loss)(rows + sign * STEP * direction) for sign in (1, -1))
        expected = (forward - backward) / (2 * STEP)
        computed = (hessian(loss)(rows) * direction).flatten(3).sum(dim=-1)
        torch.testing.assert_close(computed, expected, atol=1e-6, rtol=1e-5)
        twice = grad(lambda x, loss=loss: jvp(loss, (x,), (direction,))[1])(rows)
        torch.testing.assert_close(twice, expected, atol=1e-6, rtol=1e-5)


def test_transformed_steps_with_a_cache_agree_with_one_pass(inputs):
    heads = MultiHeadAttention(WIDTH, 2).double()

    def steps(rows):
        cache, contexts = KVCache(), []
        for row in rows.split(1, dim=-2):
            context, cache = heads.step(row, cache)
            contexts.append(context)
        return torch.cat(contexts, dim=-2)

    def whole(rows):
        return heads(rows, mask=causal())

    rows, direction = inputs[0], inputs[1]
    torch.testing.assert_close(vmap(steps)(rows), vmap(whole)(rows))
    for computed, expected in zip(
        *(jvp(call, (rows[0],), (direction[0],)) for call in (steps, whole)), strict=True
    ):
        torch.testing.assert_close(computed, expected)


def test_sinusoidal_table_is_no_wrapper_after_a_transform():
    positions = Sinusoidal(WIDTH)
    grad(lambda rows: positions(rows).square().sum())(torch.randn(1, LENGTH, WIDTH))
    assert torch.equal(deepcopy(positions).table, positions.table)


def test_per_sample_gradients_of_a_model_agree_with_a_backward_pass():
    model = build(ModelConfig(width=8, layers=1, heads=2, share_embeddings=False), 20).eval()
    source, lengths = torch.tensor([[4, 5, 6], [7, 8, 0]]), torch.tensor([3, 2])
    target = torch.tensor([[1, 9, 5, 6], [1, 7, 4, 9]])
    parameters = {name: parameter.detach() for name, parameter in model.named_parameters()}

    def loss(parameters, *one):
        batch = tuple(x[None] for x in one)
        return functional_call(model, parameters, batch).square().sum()

    in_dims = (None, 0, 0, 0)
    computed = vmap(grad(loss), in_dims)(parameters, source, lengths, target)
    for item in range(len(source)):
        model.zero_grad()
        rows = slice(item, item + 1)
        model(source[rows], lengths[rows], target[rows]).square().sum().backward()
        for name, parameter in model.named_parameters():
            torch.testing.assert_close(
                computed[name][item], parameter.grad, atol=1e-4, rtol=1e-4, msg=name
            )


def test_models_with_dropout_work_under_transforms():
    model = build(ModelConfig(width=8, layers=1, heads=2, dropout=0.5, share_embeddings=False), 20)
    source, lengths = torch.tensor([[4, 5, 6]]), torch.tensor([3])
    parameters = {name: parameter.detach() for name, parameter in model.named_parameters()}

    def loss(parameters):
        arguments = (source, lengths, torch.tensor([[1, 9]]))
        return functional_call(model, parameters, arguments).square().sum()

    gradients = grad(loss)(parameters)
    assert all(gradient.isfinite().all() for gradient in gradients.values())
