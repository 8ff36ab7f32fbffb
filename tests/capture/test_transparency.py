"""Watching changes nothing: outputs, gradients, random numbers, state, and what other modes see."""

import copy
import gc
import weakref
from functools import partial

import pytest
import torch
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.functional import scaled_dot_product_attention
from torch.utils.checkpoint import (
    CheckpointPolicy,
    checkpoint,
    create_selective_checkpoint_contexts,
)
from torch.utils.flop_counter import FlopCounterMode

from helpers.watched_models import SelfAttention, attention_by_softmax, sharpen
from regard import attend, watch
from regard.attention import FunctionScore, MultiHeadAttention
from regard.capture.calls import side_effect_free_copy
from regard.capture.modes import is_isolated, isolated


class KernelAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(8, 8) for _ in range(3))

    def forward(self, rows):
        vectors = (layer(rows)[:, None] for layer in (self.q, self.k, self.v))
        return scaled_dot_product_attention(*vectors)[:, 0]


class SoftmaxAttention(KernelAttention):
    def forward(self, rows):
        return attention_by_softmax(self.q(rows), self.k(rows), self.v(rows))


def test_gradients_are_unchanged():
    model, rows = sharpen(SelfAttention()), torch.randn(2, 5, 12)
    model(rows).square().sum().backward()
    unwatched = model.project.weight.grad.clone()
    model.zero_grad()
    with watch(model):
        model(rows).square().sum().backward()
    assert torch.equal(model.project.weight.grad, unwatched)


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_checkpointed_layer_is_captured_once(use_reentrant):
    model, regard_model = SelfAttention(), MultiHeadAttention(12, 3)
    rows = torch.randn(2, 5, 12, requires_grad=True)
    with watch(nn.ModuleList([model, regard_model])) as capture:
        first = checkpoint(model, rows, use_reentrant=use_reentrant)
        second = checkpoint(regard_model, rows, use_reentrant=use_reentrant)
        (first.sum() + second.sum()).backward()
    assert [x.steps for x in capture] == [1, 1]
    assert rows.grad is not None


def save_products(context, function, *args, **kwargs):
    is_product = function is torch.ops.aten.bmm.default
    return CheckpointPolicy.MUST_SAVE if is_product else CheckpointPolicy.PREFER_RECOMPUTE


def gradients_with_checkpoint(model, rows):
    model.zero_grad()
    contexts = partial(create_selective_checkpoint_contexts, save_products)
    checkpoint(model, rows, use_reentrant=False, context_fn=contexts).square().sum().backward()
    return [parameter.grad.clone() for parameter in model.parameters()]


def test_gradients_with_selective_checkpointing_are_unchanged():
    model = nn.Sequential(KernelAttention(), SoftmaxAttention())
    rows = torch.randn(2, 7, 8)
    unwatched = gradients_with_checkpoint(model, rows)
    with watch(model) as capture:
        watched = gradients_with_checkpoint(model, rows)
    assert len(capture) == 2
    assert all(torch.equal(*pair) for pair in zip(unwatched, watched, strict=True))


def test_dropout_draws_the_same_random_numbers():
    model, rows = sharpen(SelfAttention()), torch.randn(2, 5, 12)
    torch.manual_seed(5)
    unwatched = model(rows, dropout_p=0.5)
    torch.manual_seed(5)
    with watch(model) as capture:
        watched = model(rows, dropout_p=0.5)
    assert torch.equal(unwatched, watched)
    torch.testing.assert_close(capture[0].weights, model.weights(rows))


def test_score_with_dropout_leaves_the_random_state_unchanged():
    class DropoutScore(nn.Module):
        def forward(self, queries, keys):
            return nn.functional.dropout(queries @ keys.mT, 0.5)

    attention = MultiHeadAttention(12, 3, score=DropoutScore())
    model, rows = nn.Sequential(attention, nn.Dropout()), torch.randn(2, 5, 12)
    torch.manual_seed(5)
    unwatched = model(rows)
    torch.manual_seed(5)
    with watch(model) as capture:
        watched = model(rows)
    assert len(capture) == 1 and torch.equal(unwatched, watched)


def test_weights_under_autocast_use_rounded_queries_and_keys():
    model, rows = sharpen(SelfAttention()), torch.randn(2, 5, 12)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        unwatched = model(rows)
        projected = model.project(rows)
        with watch(model) as capture:
            watched = model(rows)
    assert torch.equal(unwatched, watched)
    q, k, _ = projected.float().unflatten(-1, (3, 3, -1)).permute(2, 0, 3, 1, 4)
    torch.testing.assert_close(capture[0].weights, (q @ k.mT / 2).softmax(-1))
    torch.testing.assert_close(capture[0].weights.sum(-1), torch.ones(2, 3, 5))


def test_float32_inputs_are_rounded_as_autocast_does():
    class Kernel(nn.Module):
        def forward(self, q, k, v):
            return scaled_dot_product_attention(q, k, v)

    q, k, v = (torch.randn(2, 3, 5, 4) * 3 for _ in range(3))
    model = Kernel()
    with torch.autocast("cpu", dtype=torch.bfloat16), watch(model) as capture:
        model(q, k, v)
    q, k = (x.to(torch.bfloat16).float() for x in (q, k))
    torch.testing.assert_close(capture[0].weights, (q @ k.mT / 2).softmax(-1))


def test_inference_mode_is_supported():
    model, rows = sharpen(SelfAttention()), torch.randn(2, 5, 12)
    with torch.inference_mode(), watch(model) as capture:
        model(rows)
    torch.testing.assert_close(capture[0].weights, model.weights(rows))


@pytest.mark.parametrize("attention", [scaled_dot_product_attention, attention_by_softmax])
@pytest.mark.parametrize("keep", ["all", "summary"])
def test_default_device_and_dtype_do_not_matter(keep, attention):
    class Attention(nn.Module):
        def forward(self, rows):
            return attention(rows, rows, rows)

    model, rows = Attention(), torch.randn(1, 2, 200, 12)
    with watch(model, keep=keep) as expected:
        model(rows)
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16)
    try:
        with torch.device("meta"):
            with watch(model, keep=keep) as capture:
                model(rows)
            stored = [(x.weights, x.summary) for x in (capture[0], expected[0])]
    finally:
        torch.set_default_dtype(before)
    for actual, reference in zip(*stored, strict=True):
        torch.testing.assert_close(actual, reference)


def test_computation_of_weights_is_not_counted_by_other_modes():
    model, rows = KernelAttention(), torch.randn(2, 5, 8)
    with FlopCounterMode(display=False) as unwatched:
        model(rows)
    with FlopCounterMode(display=False) as watched, watch(model) as capture:
        model(rows)
    assert len(capture) == 1
    assert watched.get_total_flops() == unwatched.get_total_flops() > 0


def test_computation_of_weights_is_not_traced_by_make_fx():
    model, rows = KernelAttention().eval(), torch.randn(2, 5, 8)
    unwatched = make_fx(model)(rows)
    with watch(model):
        watched = make_fx(model)(rows)
    assert len(watched.graph.nodes) == len(unwatched.graph.nodes)


def test_captures_do_not_see_each_other_compute():
    model, rows = KernelAttention(), torch.randn(2, 5, 8)
    with watch(model) as outer, watch(model, keep="summary") as inner:
        model(rows)
    assert len(outer) == len(inner) == 1
    assert outer.diagnostics.num_functions == inner.diagnostics.num_functions


def test_isolation_may_be_nested():
    assert not is_isolated()
    with isolated():
        with isolated():
            assert not torch.is_grad_enabled()
        assert is_isolated()
    assert not is_isolated() and torch.is_grad_enabled()


class StatefulScore(nn.Module):
    """A score with batch statistics, a counter in a buffer, and one in an attribute."""

    def __init__(self):
        super().__init__()
        self.norm, self.num_calls = nn.BatchNorm1d(8), 0
        self.register_buffer("counter", torch.zeros(1))

    def forward(self, queries, keys):
        self.num_calls += 1
        self.counter += 1
        keys = self.norm(keys.flatten(0, -2)).view(keys.shape)
        return self.counter * queries @ keys.mT


class StatefulAttention(nn.Module):
    def __init__(self, by_method=False):
        super().__init__()
        self.score, self.by_method = StatefulScore(), by_method

    def forward(self, rows):
        return attend(rows, rows, rows, score=self.score.forward if self.by_method else self.score)


@pytest.mark.parametrize("by_method", [False, True])
def test_stateful_score_is_left_as_without_watching(by_method):
    model, rows = StatefulAttention(by_method), torch.randn(2, 5, 8)
    other, hook_calls = copy.deepcopy(model), []
    unwatched = model(rows)
    for module in other.modules():
        module.register_forward_hook(lambda module, *_: hook_calls.append(module))
    with watch(other) as capture:
        watched = other(rows)
    assert len(capture) == 1 and torch.equal(unwatched, watched)
    assert model.score.num_calls == other.score.num_calls == 1
    for name, buffer in model.named_buffers():
        assert torch.equal(buffer, other.get_buffer(name)), name
    assert hook_calls.count(other.score.norm) == 1


def test_weights_of_a_stateful_score_use_its_state_before_the_call():
    model, rows = StatefulAttention().eval(), torch.randn(2, 5, 8)
    with torch.no_grad(), watch(model) as capture:
        context = model(rows)
    torch.testing.assert_close(capture[0].weights[:, 0] @ rows, context)


def test_side_effect_free_copy_shares_parameters_and_shared_modules():
    inner = nn.Linear(3, 3)
    score = FunctionScore(nn.Sequential(inner, inner))
    copied = side_effect_free_copy(score).function
    assert copied[0] is copied[1] and copied[0] is not inner
    assert copied[0].weight is inner.weight and isinstance(copied, nn.Sequential)
    rows = torch.randn(2, 3)
    assert torch.equal(copied(rows), score.function(rows))


def test_side_effect_free_copy_of_a_compiled_module_is_not_compiled():
    compiled = FunctionScore(torch.compile(nn.Linear(3, 3), backend="eager"))
    assert type(side_effect_free_copy(compiled).function).__name__ == "Linear"


def test_side_effect_free_copy_of_a_function_calls_it_as_it_is():
    assert side_effect_free_copy(FunctionScore(torch.add)).function is torch.add


def test_mask_of_an_unknown_tensor_subclass_is_reported():
    class Strange(torch.Tensor):
        pass

    model, rows = SelfAttention(), torch.randn(2, 5, 12)
    mask = torch.zeros(5, 5).as_subclass(Strange)
    with watch(model) as capture:
        model(rows, attn_mask=mask)
    assert "not captured: SelfAttention" in str(capture) and len(capture) == 0
    assert "Strange is an unknown tensor subclass" in str(capture)


class FailsOnRecomputation(nn.Module):
    """Attention whose score fails when it is called a second time."""

    def __init__(self):
        super().__init__()
        self.failing = [None, RuntimeError("cannot be recomputed\nand more")]

    def forward(self, rows):
        return attend(rows, rows, rows, score=self.score)

    def score(self, queries, keys):
        error = self.failing.pop(0)
        if error is not None:
            raise error
        return queries @ keys.mT


def test_error_while_capturing_does_not_reach_the_model():
    model, rows = FailsOnRecomputation(), torch.randn(2, 5, 12)
    with watch(model) as capture:
        watched = model(rows)
    model.failing = [None]
    assert torch.equal(watched, model(rows))
    (line,) = str(capture).splitlines()
    assert line.startswith("not captured: FailsOnRecomputation (test_transparency.py:")
    assert line.endswith("cannot be recomputed")


def test_pass_under_torch_func_is_unchanged_and_reported():
    model = MultiHeadAttention(12, 3)
    rows, memory = torch.randn(3, 2, 5, 12), torch.randn(3, 2, 7, 12)

    def gradients():
        gradient = torch.func.grad(lambda *inputs: model(*inputs).square().sum())
        return torch.func.vmap(gradient)(rows, memory)

    with watch(model) as capture:
        watched = gradients()
    assert torch.equal(watched, gradients())
    (line,) = str(capture).splitlines()
    assert line.endswith("watch a plain pass")


def test_tensors_of_the_pass_are_freed_without_garbage_collection():
    are_freed = []

    class Model(nn.Module):
        def forward(self, x):
            hidden = 2 * x
            rolled, reference = hidden.roll(1, dims=1), weakref.ref(hidden)
            del hidden
            are_freed.append(reference() is None)
            return scaled_dot_product_attention(rolled, rolled, rolled)

    model = Model()
    gc.disable()
    try:
        with watch(model):
            model(torch.randn(2, 5, 12))
    finally:
        gc.enable()
    assert are_freed == [True]


class DroppedOut(KernelAttention):
    """Dropout of weights, whose values before it go through a function of a list of tensors."""

    def forward(self, rows):
        weights = (self.q(rows) @ self.k(rows).mT).softmax(-1)
        first, second = nn.functional.dropout(weights).chunk(2, dim=1)
        return torch.cat([second, first], dim=1) @ self.v(rows)


class Graph(KernelAttention):
    """Attention over the edges of a graph."""

    def forward(self, rows):
        rows, edges = rows[0], torch.tensor([[0, 1, 2, 0, 1], [1, 2, 0, 2, 1]])
        scores = (self.q(rows)[edges[1]] * self.k(rows)[edges[0]]).sum(-1, keepdim=True).exp()
        sums = torch.zeros(len(rows), 1).index_add(0, edges[1], scores)
        messages = scores / sums[edges[1]] * self.v(rows)[edges[0]]
        return torch.zeros_like(rows).index_add(0, edges[1], messages)


@pytest.mark.parametrize("model_class", [KernelAttention, SoftmaxAttention, DroppedOut, Graph])
def test_nothing_of_a_pass_is_alive_after_the_capture_without_garbage_collection(model_class):
    def num_tensors():
        return sum(isinstance(x, torch.Tensor) for x in gc.get_objects())

    def number_captured():
        model, rows = model_class(), torch.randn(2, 6, 8)
        models.append(weakref.ref(model))
        with watch(model) as capture:
            model(rows)
        return len(capture)

    models = []
    assert number_captured() == 1  # torch imports something the first time
    gc.collect()
    gc.freeze()  # what is alive now is left out of `gc.get_objects`
    gc.disable()
    try:
        assert number_captured() == 1
        assert num_tensors() == 0
        assert models[1]() is None
    finally:
        gc.enable()
        gc.unfreeze()
