"""Which attention `watch` recognises, with which weights, kind, module and line."""

import pytest
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

from helpers.watched_models import SelfAttention, attention_by_softmax, sharpen
from regard import RegardError, masks, watch
from regard.attention import MultiHeadAttention


def test_kernel_imported_by_name_is_captured():
    model, rows = sharpen(SelfAttention()), torch.randn(2, 5, 12)
    with watch(model) as capture:
        watched = model(rows)
    assert torch.equal(watched, model(rows))
    assert len(capture) == 1
    assert capture[0].kind == "self" and capture[0].name == "SelfAttention"
    assert capture[0].call_site.startswith("watched_models.py:")
    torch.testing.assert_close(capture[0].weights, model.weights(rows))


def test_kernel_called_by_keywords_is_captured():
    class ByKeywords(SelfAttention):
        def forward(self, rows):
            query, key, value = self.queries_keys_values(rows)
            return scaled_dot_product_attention(value=value, key=key, query=query)

    model, rows = sharpen(ByKeywords()), torch.randn(2, 5, 12)
    with watch(model) as capture:
        model(rows)
    torch.testing.assert_close(capture[0].weights, model.weights(rows))


def test_calls_before_and_after_are_not_captured():
    model, rows = SelfAttention(), torch.randn(2, 5, 12)
    model(rows)
    with watch(model) as capture:
        pass
    model(rows)
    assert len(capture) == 0


def test_calls_of_other_models_are_not_captured():
    model, other = SelfAttention(), SelfAttention()
    with watch(model) as capture:
        other(torch.randn(2, 5, 12))
    with pytest.raises(RegardError, match="no attention was found in SelfAttention; recognised"):
        capture.check()


@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("train", [False, True])
def test_multihead_attention_of_torch_is_captured(need_weights, batch_first, train):
    model = sharpen(nn.MultiheadAttention(12, 4, batch_first=batch_first)).train(train)
    queries, keys = torch.randn(2, 5, 12), torch.randn(2, 7, 12)
    if not batch_first:
        queries, keys = queries.transpose(0, 1), keys.transpose(0, 1)
    padding = torch.zeros(2, 7, dtype=torch.bool)
    padding[1, 4:] = True
    settings = {"need_weights": need_weights, "key_padding_mask": padding}
    unwatched = model(queries, keys, keys, **settings)
    with watch(model) as capture:
        watched = model(queries, keys, keys, **settings)
    settings |= {"need_weights": True, "average_attn_weights": False}
    expected = model(queries, keys, keys, **settings)[1]
    assert torch.equal(unwatched[0], watched[0])
    assert unwatched[1] is None or torch.equal(unwatched[1], watched[1])
    assert capture[0].kind == "cross" and len(capture) == 1
    torch.testing.assert_close(capture[0].weights, expected)


@pytest.mark.parametrize("need_weights", [False, True])
def test_weights_of_torch_are_those_before_dropout(need_weights):
    model = sharpen(nn.MultiheadAttention(12, 4, dropout=0.5, batch_first=True)).train()
    rows = torch.randn(2, 5, 12)
    with watch(model) as capture:
        model(rows, rows, rows, need_weights=need_weights)
    torch.testing.assert_close(capture[0].weights.sum(-1), torch.ones(2, 4, 5))


@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("setting", ["add_bias_kv", "add_zero_attn"])
def test_keys_appended_by_torch_are_no_positions(setting, causal, need_weights):
    model = sharpen(nn.MultiheadAttention(12, 4, batch_first=True, **{setting: True}))
    rows = torch.randn(2, 5, 12)
    mask = torch.ones(5, 5, dtype=torch.bool).triu(1) if causal else None
    with watch(model) as capture:
        model(rows, rows, rows, need_weights=need_weights, attn_mask=mask)
    _, expected = model(rows, rows, rows, attn_mask=mask, average_attn_weights=False)
    torch.testing.assert_close(capture[0].weights, expected)
    assert (capture[0].kind, capture[0].offset) == ("causal" if causal else "self", 0)
    trace = capture.trace(list("abcde"))
    assert trace.tokens["text"].pieces == tuple("abcde")
    assert trace.tokens[trace.maps[0].keys].pieces == (*"abcde", "+1")


@pytest.mark.compile
def test_compiled_model_is_captured():
    model, rows = sharpen(SelfAttention()), torch.randn(2, 5, 12)
    compiled = torch.compile(model, backend="eager")
    compiled(rows)
    for watched in (model, compiled):
        with watch(watched) as capture:
            out = compiled(rows)
        assert torch.equal(out, model(rows))
        torch.testing.assert_close(capture[0].weights, model.weights(rows))
    assert capture[0].name == "SelfAttention"


def test_shared_layer_has_one_record_per_call():
    class Shared(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.out = sharpen(SelfAttention()), nn.Linear(12, 12)

        def forward(self, rows):
            for _ in range(3):
                rows = self.out(self.layer(rows).transpose(1, 2).flatten(2))
            return rows

    model = Shared()
    with watch(model) as capture:
        model(torch.randn(2, 5, 12))
    assert [(x.name, x.call) for x in capture] == [("layer", 0), ("layer", 1), ("layer", 2)]


@pytest.mark.parametrize("is_cross", [False, True])
@pytest.mark.parametrize("attention", [scaled_dot_product_attention, attention_by_softmax])
def test_layers_without_output_projection_have_the_right_kind(attention, is_cross):
    class Layers(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(12, 12) for _ in range(9))

        def forward(self, rows, memory=None):
            for q, k, v in zip(*(self.layers[n::3] for n in range(3)), strict=True):
                keys = rows if memory is None else memory
                context = attention(q(rows), k(keys), v(keys))
                rows = nn.functional.layer_norm(rows + context, (12,))
            return rows

    model, rows = Layers(), torch.randn(2, 5, 12)
    with watch(model) as capture:
        model(rows, torch.randn(2, 5, 12)) if is_cross else model(rows)
    assert [x.kind for x in capture] == ["cross" if is_cross else "self"] * 3


def test_class_token_is_cross_attention():
    class Classifier(SelfAttention):
        def forward(self, rows):
            queries, keys, values = self.queries_keys_values(rows)
            return scaled_dot_product_attention(queries[:, :, :1], keys, values)

    model = Classifier()
    with watch(model) as capture:
        model(torch.randn(2, 5, 12))
    assert capture[0].kind == "cross"
    attention_map = capture.trace(list("abcde")).maps[0]
    assert attention_map.shape == (3, 1, 5)
    assert attention_map.weights.sum() == pytest.approx(3)


REGARD_CASES = {
    "no mask": ({}, None),
    "causal": ({}, masks.causal()),
    "lengths": ({}, masks.lengths([3, 5])),
    "grouped": ({"key_heads": 2}, masks.causal()),
    "additive": ({"score": "additive"}, masks.lengths([3, 5])),
    "gaussian": ({"score": "gaussian"}, None),
}


@pytest.mark.parametrize("case", REGARD_CASES)
def test_attention_of_regard_is_captured(case):
    settings, mask = REGARD_CASES[case]
    model, rows = sharpen(MultiHeadAttention(12, 4, **settings)), torch.randn(2, 5, 12)
    with watch(model) as capture:
        watched = model(rows, mask=mask)
    expected = model.look(rows, mask=mask)
    assert torch.equal(watched, expected.context)
    assert [x.kind for x in capture] == ["causal" if case in ("causal", "grouped") else "self"]
    torch.testing.assert_close(capture[0].weights, expected.weights)
    assert capture[0].call_site.startswith("multihead.py:")


def test_look_of_regard_is_one_call():
    model, rows = sharpen(MultiHeadAttention(12, 4)), torch.randn(2, 5, 12)
    with watch(model) as capture:
        _, weights = model.look(rows)
    assert len(capture) == 1
    torch.testing.assert_close(capture[0].weights, weights)


def test_captured_weights_have_no_gradient():
    model, rows = MultiHeadAttention(12, 4), torch.randn(2, 6, 12, requires_grad=True)
    with watch(model) as capture:
        model(rows)
    assert not capture[0].weights.requires_grad


def test_invalid_arguments_are_refused(unchecked):
    with pytest.raises(TypeError, match="model must be an nn.Module, but it is of type function"):
        watch(lambda x: x).__enter__()
    with pytest.raises(RegardError, match="keep must be one of auto, all, summary, but it is 'top"):
        watch(SelfAttention(), keep="top").__enter__()
    with pytest.raises(RegardError, match="no module is called 'projekt'. Did you mean 'project'"):
        watch(SelfAttention(), modules="projekt").__enter__()
    model = SelfAttention()
    wrong = pytest.raises(RegardError, match="heads must be indices from 0 to 2 for SelfAttention")
    with wrong, watch(model, heads=[3]):
        model(torch.randn(2, 5, 12))


class NamedThis(nn.Module):
    """Attention in a method whose first argument is not called self."""

    def forward(this, x):
        return nn.functional.scaled_dot_product_attention(x, x, x)


def test_call_site_is_in_the_method_whatever_its_first_argument_is_called():
    model = NamedThis()
    with watch(model) as capture:
        model(torch.randn(2, 3, 5, 4))
    line = NamedThis.forward.__code__.co_firstlineno + 1
    assert capture[0].call_site == f"test_recognition.py:{line}"


@torch.no_grad()
def test_tensors_without_values_are_named_as_the_reason():
    model = NamedThis()
    with watch(model) as capture:
        model(torch.randn(2, 3, 5, 4, device="meta"))
    assert len(capture) == 0
    assert "tensors on the meta device have no values" in str(capture)
