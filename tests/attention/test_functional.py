"""attend, weights and look: agreement with the formulas, and properties of every backend."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from helpers import formulas
from helpers.attention_inputs import (
    BATCH,
    HEADS,
    KEYS,
    QUERIES,
    SCORES_AND_BACKENDS,
    build_score,
    random_mask,
    random_vectors,
)
from regard.attention import (
    BACKENDS,
    Additive,
    Bilinear,
    Kernel,
    ScaledDot,
    attend,
    look,
    make_score,
    weights,
)
from regard.attention.backends import blockwise, dense, fused
from regard.attention.scores import boxcar, epanechnikov, triangular
from regard.masks import causal, documents, lengths, padding, prefix, window

TOLERANCE = {torch.float64: 1e-12, torch.float32: 3e-6, torch.float16: 3e-3, torch.bfloat16: 3e-2}

MASKS = {
    "none": lambda: None,
    "causal": lambda: causal(align="last"),
    "lengths": lambda: lengths([4, 0]),
    "lengths per query": lambda: lengths(torch.tensor([[1, 0, 3, 7, 5], [2, 2, 0, 4, 6]])),
    "padding": lambda: padding(torch.rand(BATCH, KEYS) > 0.5),
    "window": lambda: window(1, align="first"),
    "documents": lambda: documents([0, 0, 1, 1, 9], [0, 0, 1, 1, 1, 2, 2]),
    "prefix": lambda: causal(align="first") | prefix([2, 3]),
    "tensor": random_mask,
    "combined": lambda: causal(align="last") & lengths([3, 6]) & ~window(0, align="last"),
}


def to_tensor(mask):
    if mask is None or isinstance(mask, torch.Tensor):
        return mask
    return mask.to_tensor(QUERIES, KEYS, batch=(BATCH, HEADS))


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize(("name", "backend"), SCORES_AND_BACKENDS)
def test_every_score_mask_backend_and_dtype_agrees_with_the_formula(name, backend, dtype):
    score = build_score(name, dtype)
    for mask_name, make_mask in MASKS.items():
        queries, keys, values = random_vectors(dtype)
        mask = make_mask()
        scores = formulas.scores(name, queries, keys, score)
        expected = formulas.weights(scores, to_tensor(mask))
        output = look(queries, keys, values, score=score, mask=mask, backend=backend)
        assert output.context.dtype == output.weights.dtype == dtype
        close = {"rtol": 0, "atol": TOLERANCE[dtype], "msg": lambda m, n=mask_name: f"{n}: {m}"}
        torch.testing.assert_close(output.weights.double(), expected, **close)
        torch.testing.assert_close(output.context.double(), expected @ values.double(), **close)


@pytest.mark.parametrize("bias_axes", [2, 3, 4])
@pytest.mark.parametrize("backend", BACKENDS)
def test_bias_of_two_to_four_axes_is_added_to_the_scores(backend, bias_axes):
    queries, keys, values = random_vectors()
    bias = torch.randn(BATCH, HEADS, QUERIES, KEYS)
    bias[0, 0, 2] = -torch.inf
    bias = {2: bias[0, 0], 3: bias[:, 0], 4: bias}[bias_axes]
    mask = random_mask()
    full = bias[:, None] if bias_axes == 3 else bias
    expected = formulas.weights(formulas.scores("scaled_dot", queries, keys), mask, full)
    output = look(queries, keys, values, mask=mask, bias=bias, backend=backend)
    torch.testing.assert_close(output.weights.double(), expected, rtol=0, atol=1e-6)
    context = expected @ values.double()
    torch.testing.assert_close(output.context.double(), context, rtol=0, atol=3e-6)


@pytest.mark.parametrize("dropout", [0.0, 0.4])
@pytest.mark.parametrize(("name", "backend"), SCORES_AND_BACKENDS)
def test_look_has_the_context_of_attend_and_the_weights_before_dropout(name, backend, dropout):
    score = build_score(name)
    queries, keys, values = random_vectors()
    arguments = {"score": score, "mask": random_mask(), "dropout": dropout, "backend": backend}
    for grad_mode in (torch.no_grad, torch.enable_grad):
        with grad_mode():
            torch.manual_seed(7)
            context = attend(queries, keys, values, **arguments)
            torch.manual_seed(7)
            output = look(queries, keys, values, **arguments)
            torch.testing.assert_close(output.context, context, rtol=0, atol=0)
            expected = weights(queries, keys, score=score, mask=arguments["mask"])
            torch.testing.assert_close(output.weights, expected, rtol=0, atol=0)


@pytest.mark.parametrize("backend", BACKENDS)
def test_dropout_keeps_the_mean_and_has_the_expected_variance(backend):
    queries, keys = torch.zeros(1, 1, 4), torch.zeros(1, 2_000, 4)
    values = torch.ones(1, 2_000, 1)
    context = torch.stack(
        [attend(queries, keys, values, dropout=0.5, backend=backend) for _ in range(40)]
    )
    assert context.mean().item() == pytest.approx(1.0, abs=0.02)
    assert context.std().item() == pytest.approx(2_000**-0.5, rel=0.4)


@pytest.mark.parametrize(("name", "backend"), SCORES_AND_BACKENDS)
def test_gradients_of_inputs_and_parameters_pass_gradcheck(name, backend):
    score = build_score(name, torch.float64)
    queries, keys, values = (
        x[:1, :2, :4, :3].requires_grad_() for x in random_vectors(torch.float64)
    )
    if name in ("bilinear", "additive"):
        score = (Bilinear(3) if name == "bilinear" else Additive(3, hidden_width=2)).double()
    if name in ("boxcar", "triangular", "epanechnikov"):
        score = Kernel({"boxcar": boxcar, "triangular": triangular}.get(name, epanechnikov), 3.0)
    mask = torch.rand(1, 2, 4, 4) > 0.3
    mask[0, 1, 2] = False
    parameters = tuple(score.parameters())

    def run(queries, keys, values, *_):
        return attend(queries, keys, values, score=score, mask=mask, backend=backend)

    assert torch.autograd.gradcheck(run, (queries, keys, values, *parameters), fast_mode=True)


@pytest.mark.parametrize("name", formulas.NAMES)
def test_gradients_of_weights_pass_gradcheck(name):
    score = build_score(name, torch.float64)
    queries, keys, _ = (x[:1, :1, :3].requires_grad_() for x in random_vectors(torch.float64))
    mask = torch.tensor([[True, True, False], [False] * 3, [True] * 3])

    def run(queries, keys):
        return weights(queries, keys, score=score, mask=mask)

    assert torch.autograd.gradcheck(run, (queries, keys))


@pytest.mark.parametrize(("name", "backend"), SCORES_AND_BACKENDS)
def test_fully_masked_query_gets_zero_context_weights_and_gradient(name, backend):
    score = build_score(name)
    vectors = [x.requires_grad_() for x in random_vectors()]
    output = look(*vectors, score=score, mask=lengths([0, KEYS]), backend=backend)
    assert (output.context[0] == 0).all()
    assert (output.weights[0] == 0).all()
    (output.context.sum() + output.weights.square().sum()).backward()
    for x in vectors:
        gradient = torch.zeros_like(x) if x.grad is None else x.grad  # boxcars are constant
        assert (gradient[0] == 0).all()
        assert gradient.isfinite().all()


@pytest.mark.parametrize(("name", "backend"), SCORES_AND_BACKENDS)
def test_grouped_query_heads_read_the_key_head_of_their_group(name, backend):
    score = build_score(name)
    queries, keys, values = random_vectors(heads=6, key_heads=2)
    own_keys, own_values = (x.repeat_interleave(3, dim=1) for x in (keys, values))
    for mask in (None, causal(align="first"), padding(torch.rand(BATCH, KEYS) > 0.4)):
        grouped = look(queries, keys, values, score=score, mask=mask, backend=backend)
        repeated = look(queries, own_keys, own_values, score=score, mask=mask, backend=backend)
        torch.testing.assert_close(grouped.weights, repeated.weights)
        torch.testing.assert_close(grouped.context, repeated.context)


@given(
    data=st.data(),
    batch=st.lists(st.integers(0, 3), max_size=3),
    queries=st.integers(0, 4),
    keys=st.integers(0, 5),
    width=st.integers(1, 4),
    value=st.integers(1, 3),
    magnitude=st.sampled_from([1e-30, 1.0, 1e4, 1e15]),
    name=st.sampled_from(["dot", "scaled_dot", "cosine", "gaussian", "triangular", "additive"]),
    single_query=st.booleans(),
)
def test_weights_of_any_shape_and_magnitude_sum_to_one_or_zero(
    data, batch, queries, keys, width, value, magnitude, name, single_query
):
    score = Additive(width) if name == "additive" else make_score(name)
    key_batch = [1 if data.draw(st.booleans()) else axis for axis in batch]
    q = magnitude * torch.randn(*batch, *([] if single_query else [queries]), width)
    k = magnitude * torch.randn(*key_batch, keys, width)
    v = torch.randn(*key_batch, keys, value)
    mask = torch.rand(1 if single_query else queries, keys) > 0.4
    copies = [x.clone() for x in (q, k, v, mask)]
    for backend in BACKENDS:
        if backend == "fused" and not score.is_dot_product:
            continue
        output = look(q, k, v, score=score, mask=mask, backend=backend)
        rows = torch.Size([*batch] if single_query else [*batch, queries])
        assert output.context.shape == (*rows, value)
        assert output.weights.shape == (*rows, keys)
        assert output.context.isfinite().all()
        is_masked = ~mask[0] if single_query else ~mask
        assert (output.weights[..., is_masked] == 0).all()
        total = output.weights.sum(-1)
        assert torch.isclose(total, torch.ones(()), atol=1e-5).logical_or(total == 0).all()
    for copy, x in zip(copies, (q, k, v, mask), strict=True):
        assert torch.equal(copy, x), "inputs must not be modified"


@pytest.mark.parametrize(("name", "backend"), SCORES_AND_BACKENDS)
def test_permuting_keys_and_values_permutes_the_weights_alone(name, backend):
    score = build_score(name)
    queries, keys, values = random_vectors()
    order = torch.randperm(KEYS)
    output = look(queries, keys, values, score=score, backend=backend)
    keys, values = keys[..., order, :], values[..., order, :]
    permuted = look(queries, keys, values, score=score, backend=backend)
    torch.testing.assert_close(permuted.context, output.context)
    torch.testing.assert_close(permuted.weights, output.weights[..., order])


def test_single_query_returns_no_query_axis():
    queries, keys = torch.randn(10, 256), torch.randn(10, 12, 256)
    for score in ("dot", "cosine"):
        single = look(queries, keys, score=score)
        assert (single.context.shape, single.weights.shape) == ((10, 256), (10, 12))
        one = look(queries[:, None], keys, score=score)
        assert (one.context.shape, one.weights.shape) == ((10, 1, 256), (10, 1, 12))
        torch.testing.assert_close(single.context, one.context[:, 0])


def test_queries_alone_are_self_attention_worked_by_hand():
    tokens = torch.tensor(
        [[1, 0, 1, 0], [0, 1, 0, 1], [1, 1, 0, 0], [0, 0, 1, 1], [1, 0.5, 0.5, 0]]
    )
    output = look(tokens)
    scores = ScaledDot()(tokens, tokens)
    torch.testing.assert_close(scores[0], torch.tensor([1, 0, 0.5, 0.5, 0.75]))
    first = torch.tensor([0.2976, 0.1095, 0.1805, 0.1805, 0.2318])
    second = torch.tensor([0.1205, 0.3275, 0.1986, 0.1986, 0.1547])
    torch.testing.assert_close(output.weights[:2], torch.stack([first, second]), rtol=0, atol=6e-5)
    torch.testing.assert_close(output.context, output.weights @ tokens)
    assert torch.equal(weights(tokens, mask=causal())[0], torch.tensor([1.0, 0, 0, 0, 0]))


def test_keys_without_values_are_their_own_values():
    queries, keys = torch.randn(1, 3, 4), torch.randn(1, 5, 4)
    output = look(queries, keys)
    assert (output.context.shape, output.weights.shape) == ((1, 3, 4), (1, 3, 5))
    assert torch.equal(output.context, look(queries, keys, keys).context)


def test_equal_keys_get_equal_additive_weights():
    queries, keys = torch.randn(2, 1, 20), torch.ones(2, 10, 2)
    values = torch.arange(40.0).reshape(1, 10, 4).repeat(2, 1, 1)
    context = attend(queries, keys, values, score=Additive(20, 2, 8), mask=lengths([2, 6]))
    torch.testing.assert_close(context[:, 0], torch.tensor([[2.0, 3, 4, 5], [10, 11, 12, 13]]))


def test_keys_beyond_the_length_get_exactly_zero_weight():
    computed = weights(torch.rand(2, 2, 4), torch.rand(2, 4, 4), mask=lengths([2, 3]))
    assert (computed[0, :, 2:] == 0).all()
    assert (computed[1, :, 3:] == 0).all()
    assert (computed[0, :, :2] > 0).all()
    torch.testing.assert_close(computed.sum(-1), torch.ones(2, 2))


@pytest.mark.parametrize("scale", [-1.0, 0.0])
def test_scale_of_zero_or_less_keeps_masked_keys_masked(scale):
    words = torch.randn(2, 5, 8)
    score = ScaledDot(scale)
    context = attend(words, score=score, mask=causal())
    torch.testing.assert_close(context, attend(words, score=score, mask=causal(), backend="dense"))


def test_meta_tensors_give_the_shapes():
    words = torch.empty(2, 5, 4, device="meta")
    assert weights(words).shape == (2, 5, 5)
    assert attend(words, backend="dense").shape == (2, 5, 4)


def test_backend_is_fused_for_dot_products_and_else_chosen_by_size(monkeypatch):
    used = []
    for name, backend in (("fused", fused), ("blockwise", blockwise), ("dense", dense)):
        run = backend.attend
        monkeypatch.setattr(
            backend, "attend", lambda *a, name=name, run=run: used.append(name) or run(*a)
        )
    monkeypatch.setattr(dense, "MAX_SCORES", BATCH * HEADS * QUERIES * KEYS)
    queries, keys, values = random_vectors()
    attend(queries, keys, values)
    attend(queries, keys, values, score=ScaledDot(cap=2.0))
    attend(queries[..., :-1, :], keys, values, score=ScaledDot(cap=2.0))
    assert used == ["fused", "blockwise", "dense"]
