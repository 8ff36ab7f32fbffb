"""Attention under the transforms of torch.func, against loops and differences."""

from copy import deepcopy

import pytest
import torch
from torch.autograd import forward_ad
from torch.func import grad, hessian, jacfwd, jacrev, jvp, vmap

from regard.attention import Additive, Bilinear, KVCache, MultiHeadAttention, attend, look, weights
from regard.attention.scores.kernels import Kernel, epanechnikov
from regard.masks import causal
from regard.positions import Sinusoidal

MANY, BATCH, LENGTH, WIDTH = 3, 2, 4, 6
STEP = 1e-5

# torch's own, of its first forward derivative
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
        "a function": lambda queries, keys: (queries @ keys.mT).tanh(),
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
    calls["heads"] = lambda q, k, v: heads(q, k, v)
    return calls


@pytest.fixture(params=list(_calls()))
def call(request):
    return _calls()[request.param]


@pytest.fixture
def given():
    return [torch.randn(MANY, BATCH, LENGTH, WIDTH, dtype=torch.float64) for _ in range(3)]


def test_mapped_it_gives_what_a_loop_gives(call, given):
    want = torch.stack([call(*one) for one in zip(*given, strict=True)])
    torch.testing.assert_close(vmap(call)(*given), want)


def test_mapped_over_queries_alone_it_gives_what_a_loop_gives(call, given):
    queries, keys, values = given[0], given[1][0], given[2][0]
    want = torch.stack([call(one, keys, values) for one in queries])
    torch.testing.assert_close(vmap(call, in_dims=(0, None, None))(queries, keys, values), want)


def test_forward_derivatives_are_those_of_small_steps(call, given):
    ways = [torch.randn_like(numbers) for numbers in given]
    _, slope = jvp(call, tuple(given), tuple(ways))
    ahead, back = (
        call(*(x + sign * STEP * way for x, way in zip(given, ways, strict=True)))
        for sign in (1, -1)
    )
    torch.testing.assert_close(slope, (ahead - back) / (2 * STEP), atol=1e-7, rtol=1e-6)

    with forward_ad.dual_level():
        duals = [forward_ad.make_dual(x, way) for x, way in zip(given, ways, strict=True)]
        tangent = forward_ad.unpack_dual(call(*duals)).tangent
    torch.testing.assert_close(tangent, slope)


def test_gradients_sample_by_sample_are_those_of_a_backward_pass(call, given):
    def loss(*one):
        return call(*one).square().sum()

    queries = given[0].clone().requires_grad_()
    total = sum(loss(*one) for one in zip(queries, *given[1:], strict=True))
    (want,) = torch.autograd.grad(total, queries)
    torch.testing.assert_close(vmap(grad(loss))(*given), want)


@pytest.mark.filterwarnings("ignore:.*batching rule for .*attention_for_cpu_backward")
def test_jacobians_agree_backwards_and_forwards(call, given):
    first = [numbers[0] for numbers in given]
    backwards, forwards = jacrev(call)(*first), jacfwd(call)(*first)
    torch.testing.assert_close(backwards, forwards)


def test_second_derivatives_are_those_of_small_steps(call, given):
    queries, keys, values = (numbers[0] for numbers in given)

    def loss(queries):
        return call(queries, keys, values).square().sum()

    way = torch.randn_like(queries)
    got = (hessian(loss)(queries) * way).flatten(3).sum(dim=-1)
    ahead, back = (grad(loss)(queries + sign * STEP * way) for sign in (1, -1))
    torch.testing.assert_close(got, (ahead - back) / (2 * STEP), atol=1e-6, rtol=1e-5)


def test_a_mask_may_be_mapped_too(given):
    masks = torch.rand(MANY, LENGTH, LENGTH) > 0.4
    got = vmap(lambda q, k, v, mask: attend(q, k, v, mask=mask))(*given, masks)
    want = [attend(q, k, v, mask=m) for q, k, v, m in zip(*given, masks, strict=True)]
    torch.testing.assert_close(got, torch.stack(want))


def test_second_derivatives_exist_where_a_query_lies_on_a_key(given):
    rows, values, way = (numbers[0] for numbers in given)
    for loss in (
        lambda x: attend(x, score="gaussian").square().sum(),
        lambda x: attend(x, rows, values, score="gaussian").square().sum(),
        lambda x: weights(x, rows, score="gaussian").square().sum(),
    ):
        ahead, back = (grad(loss)(rows + sign * STEP * way) for sign in (1, -1))
        want = (ahead - back) / (2 * STEP)
        got = (hessian(loss)(rows) * way).flatten(3).sum(dim=-1)
        torch.testing.assert_close(got, want, atol=1e-6, rtol=1e-5)
        twice = grad(lambda x, loss=loss: jvp(loss, (x,), (way,))[1])(rows)
        torch.testing.assert_close(twice, want, atol=1e-6, rtol=1e-5)


def test_steps_over_a_cache_are_transformed_as_the_whole_is(given):
    heads = MultiHeadAttention(WIDTH, 2).double()

    def steps(rows):
        cache, contexts = KVCache(), []
        for row in rows.split(1, dim=-2):
            context, cache = heads.step(row, cache)
            contexts.append(context)
        return torch.cat(contexts, dim=-2)

    def whole(rows):
        return heads(rows, mask=causal())

    rows, way = given[0], given[1]
    torch.testing.assert_close(vmap(steps)(rows), vmap(whole)(rows))
    for got, want in zip(
        *(jvp(call, (rows[0],), (way[0],)) for call in (steps, whole)), strict=True
    ):
        torch.testing.assert_close(got, want)


def test_a_model_stays_its_own_after_a_transform():
    positions = Sinusoidal(WIDTH)
    grad(lambda rows: positions(rows).square().sum())(torch.randn(1, LENGTH, WIDTH))
    assert torch.equal(deepcopy(positions).table, positions.table)
