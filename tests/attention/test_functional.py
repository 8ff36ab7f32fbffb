import sys

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn.functional import dropout as drop

from helpers import formulas
from regard.attention import (
    Additive,
    Bilinear,
    Cosine,
    Gaussian,
    Kernel,
    ScaledDot,
    attend,
    look,
    make_score,
    weights,
)
from regard.attention.functional import BACKENDS
from regard.attention.scores.additive import TanhSum
from regard.attention.scores.base import DotProductForm
from regard.attention.scores.kernels import boxcar, epanechnikov, triangular
from regard.masks import causal, documents, lengths, padding, prefix, window

BATCH, HEADS, QUERIES, KEYS, WIDTH, VALUE = 2, 3, 5, 7, 12, 6
TOLERANCE = {torch.float64: 1e-12, torch.float32: 3e-6, torch.float16: 3e-3, torch.bfloat16: 3e-2}


def build_score(name, dtype=torch.float32):
    makers = {
        "capped": lambda: ScaledDot(cap=5.0),
        "cosine": lambda: Cosine(temperature=0.25),
        "gaussian": lambda: Gaussian(bandwidth=2.0),
        "boxcar": lambda: Kernel(boxcar, 4.0),
        "triangular": lambda: Kernel(triangular, 5.0),
        "epanechnikov": lambda: Kernel(epanechnikov, 5.0),
        "bilinear": lambda: Bilinear(WIDTH),
        "additive": lambda: Additive(WIDTH, hidden_width=9),
    }
    return makers.get(name, lambda: make_score(name))().to(dtype)


def make_vectors(dtype=torch.float32, queries=QUERIES, keys=KEYS, heads=HEADS, key_heads=HEADS):
    return (
        torch.randn(BATCH, heads, queries, WIDTH).to(dtype),
        torch.randn(BATCH, key_heads, keys, WIDTH).to(dtype),
        torch.randn(BATCH, key_heads, keys, VALUE).to(dtype),
    )


def some_pairs():
    """A mask in which one query may look nowhere."""
    may_look = torch.rand(BATCH, HEADS, QUERIES, KEYS) > 0.4
    may_look[1, 2, 3] = False
    return may_look


MASKS = {
    "none": lambda: None,
    "causal": lambda: causal(align="last"),
    "lengths": lambda: lengths([4, 0]),
    "lengths per query": lambda: lengths(torch.tensor([[1, 0, 3, 7, 5], [2, 2, 0, 4, 6]])),
    "padding": lambda: padding(torch.rand(BATCH, KEYS) > 0.5),
    "window": lambda: window(1, align="first"),
    "documents": lambda: documents([0, 0, 1, 1, 9], [0, 0, 1, 1, 1, 2, 2]),
    "prefix": lambda: causal(align="first") | prefix([2, 3]),
    "plain": some_pairs,
    "joined": lambda: causal(align="last") & lengths([3, 6]) & ~window(0, align="last"),
}


def written_out(mask):
    if mask is None or isinstance(mask, torch.Tensor):
        return mask
    return mask.to_tensor(QUERIES, KEYS, batch=(BATCH, HEADS))


def goes(backend, score):
    """Tell whether a score can take a path."""
    return backend != "fused" or (hasattr(score, "fold") and getattr(score, "folds", True))


WAYS = [
    (name, backend)
    for name in formulas.NAMES
    for backend in BACKENDS
    if goes(backend, build_score(name))
]


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize(("name", "backend"), WAYS)
def test_every_score_mask_path_and_dtype_gives_the_formula(name, backend, dtype):
    score = build_score(name, dtype)
    for mask_name, make_mask in MASKS.items():
        queries, keys, values = make_vectors(dtype)
        mask = make_mask()
        scores = formulas.scores(name, queries, keys, score)
        expected = formulas.weights(scores, written_out(mask))
        context, looks = look(queries, keys, values, score=score, mask=mask, backend=backend)
        assert context.dtype == looks.dtype == dtype
        close = {"rtol": 0, "atol": TOLERANCE[dtype], "msg": lambda m, n=mask_name: f"{n}: {m}"}
        torch.testing.assert_close(looks.double(), expected, **close)
        torch.testing.assert_close(context.double(), expected @ values.double(), **close)


@pytest.mark.parametrize("bias_axes", [2, 3, 4])
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_bias_is_added_to_the_scores(backend, bias_axes):
    queries, keys, values = make_vectors()
    bias = torch.randn(BATCH, HEADS, QUERIES, KEYS)
    bias[0, 0, 2] = -torch.inf
    bias = {2: bias[0, 0], 3: bias[:, 0], 4: bias}[bias_axes]
    mask = some_pairs()
    full = bias[:, None] if bias_axes == 3 else bias
    expected = formulas.weights(formulas.scores("scaled_dot", queries, keys), mask, full)
    context, looks = look(queries, keys, values, mask=mask, bias=bias, backend=backend)
    torch.testing.assert_close(looks.double(), expected, rtol=0, atol=1e-6)
    torch.testing.assert_close(context.double(), expected @ values.double(), rtol=0, atol=3e-6)


@pytest.mark.parametrize("dropout", [0.0, 0.4])
@pytest.mark.parametrize(("name", "backend"), WAYS)
def test_looking_never_changes_the_answer(name, backend, dropout):
    score = build_score(name)
    queries, keys, values = make_vectors()
    settings = {"score": score, "mask": some_pairs(), "dropout": dropout, "backend": backend}
    for gradients in (torch.no_grad, torch.enable_grad):
        with gradients():
            torch.manual_seed(7)
            without = attend(queries, keys, values, **settings)
            torch.manual_seed(7)
            context, looks = look(queries, keys, values, **settings)
            torch.testing.assert_close(context, without, rtol=0, atol=0)
            undropped = weights(queries, keys, score=score, mask=settings["mask"])
            torch.testing.assert_close(looks, undropped, rtol=0, atol=0)


class Chancy(torch.nn.Module):
    """A score that draws, as one with dropout does in training."""

    def forward(self, queries, keys):
        return drop(queries, 0.5) @ keys.mT

    def fold(self, queries, keys):
        return DotProductForm(drop(queries, 0.5), keys)


@pytest.mark.parametrize("backend", BACKENDS)
def test_looking_draws_no_random_numbers_beside_those_of_the_answer(backend):
    queries, keys, values = make_vectors()
    settings = {"score": Chancy(), "dropout": 0.4, "backend": backend}
    torch.manual_seed(7)
    without, then = attend(queries, keys, values, **settings), torch.rand(5)
    torch.manual_seed(7)
    assert torch.equal(look(queries, keys, values, **settings).context, without)
    assert torch.equal(torch.rand(5), then)


@pytest.mark.parametrize("backend", BACKENDS)
def test_dropout_keeps_the_mean_and_drops_the_share(backend):
    queries, keys = torch.zeros(1, 1, 4), torch.zeros(1, 2_000, 4)
    values = torch.ones(1, 2_000, 1)
    context = torch.stack(
        [attend(queries, keys, values, dropout=0.5, backend=backend) for _ in range(40)]
    )
    assert context.mean().item() == pytest.approx(1.0, abs=0.02)
    assert context.std().item() == pytest.approx(2_000**-0.5, rel=0.4)


@pytest.mark.parametrize(("name", "backend"), WAYS)
def test_gradients_are_those_of_the_formula(name, backend):
    score = build_score(name, torch.float64)
    queries, keys, values = (
        x[:1, :2, :4, :3].requires_grad_() for x in make_vectors(torch.float64)
    )
    if name in ("bilinear", "additive"):
        score = (Bilinear(3) if name == "bilinear" else Additive(3, hidden_width=2)).double()
    if name in ("boxcar", "triangular", "epanechnikov"):
        score = Kernel({"boxcar": boxcar, "triangular": triangular}.get(name, epanechnikov), 3.0)
    may_look = torch.rand(1, 2, 4, 4) > 0.3
    may_look[0, 1, 2] = False
    parameters = tuple(score.parameters())

    def run(queries, keys, values, *_):
        return attend(queries, keys, values, score=score, mask=may_look, backend=backend)

    assert torch.autograd.gradcheck(run, (queries, keys, values, *parameters), fast_mode=True)


@pytest.mark.parametrize("name", formulas.NAMES)
def test_weights_can_be_learned_from(name):
    score = build_score(name, torch.float64)
    queries, keys, _ = (x[:1, :1, :3].requires_grad_() for x in make_vectors(torch.float64))
    may_look = torch.tensor([[True, True, False], [False] * 3, [True] * 3])

    def run(queries, keys):
        return weights(queries, keys, score=score, mask=may_look)

    assert torch.autograd.gradcheck(run, (queries, keys))


@pytest.mark.parametrize(("name", "backend"), WAYS)
def test_a_query_that_may_look_nowhere_gets_zeros_and_gives_no_gradient(name, backend):
    score = build_score(name)
    vectors = [x.requires_grad_() for x in make_vectors()]
    context, looks = look(*vectors, score=score, mask=lengths([0, KEYS]), backend=backend)
    assert (context[0] == 0).all()
    assert (looks[0] == 0).all()
    (context.sum() + looks.square().sum()).backward()
    for x in vectors:
        gradient = torch.zeros_like(x) if x.grad is None else x.grad  # boxcars have no slope
        assert (gradient[0] == 0).all()
        assert gradient.isfinite().all()


@pytest.mark.parametrize(("name", "backend"), WAYS)
def test_grouped_heads_read_the_key_head_of_their_group(name, backend):
    score = build_score(name)
    queries, keys, values = make_vectors(heads=6, key_heads=2)
    own_keys, own_values = (x.repeat_interleave(3, dim=1) for x in (keys, values))
    for mask in (None, causal(align="first"), padding(torch.rand(BATCH, KEYS) > 0.4)):
        looked = look(queries, keys, values, score=score, mask=mask, backend=backend)
        apart = look(queries, own_keys, own_values, score=score, mask=mask, backend=backend)
        torch.testing.assert_close(looked.weights, apart.weights)
        torch.testing.assert_close(looked.context, apart.context)


def leading_axes():
    return st.lists(st.integers(0, 3), max_size=3)


@given(
    data=st.data(),
    batch=leading_axes(),
    queries=st.integers(0, 4),
    keys=st.integers(0, 5),
    width=st.integers(1, 4),
    value=st.integers(1, 3),
    size=st.sampled_from([1e-30, 1.0, 1e4, 1e15]),
    name=st.sampled_from(["dot", "scaled_dot", "cosine", "gaussian", "triangular", "additive"]),
    single=st.booleans(),
)
def test_any_shape_and_size_gives_rows_that_sum_to_one_or_zero(
    data, batch, queries, keys, width, value, size, name, single
):
    score = Additive(width) if name == "additive" else make_score(name)
    stretched = [1 if data.draw(st.booleans()) else axis for axis in batch]
    q = size * torch.randn(*batch, *([] if single else [queries]), width)
    k = size * torch.randn(*stretched, keys, width)
    v = torch.randn(*stretched, keys, value)
    may_look = torch.rand(1 if single else queries, keys) > 0.4
    copies = [x.clone() for x in (q, k, v, may_look)]
    for backend in BACKENDS:
        if not goes(backend, score):
            continue
        context, looks = look(q, k, v, score=score, mask=may_look, backend=backend)
        rows = torch.Size([*batch] if single else [*batch, queries])
        assert context.shape == (*rows, value)
        assert looks.shape == (*rows, keys)
        assert context.isfinite().all()
        hidden = ~may_look[0] if single else ~may_look
        assert (looks[..., hidden] == 0).all()
        total = looks.sum(-1)
        assert torch.isclose(total, torch.ones(()), atol=1e-5).logical_or(total == 0).all()
    for copy, x in zip(copies, (q, k, v, may_look), strict=True):
        assert torch.equal(copy, x), "inputs must stay as they are"


@pytest.mark.parametrize(("name", "backend"), WAYS)
def test_permuting_keys_with_their_values_changes_nothing(name, backend):
    score = build_score(name)
    queries, keys, values = make_vectors()
    order = torch.randperm(KEYS)
    plain = look(queries, keys, values, score=score, backend=backend)
    moved = look(queries, keys[..., order, :], values[..., order, :], score=score, backend=backend)
    torch.testing.assert_close(moved.context, plain.context)
    torch.testing.assert_close(moved.weights, plain.weights[..., order])


def test_a_single_query_loses_its_axis():
    queries, keys = torch.randn(10, 256), torch.randn(10, 12, 256)
    for score in ("dot", "cosine"):
        context, looks = look(queries, keys, score=score)
        assert (context.shape, looks.shape) == ((10, 256), (10, 12))
        kept = look(queries[:, None], keys, score=score)
        assert (kept.context.shape, kept.weights.shape) == ((10, 1, 256), (10, 1, 12))
        torch.testing.assert_close(context, kept.context[:, 0])


def test_any_function_is_a_score():
    queries, keys, values = make_vectors()

    def nearness(queries, keys):
        return -torch.cdist(queries, keys, p=1)

    looked = look(queries, keys, values, score=nearness)
    expected = (-torch.cdist(queries, keys, p=1)).softmax(-1)
    torch.testing.assert_close(looked.weights, expected)
    torch.testing.assert_close(looked.context, expected @ values)


def test_queries_alone_look_at_themselves():
    tokens = torch.tensor(
        [[1, 0, 1, 0], [0, 1, 0, 1], [1, 1, 0, 0], [0, 0, 1, 1], [1, 0.5, 0.5, 0]]
    )
    context, looks = look(tokens)
    scores = ScaledDot()(tokens, tokens)
    torch.testing.assert_close(scores[0], torch.tensor([1, 0, 0.5, 0.5, 0.75]))
    first = torch.tensor([0.2976, 0.1095, 0.1805, 0.1805, 0.2318])
    second = torch.tensor([0.1205, 0.3275, 0.1986, 0.1986, 0.1547])
    torch.testing.assert_close(looks[:2], torch.stack([first, second]), rtol=0, atol=6e-5)
    torch.testing.assert_close(context, looks @ tokens)
    assert torch.equal(weights(tokens, mask=causal())[0], torch.tensor([1.0, 0, 0, 0, 0]))


def test_equal_keys_share_the_look_whatever_the_additive_weights():
    queries, keys = torch.randn(2, 1, 20), torch.ones(2, 10, 2)
    values = torch.arange(40.0).reshape(1, 10, 4).repeat(2, 1, 1)
    context = attend(queries, keys, values, score=Additive(20, 2, 8), mask=lengths([2, 6]))
    torch.testing.assert_close(context[:, 0], torch.tensor([[2.0, 3, 4, 5], [10, 11, 12, 13]]))


def test_decoder_states_look_at_encoder_states():
    context, looks = look(torch.randn(1, 3, 4), torch.randn(1, 5, 4))
    assert (context.shape, looks.shape) == ((1, 3, 4), (*(1, 5, 4)[:1], 3, 5))


def test_masked_softmax_leaves_nothing_beyond_the_lengths():
    states = torch.rand(2, 2, 4)
    looks = weights(states, torch.rand(2, 4, 4), mask=lengths([2, 3]))
    assert (looks[0, :, 2:] == 0).all()
    assert (looks[1, :, 3:] == 0).all()
    assert (looks[0, :, :2] > 0).all()
    torch.testing.assert_close(looks.sum(-1), torch.ones(2, 2))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_autocast_gives_what_rounding_by_hand_gives(dtype):
    queries, keys, values = make_vectors()
    with torch.autocast("cpu", dtype=dtype):
        context = attend(queries, keys, values)
    by_hand = attend(*(x.to(dtype) for x in (queries, keys, values)))
    torch.testing.assert_close(context.float(), by_hand.float(), rtol=0, atol=2e-2)


@pytest.mark.parametrize("score", ["dot", "scaled_dot", "cosine", "bilinear", "additive"])
def test_autocast_does_not_round_scores(score):
    queries, keys, values = (3 * torch.randn(2, 4, 9, 12) for _ in range(3))
    compare = make_score(score, (12, 12)) if score != "additive" else TanhSum(12)
    rounded = [x.bfloat16() for x in (queries, keys, values)]
    plain = weights(*rounded[:2], score=compare), attend(*rounded, score=compare, backend="dense")
    with torch.autocast("cpu", dtype=torch.bfloat16):
        cast = (
            weights(*rounded[:2], score=compare),
            attend(*rounded, score=compare, backend="dense"),
        )
    for one, other in zip(plain, cast, strict=True):
        assert torch.equal(one, other)


class PerHead(nn.Module):
    """A score of the caller's that tells heads apart, and folds."""

    def __init__(self, heads):
        super().__init__()
        self.by_head = torch.linspace(0.1, 3, heads)[:, None, None]

    def forward(self, queries, keys):
        return (queries * self.by_head) @ keys.mT

    def fold(self, queries, keys):
        return queries * self.by_head, keys


@pytest.mark.parametrize("length", [7, 40])
def test_a_score_that_tells_heads_apart_has_the_weights_of_its_context(length, monkeypatch):
    monkeypatch.setattr(sys.modules["regard.attention.functional"], "STREAM_FROM", 4 * 20 * 20)
    words = torch.randn(1, 4, length, 8)
    with torch.no_grad():
        context, looks = look(words, score=PerHead(4))
    torch.testing.assert_close(context, looks @ words)


@pytest.mark.parametrize("backend", ["blockwise", "dense"])
def test_scores_that_are_not_one_for_each_pair_are_refused(backend):
    by_head = torch.linspace(0.1, 3, 4)[:, None, None]
    with pytest.raises(ValueError, match=r"score must give .*\(2, 1, 12, 5\).*is \(2, 4, 12, 5\)"):
        attend(
            torch.randn(2, 4, 3, 8),
            torch.randn(2, 1, 5, 8),
            score=lambda queries, keys: (queries * by_head) @ keys.mT,
            backend=backend,
        )
    with pytest.raises(ValueError, match=r"score must give .*, but the shape is \(2, 5\)"):
        attend(torch.randn(2, 3, 8), torch.randn(2, 5, 8), score=lambda q, k: k.norm(dim=-1))


@pytest.mark.parametrize("backend", ["blockwise", "dense"])
def test_scores_of_keys_alone_or_of_queries_alone_hold_for_all(backend):
    queries, keys, values = make_vectors()
    by_keys = attend(queries, keys, values, score=lambda q, k: k.norm(dim=-1)[..., None, :])
    by_all = attend(
        queries,
        keys,
        values,
        score=lambda q, k: k.norm(dim=-1)[..., None, :] + 0 * (q @ k.mT),
        backend=backend,
    )
    torch.testing.assert_close(by_keys, by_all)
    alike = attend(
        queries, keys, values, score=lambda q, k: q.sum(-1, keepdim=True), backend=backend
    )
    torch.testing.assert_close(alike, values.mean(-2, keepdim=True).expand_as(alike))


class ByKey(nn.Module):
    """A score of the caller's that is the same for all queries, and folds."""

    def forward(self, queries, keys):
        return keys.sum(-1)[..., None, :]

    def fold(self, queries, keys):
        return torch.ones_like(queries), keys


def test_a_score_that_folds_may_give_one_row_for_all_queries():
    queries, keys, values = make_vectors()
    with torch.no_grad():
        context, looks = look(queries, keys, values, score=ByKey())
    torch.testing.assert_close(context, looks @ values)


@pytest.mark.parametrize("score", [Gaussian(), Cosine(0.01)], ids=["gaussian", "cosine"])
def test_autocast_does_not_round_what_a_score_folds_in_float32(score):
    places = 4 * torch.randn(2, 1, 7, 32)
    keys = torch.cat([places, places + 0.1 * torch.randn(2, 1, 7, 32)], dim=-2)
    queries, values = places + 0.1 * torch.randn(2, 1, 7, 32), torch.randn(2, 1, 14, 3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        cast = attend(queries, keys, values, score=score)
    plain = attend(queries, keys, values, score=score)
    torch.testing.assert_close(cast.float(), plain, rtol=0, atol=1e-2)


@pytest.mark.parametrize("scale", [-1.0, 0.0])
def test_a_scale_that_turns_scores_round_hides_what_is_hidden(scale):
    words = torch.randn(2, 5, 8)
    score = ScaledDot(scale)
    context = attend(words, score=score, mask=causal())
    torch.testing.assert_close(context, attend(words, score=score, mask=causal(), backend="dense"))


def test_a_float32_bias_is_not_rounded_to_half_precision():
    queries, keys, values = (torch.randn(2, 2, 5, 8).bfloat16() for _ in range(3))
    bias = 1000 + torch.randn(5, 5)
    exact = attend(*(x.double() for x in (queries, keys, values)), bias=bias.double())
    found = attend(queries, keys, values, bias=bias)
    torch.testing.assert_close(found.double(), exact, rtol=0, atol=0.03)


def test_what_has_no_numbers_has_shapes():
    words = torch.empty(2, 5, 4, device="meta")
    assert weights(words).shape == (2, 5, 5)
    assert attend(words, backend="dense").shape == (2, 5, 4)


REFUSALS = [
    ({"score": 5}, TypeError, "score must be a name, a module or a function .* is a int"),
    ({"score": Gaussian}, TypeError, r"it is a class; Gaussian\(\) would do"),
    ({"offset": -1}, ValueError, "offset must be 0 or more, a key's number, but it is -1"),
    ({"queries": torch.ones(3)}, ValueError, "as many axes, at least two"),
    ({"queries": torch.ones(2, 2, 2, 5, 12)}, ValueError, r"shapes are \(2, 2, 2, 5, 12\)"),
    ({"queries": torch.ones(2, 5, 8)}, ValueError, r"equal widths for ScaledDot.*8 and 12"),
    ({"values": torch.ones(2, 6, 3)}, ValueError, r"one row per key, \(\*batch, 7,.*\(2, 6, 3\)"),
    ({"values": torch.ones(7, 3)}, ValueError, "one row per key"),
    ({"queries": torch.ones(3, 5, 12)}, ValueError, "batch axes.*must agree"),
    ({"queries": torch.ones(2, 5, 12).long()}, TypeError, r"queries\.float\(\) would do"),
    ({"values": torch.ones(2, 7, 3).double()}, TypeError, "one dtype.*float64"),
    ({"keys": [1.0]}, TypeError, "keys must be a tensor, but it is a list"),
    ({"mask": torch.ones(5, 7)}, TypeError, "mask must be boolean.*bias="),
    ({"mask": torch.ones(5, 7).long()}, TypeError, r"mask\.bool\(\) would do"),
    ({"mask": [[True]]}, TypeError, "mask must be a mask or a boolean tensor, but it is a list"),
    ({"mask": torch.ones(7, 5).bool()}, ValueError, r"broadcast to \(2, 5, 7\).*\(7, 5\)"),
    ({"mask": torch.ones(2, 3, 5, 7).bool()}, ValueError, "mask must have 2 or 3 axes"),
    ({"mask": lengths([1, 2, 3])}, ValueError, r"lengths must have the shape \(2,\).*\(3,\)"),
    ({"mask": lengths([1, 8])}, ValueError, "at most 7, the number of keys, but one is 8"),
    ({"mask": causal()}, ValueError, "5 queries and 7 keys; align='first'"),
    ({"bias": torch.ones(5, 7).bool()}, TypeError, "booleans go in as mask="),
    ({"bias": torch.ones(5, 6)}, ValueError, r"bias must broadcast to \(2, 5, 7\).*\(5, 6\)"),
    ({"dropout": 1.5}, ValueError, "dropout must be a share from 0 to 1, but it is 1.5"),
    ({"backend": "flash"}, ValueError, "path must be one of fused, blockwise, dense.*'flash'"),
    ({"backend": "fused", "score": ScaledDot(cap=1.0)}, ValueError, "ScaledDot does not fold"),
    ({"score": "additive"}, ValueError, r"weights to learn.*regard\.Additive\(query_width"),
    ({"score": Bilinear(4, 5)}, ValueError, "made for queries of width 4 and keys of width 5"),
]


@pytest.mark.parametrize(("changed", "error", "words"), REFUSALS, ids=lambda x: str(x)[:40])
def test_what_does_not_fit_is_refused_with_a_sentence(changed, error, words, unchecked):
    call = {
        "queries": torch.ones(2, 5, 12),
        "keys": torch.ones(2, 7, 12),
        "values": torch.ones(2, 7, 3),
    }
    call |= changed
    with pytest.raises(error, match=words):
        attend(call.pop("queries"), call.pop("keys"), call.pop("values"), **call)


def test_large_jobs_that_do_not_fold_are_blockwise(monkeypatch):
    from regard.attention import functional as door  # the function; its module holds the limit

    module = __import__("sys").modules[door.__module__]
    taken = []
    for backend in BACKENDS:
        run = module._ATTEND[backend]
        monkeypatch.setitem(
            module._ATTEND,
            backend,
            lambda *a, backend=backend, run=run: taken.append(backend) or run(*a),
        )
    monkeypatch.setattr(module, "STREAM_FROM", BATCH * HEADS * QUERIES * KEYS)
    queries, keys, values = make_vectors()
    for score in ("scaled_dot", ScaledDot(cap=2.0)):
        attend(queries, keys, values, score=score)
    attend(queries[..., :-1, :], keys, values, score=ScaledDot(cap=2.0))
    assert taken == ["fused", "blockwise", "dense"]


@pytest.mark.parametrize("backend", ["fused", "dense"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float16], ids=str)
def test_a_bias_of_another_precision_is_added_in_that_of_the_scores(dtype, backend):
    vectors, bias = make_vectors(), torch.randn(QUERIES, KEYS).to(dtype)
    score = "dot" if backend == "fused" else lambda queries, keys: queries @ keys.mT
    expected = attend(*vectors, score=score, bias=bias.float())
    assert torch.equal(attend(*vectors, score=score, bias=bias), expected)
    context, looks = look(*vectors, score=score, bias=bias)
    torch.testing.assert_close(context, expected)
    assert looks.dtype == torch.float32
