"""`regard.edit` changes what it names, exactly, and nothing else."""

import copy

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention
from torch.utils.checkpoint import checkpoint

import regard
from regard.config import ModelConfig
from regard.interventions import editable, head_contexts, reference_means
from regard.models import build

HEADS, WIDTH = 3, 12


class Attention(nn.Module):
    """Self-attention in one of the ways in which models write it."""

    def __init__(self, style):
        super().__init__()
        self.style = style
        self.project, self.output = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        rows = self.project(x).chunk(3, -1)
        queries, keys, values = (r.unflatten(-1, (HEADS, -1)).transpose(1, 2) for r in rows)
        return self.output(self.attend(queries, keys, values).transpose(1, 2).flatten(2))

    def attend(self, queries, keys, values):
        if self.style == "sdpa":
            return scaled_dot_product_attention(queries, keys, values)
        if self.style == "causal":
            return scaled_dot_product_attention(queries, keys, values, is_causal=True)
        if self.style == "flex":
            from torch.nn.attention.flex_attention import flex_attention

            # without gradients, which it has only where it is compiled
            return flex_attention(*(rows.detach() for rows in (queries, keys, values)))
        if self.style == "regard":
            return regard.attend(queries, keys, values)
        scores = queries @ keys.mT / queries.shape[-1] ** 0.5
        if self.style == "einsum":
            weights = scores.softmax(-1)
            return torch.einsum("bhqk,bhkd->bqhd", weights, values).transpose(1, 2)
        if self.style == "folded":
            weights = scores.flatten(0, 1).softmax(-1)
            return torch.bmm(weights, values.flatten(0, 1)).unflatten(0, (-1, HEADS))
        return scores.softmax(-1) @ values


def context_of(module, x):
    """Return the heads' contexts (batch, head, query, value), the input of the output layer."""
    seen = []
    hook = module.output.register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    module(x)
    hook.remove()
    return seen[0].unflatten(-1, (HEADS, -1)).transpose(1, 2)


STYLES = ["sdpa", "causal", "flex", "regard", "matmul", "einsum", "folded"]
pytestmark = pytest.mark.filterwarnings("ignore:flex_attention called without")


@pytest.fixture(params=STYLES)
def module(request):
    torch.manual_seed(3)
    return Attention(request.param)


@pytest.fixture
def x():
    return torch.randn(2, 5, WIDTH, generator=torch.Generator().manual_seed(5))


def weights_of(module, x):
    with regard.watch(module) as capture:
        module(x)
    return capture[0].weights


def values_of(module, x):
    return module.project(x).chunk(3, -1)[2].unflatten(-1, (HEADS, -1)).transpose(1, 2)


def test_zeroed_head_has_zero_context_and_the_others_are_bit_identical(module, x):
    before = context_of(module, x)
    with regard.edit(module) as edits:
        edits["*"].heads([1]).ablate()
        after = context_of(module, x)
    assert torch.equal(after[:, 1], torch.zeros_like(after[:, 1]))
    assert torch.equal(after[:, [0, 2]], before[:, [0, 2]])
    assert torch.equal(context_of(module, x), before)


def test_mean_ablation_replaces_rows_by_their_mean(module, x):
    before = context_of(module, x)
    with regard.edit(module) as edits:
        edits["*"].heads(2).ablate("mean")
        after = context_of(module, x)
    torch.testing.assert_close(after[:, 2], before[:, 2].mean(1, keepdim=True).expand(-1, 5, -1))
    assert torch.equal(after[:, :2], before[:, :2])


def test_mean_over_a_reference_batch(module, x):
    reference = torch.randn(4, 7, WIDTH)
    means = reference_means(module, [reference[:2], reference[2:]])
    expected = context_of(module, reference).mean((0, 2))
    with regard.edit(module) as edits:
        edits["*"].heads([0]).ablate("mean", reference=means)
        after = context_of(module, x)
    torch.testing.assert_close(after[:, 0], expected[0].expand(2, 5, -1))


@pytest.mark.parametrize("renormalise", [True, False])
def test_blocked_edges_have_no_weight(module, x, renormalise):
    weights = weights_of(module, x)
    keep = torch.ones(5, 5)
    keep[3:, 1] = 0
    expected = weights * keep
    expected = expected / expected.sum(-1, keepdim=True) if renormalise else expected
    with regard.edit(module) as edits, regard.watch(module) as capture:
        edits["*"].block(queries=[3, 4], keys=[1], renormalise=renormalise)
        context = context_of(module, x)
    torch.testing.assert_close(capture[0].weights, expected)
    torch.testing.assert_close(context, expected @ values_of(module, x))


def test_fully_blocked_query_becomes_zeros(module, x):
    with regard.edit(module) as edits:
        edits["*"].block(queries=[2])
        context = context_of(module, x)
    assert not context[:, :, 2].any() and context[:, :, 3].any() and not context.isnan().any()


def test_forced_patterns(module, x):
    values = values_of(module, x)
    with regard.edit(module) as edits:
        edits["*"].heads(0).set_weights("previous")
        edits["*"].heads(1).set_weights("first")
        edits["*"].heads(2).set_weights("uniform")
        context = context_of(module, x)
    torch.testing.assert_close(context[:, 0], values[:, 0, [0, 0, 1, 2, 3]])
    torch.testing.assert_close(context[:, 1], values[:, 1, [0] * 5])
    visible = (weights_of(module, x)[:, 2] > 0).float()
    torch.testing.assert_close(context[:, 2], visible / visible.sum(-1, True) @ values[:, 2])


def test_contexts_of_another_run_are_patched_in(module, x):
    other = x.flip(1) * 2
    contexts = head_contexts(module, other)["Attention"]
    torch.testing.assert_close(contexts, context_of(module, other))
    before = context_of(module, x)
    with regard.edit(module) as edits:
        edits["*"].heads([0, 2]).set_context(contexts)
        edits["*"].heads(1).set_context(lambda context: context.flip(2))
        edited = context_of(module, x)
    assert edited[:, [0, 2]].equal(contexts[:, [0, 2]])
    assert edited[:, 1].equal(before[:, 1].flip(1))


def test_contexts_of_another_shape_are_refused(module, x):
    message = r"set_context must give Attention contexts \(batch, head, query, value\) of the shape"
    with pytest.raises(regard.RegardError, match=message), regard.edit(module) as edits:
        edits["*"].set_context(torch.zeros(1, 2, 1, 4))
        module(x)


def test_steps_take_their_rows_of_contexts(x):
    """The context of a whole text, in a model that reads it token by token with a cache."""

    class WithCache(Attention):
        cache = None

        def attend(self, queries, keys, values):
            if self.cache is not None:
                keys, values = (
                    torch.cat(y, 2) for y in zip(self.cache, (keys, values), strict=True)
                )
            self.cache = keys, values
            return scaled_dot_product_attention(queries, keys, values)

    model, contexts = WithCache("cache"), torch.randn(2, HEADS, 5, WIDTH // HEADS)
    with regard.edit(model) as edits:
        edits["*"].set_context(contexts)
        steps = [context_of(model, x[:, t : t + 1]) for t in range(5)]
    assert torch.cat(steps, 2).equal(contexts)


def test_weights_of_another_run_are_patched_in(module, x):
    other = torch.randn(2, 5, WIDTH)
    weights = weights_of(module, other)
    with regard.edit(module) as edits:
        edits["*"].set_weights(weights)
        context = context_of(module, x)
    torch.testing.assert_close(context, weights @ values_of(module, x))


def test_temperature_divides_the_scores(module, x):
    weights = weights_of(module, x)
    expected = weights.sqrt() / weights.sqrt().sum(-1, keepdim=True)
    with regard.edit(module) as edits:
        edits["*"].scale(temperature=2.0)
        context = context_of(module, x)
    torch.testing.assert_close(context, expected @ values_of(module, x))


def test_edits_compose_in_order_and_over_nested_contexts(module, x):
    weights = weights_of(module, x)
    blocked = weights.clone()
    blocked[..., 0] = 0
    expected = (blocked / blocked.sum(-1, keepdim=True).clamp_min(1e-9)).sqrt()
    expected = expected / expected.sum(-1, keepdim=True).clamp_min(1e-9)
    with regard.watch(module) as capture, regard.edit(module) as outer:
        outer["*"].block(keys=[0])
        with regard.edit(module) as inner:
            inner["*"].scale(temperature=2.0)
            inner["*"].heads(1).ablate()
            context_of(module, x)
    torch.testing.assert_close(capture[0].weights[:, [0, 2]], expected[:, [0, 2]])
    assert not capture[0].weights[:, 1].any()


def test_gradients_flow_through_edited_attention(module, x):
    """The gradient of the model's own attention equals that of its weights set to themselves."""
    if module.style == "flex":
        pytest.skip("flex attention on CPU has gradients only where it is compiled")
    plain = torch.autograd.grad(module(x).square().sum(), list(module.parameters()))
    with regard.edit(module) as edits:
        edits["*"].scale(temperature=1.0)
        edited = torch.autograd.grad(module(x).square().sum(), list(module.parameters()))
    torch.testing.assert_close(edited, plain, rtol=1e-4, atol=1e-5)


def test_model_is_untouched(module, x):
    attributes, state = dict(vars(module)), copy.deepcopy(module.state_dict())
    with regard.edit(module) as edits:
        edits["*"].ablate()
        module(x)
    assert vars(module) == attributes
    assert all(torch.equal(state[name], value) for name, value in module.state_dict().items())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_and_autocast(module, x, dtype):
    if module.style == "flex" and dtype == torch.float16:
        pytest.skip("flex attention on CPU has no float16")
    with torch.no_grad(), torch.autocast("cpu", dtype=dtype):
        before = context_of(module, x)
        with regard.edit(module) as edits:
            edits["*"].heads(0).ablate()
            edits["*"].heads(1).scale(temperature=1.0)
            after = context_of(module, x)
    assert after.dtype == before.dtype
    assert not after[:, 0].any() and torch.equal(after[:, 2], before[:, 2])
    torch.testing.assert_close(after[:, 1].float(), before[:, 1].float(), rtol=0.02, atol=0.02)


def test_other_modules_are_bit_identical(x):
    model = nn.ModuleDict({"left": Attention("sdpa"), "right": Attention("matmul")})
    expected = model["left"](x)
    with regard.edit(model) as edits:
        edits["right"].ablate()
        assert torch.equal(model["left"](x), expected)
        model["right"](x)


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
def test_torch_transformer_layers():
    torch.manual_seed(0)
    model = nn.Transformer(WIDTH, HEADS, 2, 2, 16, dropout=0.0, batch_first=True).eval()
    source, target = torch.randn(2, 7, WIDTH), torch.randn(2, 5, WIDTH)
    with regard.watch(model) as before:
        model(source, target)
    with regard.watch(model) as after, regard.edit(model) as edits:
        edits["decoder.layers.*.multihead_attn"].heads([2]).ablate()
        model(source, target)
    cross = [n for n, record in enumerate(before) if "multihead" in record.name]
    assert len(cross) == 2 and len(after) == len(before)
    assert not any(after[n].weights[:, 2].any() for n in cross)
    assert torch.equal(after[cross[0]].weights[:, :2], before[cross[0]].weights[:, :2])


def test_errors_name_what_exists(x):
    model = nn.ModuleDict({"encoder": Attention("sdpa"), "head": nn.Linear(WIDTH, 2)})
    misspelled = pytest.raises(regard.RegardError, match=r"'encodr'\. Did you mean 'encoder'\?")
    with misspelled, regard.edit(model) as edits:
        edits["encodr"].ablate()
    cases = {
        "no attention was called there.*Attention was called in: encoder": lambda e: e[
            "head"
        ].ablate(),
        "matched no head 7: encoder has 3 heads": lambda e: e["encoder"].heads([0, 7]).ablate(),
        "no key at position 9": lambda e: e["encoder"].block(keys=[0, 9]),
        "no query at position 5": lambda e: e["encoder"].block(queries=[5], keys=[0]),
    }
    for message, change in cases.items():
        with pytest.raises(regard.RegardError, match=message), regard.edit(model) as edits:
            change(edits)
            model["encoder"](x)
    unused = pytest.raises(regard.RegardError, match="no attention was seen")
    with unused, regard.edit(model) as edits:
        edits["encoder"].ablate()


def test_names_with_brackets_are_names_first(x):
    model = nn.ModuleDict({"layers[0]": Attention("sdpa")})
    with regard.edit(model) as edits, regard.watch(model, modules="layers[0]") as capture:
        edits["layers[0]"].ablate()
        assert not context_of(model["layers[0]"], x).any()
    assert not capture.weights("layers[0]").any()


class LinearAttention(Attention):
    """Linear attention, which has no weights of pairs."""

    def attend(self, queries, keys, values):
        return queries.softmax(-1) @ (keys.softmax(-2).mT @ values)


def test_error_names_a_softmax_that_is_no_attention(x):
    message = (
        r"changed nothing: the softmax in LinearAttention \(test_edit.py:\d+\) is no attention"
    )
    model = LinearAttention("linear")
    with pytest.raises(regard.RegardError, match=message), regard.edit(model) as edits:
        edits["*"].ablate()
        model(x)


def test_error_of_an_alias_names_the_module(x):
    model = nn.Sequential(Attention("sdpa"))
    model.append(model[0])
    with (
        pytest.raises(regard.RegardError, match="'1' is another name of '0': an edit of that"),
        regard.edit(model) as edits,
    ):
        edits["1"].ablate()


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
@pytest.mark.parametrize("pattern", ["scripted", "scripted.0", "scripted.*"])
def test_error_names_torchscript_as_the_cause(x, pattern):
    layer = nn.Sequential(Attention("sdpa"), nn.Linear(WIDTH, WIDTH))
    model = nn.Sequential()
    model.add_module("plain", Attention("sdpa"))
    model.add_module("scripted", torch.jit.trace(layer, x))
    named = pytest.raises(regard.RegardError, match=r"scripted is TorchScript, whose functions")
    with named, regard.edit(model) as edits:
        edits[pattern].ablate()
        model(x)
    other = pytest.raises(regard.RegardError, match="no attention was seen inside")
    with other, regard.edit(model) as edits:
        edits["plain"].ablate()


def test_error_of_the_model_is_not_replaced(x):
    module = Attention("sdpa")
    with pytest.raises(KeyError, match="mine"), regard.edit(module) as edits:
        edits["*"].ablate()
        raise KeyError("mine")


@pytest.mark.parametrize(
    "several", [[3, 4], (3, 4), {3, 4}, range(3, 5), np.array([3, 4]), torch.tensor([3, 4])]
)
def test_positions_may_be_any_collection_of_integers(several):
    with (
        regard.watch(model := regard.MultiHeadAttention(12, heads=3)) as capture,
        regard.edit(model) as edits,
    ):
        edits["*"].block(queries=several, keys=several)
        model(torch.randn(2, 6, 12))
    assert (capture[0].weights[:, :, 3:5, 3:5] == 0).all()
    assert (capture[0].weights[:, :, :3] > 0).all()


@pytest.mark.parametrize("one", [2, np.int64(2), torch.tensor(2)])
def test_head_and_position_may_be_a_single_integer(one):
    with (
        regard.watch(model := regard.MultiHeadAttention(12, heads=3)) as capture,
        regard.edit(model) as edits,
    ):
        edits["*"].heads(one).block(keys=one)
        model(torch.randn(2, 6, 12))
    weights = capture[0].weights
    assert (weights[:, 2, :, 2] == 0).all() and (weights[:, :2] > 0).all()


@pytest.mark.parametrize("wrong", ["1", [0.5], torch.tensor([True, False]), [None]])
def test_heads_that_are_no_integers_are_refused(wrong, unchecked):
    with (
        pytest.raises(TypeError, match="heads must be integers, but one is a"),
        regard.edit(regard.MultiHeadAttention(12, heads=3)) as edits,
    ):
        edits["*"].heads(wrong)


def test_weights_that_are_no_tensor_are_refused(unchecked):
    with (
        pytest.raises(
            TypeError, match=r"pattern must be a name, a tensor .* but it is of type list"
        ),
        regard.edit(regard.MultiHeadAttention(12, heads=3)) as edits,
    ):
        edits["*"].set_weights([[1.0]])


class Written(Attention):
    """Attention whose weights become others after, or instead of, the softmax."""

    def __init__(self, weights_of):
        super().__init__("written")
        self.weights_of = weights_of

    def attend(self, queries, keys, values):
        return self.weights_of(queries @ keys.mT / queries.shape[-1] ** 0.5) @ values


def with_sink(scores, keep=None):
    """Return a softmax in which a part of each row goes to no key, as in gpt-oss."""
    sinks = torch.tensor([0.5, 1.0, -1.0]).view(1, HEADS, 1, 1).expand(*scores.shape[:3], 1)
    scores = scores if keep is None else scores.masked_fill(~keep, -torch.inf)
    return torch.cat([scores, sinks], dim=-1).softmax(-1)[..., :-1]


def gated(scores, keep=None):
    scores = scores if keep is None else scores.masked_fill(~keep, -torch.inf)
    return scores.softmax(-1) * torch.tensor([0.2, 0.5, 0.9]).view(1, HEADS, 1, 1)


def sigmoid(scores, keep=None):
    weights = scores.sigmoid()
    return weights if keep is None else weights * keep


@pytest.mark.parametrize("weights_of", [with_sink, gated, sigmoid])
def test_blocked_edges_are_as_if_the_model_had_masked_them(weights_of, x):
    keep = torch.ones(5, 5, dtype=torch.bool)
    keep[2:, 1] = False
    model = Written(weights_of)
    with regard.edit(model) as edits:
        edits["*"].block(queries=[2, 3, 4], keys=[1])
        edited = context_of(model, x)
    model.weights_of = lambda scores: weights_of(scores, keep)
    torch.testing.assert_close(edited, context_of(model, x))


def test_temperature_divides_the_score_of_a_sink(x):
    model = Written(with_sink)
    with regard.edit(model) as edits:
        edits["*"].scale(temperature=2.0)
        edited = context_of(model, x)
    sinks = torch.tensor([0.25, 0.5, -0.5]).view(1, HEADS, 1, 1).expand(2, HEADS, 5, 1)
    model.weights_of = lambda scores: torch.cat([scores / 2, sinks], -1).softmax(-1)[..., :-1]
    torch.testing.assert_close(edited, context_of(model, x))


MIXING = torch.tensor([[1.0, -0.5, 0.2], [0.3, 1.0, -0.8], [-0.4, 0.1, 1.0]])


@pytest.mark.parametrize(
    ("weights_of", "made_by"),
    [
        (lambda s: torch.einsum("bhqk,hg->bgqk", s.softmax(-1), MIXING), "softmax, then matmul"),
        (sigmoid, "sigmoid"),
    ],
)
def test_temperature_of_what_is_no_softmax_is_refused(weights_of, made_by, x):
    model = Written(weights_of)
    refused = pytest.raises(regard.RegardError, match=f"but those of Written are made by {made_by}")
    with refused, regard.edit(model) as edits:
        edits["*"].scale(temperature=2.0)
        model(x)


class ChunksOfQueries(Attention):
    """Attention of two queries at a time, as code that saves memory computes it."""

    def __init__(self):
        super().__init__("chunks")

    def attend(self, queries, keys, values):
        chunks = [scaled_dot_product_attention(q, keys, values) for q in queries.split(2, dim=2)]
        return torch.cat(chunks, dim=2)


def test_positions_count_over_chunks_of_queries(x):
    chunks, whole = ChunksOfQueries(), Attention("sdpa")
    chunks.load_state_dict(whole.state_dict())
    contexts = []
    for model in (chunks, whole):
        with regard.edit(model) as edits:
            edits["*"].heads(1).block(queries=[3, 4], keys=[0, 2])
            edits["*"].heads(2).set_weights("previous")
            contexts.append(context_of(model, x))
    torch.testing.assert_close(*contexts)


class AddedInPlace(Attention):
    """The product with values is added to a tensor, in place or not."""

    def attend(self, queries, keys, values):
        weights = (queries @ keys.mT).softmax(-1).flatten(0, 1)
        start = torch.ones_like(values).flatten(0, 1)
        add = start.baddbmm_ if self.style == "in place" else start.baddbmm
        return add(weights, values.flatten(0, 1)).unflatten(0, (-1, HEADS))


def test_context_that_is_added_to_a_tensor_is_edited_unless_in_place(x):
    model = AddedInPlace("new tensor")
    with regard.edit(model) as edits:
        edits["*"].heads(1).ablate()
        assert (context_of(model, x)[:, 1] == 1).all()
    model = AddedInPlace("in place")
    message = r"in place \(baddbmm_\).*baddbmm, which"
    with pytest.raises(regard.RegardError, match=message), regard.edit(model) as edits:
        edits["*"].heads(1).ablate()
        model(x)


class SharedLayer(nn.Module):
    """One attention module that runs three times in a pass, with a cache for each."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.project = nn.Linear(WIDTH, 3 * WIDTH)

    def forward(self, x, caches):
        for n in range(3):
            rows = self.project(x).chunk(3, -1)
            q, k, v = (r.unflatten(-1, (HEADS, -1)).transpose(1, 2) for r in rows)
            past = caches.get(n)
            if past is not None:
                k, v = (torch.cat(pair, dim=2) for pair in zip(past, (k, v), strict=True))
            caches[n] = (k, v)
            mask = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).tril(
                k.shape[2] - q.shape[2]
            )
            context = scaled_dot_product_attention(q, k, v, attn_mask=mask)
            x = x + context.transpose(1, 2).flatten(2)
        return x


def test_steps_of_layers_that_share_a_module_have_positions(x):
    model = SharedLayer()
    with regard.edit(model) as edits:
        edits["*"].heads(1).block(queries=[3, 4], keys=[0, 2])
        edits["*"].heads(2).set_weights("previous")
        full = model(x, {})
        caches = {}
        steps = [model(x[:, :2], caches), *(model(x[:, n : n + 1], caches) for n in (2, 3, 4))]
    torch.testing.assert_close(torch.cat(steps, dim=1), full)


class Windows(Attention):
    """Attention within windows of three positions."""

    def __init__(self):
        super().__init__("sdpa")

    def forward(self, x):
        windows = x.unflatten(1, (-1, 3)).flatten(0, 1)
        return super().forward(windows).view(x.shape)


def test_weights_of_windows_are_patched_in():
    model, one, other = Windows(), torch.randn(2, 6, WIDTH), torch.randn(2, 6, WIDTH)
    with regard.watch(model) as capture:
        model(other)
    assert capture[0].weights.shape == (2, 2, HEADS, 3, 3)
    with regard.edit(model) as edits, regard.watch(model) as edited:
        edits["*"].heads([0, 2]).set_weights(capture[0].weights)
        model(one)
    torch.testing.assert_close(edited[0].weights[:, :, ::2], capture[0].weights[:, :, ::2])
    assert not torch.allclose(edited[0].weights[:, :, 1], capture[0].weights[:, :, 1])


def test_weights_of_another_shape_are_refused(x):
    model = Attention("sdpa")
    refused = pytest.raises(regard.RegardError, match=r"shape \(2, 3, 5, 5\), but gave \(2, 3, 5\)")
    with refused, regard.edit(model) as edits:
        edits["*"].set_weights(torch.rand(2, 3, 5))
        model(x)


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_checkpointed_layers_are_edited_again_in_the_backward_pass(module, x, use_reentrant):
    if module.style == "flex":
        pytest.skip("flex attention on CPU has gradients only where it is compiled")
    gradients = []
    for run in (module, lambda rows: checkpoint(module, rows, use_reentrant=use_reentrant)):
        rows = x.clone().requires_grad_()
        with regard.edit(module) as edits:
            edits["*"].heads(1).ablate()
            edits["*"].block(keys=[2])
            run(rows).square().sum().backward()
        gradients.append(rows.grad)
    assert torch.equal(*gradients)


def test_factors_must_have_the_module(x):
    model = Attention("sdpa")
    refused = pytest.raises(regard.RegardError, match="factors has none of Attention; it has other")
    with refused, regard.edit(model) as edits:
        edits["*"].gate({"other": torch.ones(HEADS)})
        model(x)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s.set_weights(lambda weights: None), "set_weights returns must be a tensor"),
        (lambda s: s.gate("large"), "factors must be a number, or a mapping .* of type str"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_wrong_types_are_refused(change, message, x):
    model = Attention("sdpa")
    with pytest.raises(TypeError, match=message), regard.edit(model) as edits:
        change(edits["*"])
        model(x)


@pytest.mark.parametrize("score", ["additive", "scaled dot"])
def test_steps_of_a_recurrent_decoder_have_positions(score):
    settings = ModelConfig(width=12, layers=1, kind="recurrent", score=score)
    model = build(settings, 9).eval()
    source, target = torch.randint(4, 9, (2, 6)), torch.randint(4, 9, (2, 5))
    with regard.watch(model) as before:
        model(source, torch.tensor([6, 6]), target)
    with regard.watch(model) as after, regard.edit(model) as edits:
        edits["*"].block(queries=[2, 4], keys=[0, 3])
        for _ in range(2):
            model(source, torch.tensor([6, 6]), target)
    for record in after:
        assert not record.weights[:, :, [2, 4]][..., [0, 3]].any()
        assert torch.equal(record.weights[:, :, :2], before[0].weights[:, :, :2])
        assert (record.weights[:, :, 3] > 0).all()


@pytest.mark.parametrize("style", ["sdpa", "matmul"])
def test_gradients_of_torch_func_are_those_of_autograd(style, x):
    module = Attention(style)

    def loss(rows):
        return module(rows).square().sum()

    with regard.edit(module) as edits:
        edits["*"].heads(1).set_weights("previous")
        found = torch.func.grad(loss)(x)
        x.requires_grad_()
        (expected,) = torch.autograd.grad(loss(x), x)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("style", ["sdpa", "matmul"])
def test_vmap_is_refused(style, x):
    module = Attention(style)
    message = "cannot edit Attention under torch.func.vmap.*call the model with a batch"
    with pytest.raises(regard.RegardError, match=message), regard.edit(module) as edits:
        edits["*"].heads(1).ablate()
        torch.func.vmap(module)(x)


def test_error_of_a_position_names_those_there_are(x):
    module = Attention("sdpa")
    message = "no key at position 5, 9 in any call: there were 0 to 4"
    with pytest.raises(regard.RegardError, match=message), regard.edit(module) as edits:
        edits["*"].block(keys=[1, 5, 9])
        module(x)


@pytest.mark.compile
def test_compiled_function_that_edits_is_refused(x):
    module = Attention("sdpa")

    @torch.compile(backend="eager")
    def edited(rows):
        with regard.edit(module) as edits:
            edits["*"].heads(1).ablate()
            return module(rows)

    with pytest.raises(regard.RegardError, match="around the call of the compiled function"):
        edited(x)


@pytest.mark.parametrize("style", ["matmul", "einsum", "folded"])
def test_edits_agree_on_devices_without_float64(style, monkeypatch):
    module, x = Attention(style), torch.randn(2, 5, WIDTH)

    def run():
        with regard.edit(module) as edits:
            edits["*"].heads([1]).scale(temperature=2.0)
            return module(x)

    expected, dtypes = run(), set()

    def note_dtype(*args, **kwargs):
        rows = number_rows(*args, **kwargs)
        dtypes.add(rows.dtype)
        return rows

    number_rows = editable.number_rows
    monkeypatch.setattr(editable, "has_float64", lambda device: False)
    monkeypatch.setattr(editable, "number_rows", note_dtype)
    torch.testing.assert_close(run(), expected, rtol=0, atol=0)
    assert dtypes == {torch.float32}


def test_rows_are_not_numbered_where_float32_would_round(monkeypatch):
    monkeypatch.setattr(editable, "has_float64", lambda device: False)
    device = torch.device("meta")
    assert editable.number_rows(2**24, device).dtype == torch.float32
    assert editable.number_rows(2**24 + 1, device) is None


class MergedAttention(nn.Module):
    """T5Gemma 2: one softmax over the text being written and, after it, an encoded text."""

    def __init__(self, is_written_last=False):
        super().__init__()
        self.q, self.kv = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 2 * WIDTH)
        self.is_written_last, self.cache = is_written_last, None

    def forward(self, x, encoded):
        written, encoded = self.kv(x), self.kv(encoded)
        if self.cache is not None:
            written = torch.cat([self.cache, written], dim=1)
        self.cache, queries, length = written, x.shape[1], written.shape[1]
        texts = [encoded, written] if self.is_written_last else [written, encoded]
        own = torch.ones(queries, length, dtype=torch.bool).tril(length - queries)
        other = torch.ones(queries, encoded.shape[1], dtype=torch.bool)
        mask = torch.cat([other, own] if self.is_written_last else [own, other], dim=1)
        q, k, v = (
            rows.unflatten(-1, (HEADS, -1)).transpose(1, 2)
            for rows in (self.q(x), *torch.cat(texts, dim=1).chunk(2, -1))
        )
        return scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2).flatten(2)

    def in_steps(self, x, encoded, sizes):
        self.cache = None
        return torch.cat([self(part, encoded) for part in x.split(sizes, dim=1)], dim=1)


@torch.no_grad()
@pytest.mark.parametrize("sizes", [(2, 1, 1), (1, 1, 1, 1), (2, 2)])
def test_positions_that_change_with_each_step_are_refused(sizes):
    model, x, encoded = MergedAttention(), torch.randn(2, 4, WIDTH), torch.randn(2, 3, WIDTH)
    weights = torch.full((1, 1, 4, 7), 1 / 7)
    changes = (
        lambda selection: selection.block(keys=[4]),
        lambda selection: selection.set_weights("itself"),
        lambda selection: selection.set_weights(weights),
    )
    for change in changes:
        refused = pytest.raises(regard.RegardError, match="positions change with each step")
        with refused, regard.edit(model) as edits:
            change(edits["*"])
            model.in_steps(x, encoded, sizes)
    outputs = []
    for split in (sizes, (4,)):
        with regard.edit(model) as edits:
            edits["*"].heads(0).set_weights("uniform")
            outputs.append(model.in_steps(x, encoded, split))
    torch.testing.assert_close(*outputs)


@torch.no_grad()
def test_positions_after_an_encoded_text_are_those_of_a_full_pass():
    model = MergedAttention(is_written_last=True)
    x, encoded = torch.randn(2, 4, WIDTH), torch.randn(2, 3, WIDTH)
    x[:, 1:] = x[:, :1]  # repeated tokens have the same keys
    outputs = []
    for split in ((1, 1, 1, 1), (4,)):
        with regard.edit(model) as edits:
            edits["*"].block(keys=[1, 4])
            outputs.append(model.in_steps(x, encoded, split))
    torch.testing.assert_close(*outputs)
