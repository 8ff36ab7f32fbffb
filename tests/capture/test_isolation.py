from functools import partial

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

from regard import watch
from regard.capture.isolation import aside, looks_aside


class Fused(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(8, 8) for _ in range(3))

    def forward(self, rows):
        parts = (layer(rows)[:, None] for layer in (self.q, self.k, self.v))
        return scaled_dot_product_attention(*parts)[:, 0]


class ByHand(Fused):
    def forward(self, rows):
        return (self.q(rows) @ self.k(rows).transpose(1, 2)).softmax(-1) @ self.v(rows)


def saves_products(context, function, *args, **kwargs):
    saved = function is torch.ops.aten.bmm.default
    return CheckpointPolicy.MUST_SAVE if saved else CheckpointPolicy.PREFER_RECOMPUTE


def gradients(model, rows):
    model.zero_grad()
    contexts = partial(create_selective_checkpoint_contexts, saves_products)
    checkpoint(model, rows, use_reentrant=False, context_fn=contexts).square().sum().backward()
    return [weight.grad.clone() for weight in model.parameters()]


def test_gradients_are_the_same_where_a_checkpoint_saves_some_products():
    model, rows = nn.Sequential(Fused(), ByHand()), torch.randn(2, 7, 8)
    plain = gradients(model, rows)
    with watch(model) as seen:
        watched = gradients(model, rows)
    assert len(seen) == 2
    assert all(torch.equal(*pair) for pair in zip(plain, watched, strict=True))


def test_nothing_that_is_computed_aside_is_counted():
    model, rows = Fused(), torch.randn(2, 5, 8)
    with FlopCounterMode(display=False) as plain:
        model(rows)
    with FlopCounterMode(display=False) as watched, watch(model) as seen:
        model(rows)
    assert len(seen) == 1
    assert watched.get_total_flops() == plain.get_total_flops() > 0


def test_nothing_that_is_computed_aside_is_traced():
    model, rows = Fused().eval(), torch.randn(2, 5, 8)
    plain = make_fx(model)(rows)
    with watch(model):
        watched = make_fx(model)(rows)
    assert len(watched.graph.nodes) == len(plain.graph.nodes)


def test_watchers_do_not_see_each_other_looking():
    model, rows = Fused(), torch.randn(2, 5, 8)
    with watch(model) as outer, watch(model, keep="reduced") as inner:
        model(rows)
    assert len(outer) == len(inner) == 1
    assert outer.functions == inner.functions


def test_looking_aside_may_be_nested():
    assert not looks_aside()
    with aside():
        with aside():
            assert not torch.is_grad_enabled()
        assert looks_aside()
    assert not looks_aside() and torch.is_grad_enabled()
