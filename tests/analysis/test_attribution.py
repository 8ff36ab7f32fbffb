"""Attribution of outputs to tokens, against captum, Hugging Face's eager weights and the paper."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

import regard
from helpers.watched_models import sharpen
from regard import analysis
from regard.errors import RegardError
from regard.trace import load_trace

transformers = pytest.importorskip("transformers")


def bert(**settings):
    torch.manual_seed(3)
    config = transformers.BertConfig(
        vocab_size=40, hidden_size=12, num_hidden_layers=2, num_attention_heads=3,
        intermediate_size=16, num_labels=4, **settings,
    )  # fmt: skip
    return sharpen(transformers.BertForSequenceClassification(config)).eval()


def gpt2(**settings):
    torch.manual_seed(4)
    config = transformers.GPT2Config(
        vocab_size=40, n_embd=12, n_layer=3, n_head=2, n_positions=16, **settings
    )
    return sharpen(transformers.GPT2LMHeadModel(config)).eval()


def bart(**settings):
    torch.manual_seed(5)
    config = transformers.BartConfig(
        vocab_size=40, d_model=12, encoder_layers=2, decoder_layers=2, encoder_attention_heads=3,
        decoder_attention_heads=3, encoder_ffn_dim=16, decoder_ffn_dim=16,
        max_position_embeddings=16, **settings,
    )  # fmt: skip
    return sharpen(transformers.BartForConditionalGeneration(config)).eval()


TOKENS = torch.tensor([[5, 6, 7, 8, 9, 10, 11]])
TARGET = torch.tensor([[2, 20, 21, 22, 23]])


class DenseReference:
    """Chefer et al. 2021 from the paper's equations, on weights that a model returns itself."""

    def __init__(self, score, *weights):
        gradients = torch.autograd.grad(score, weights, retain_graph=True, allow_unused=True)
        products = [w * g for w, g in zip(weights, gradients, strict=True)]
        self.gradient_x_weight = [x[0].clamp(min=0).detach() for x in products]
        self.mean = [x.mean(0) for x in self.gradient_x_weight]

    @staticmethod
    def normalised(relevance):
        """Equations 8 and 9."""
        rest = relevance - torch.eye(len(relevance))
        sums = rest.sum(-1, keepdim=True)
        return torch.where(sums > 0, rest / sums, 0.0) + torch.eye(len(relevance))

    def self_relevance(self, layers):
        relevance = torch.eye(len(self.mean[layers[0]]))
        for layer in layers:
            relevance = relevance + self.mean[layer] @ relevance
        return relevance


def only_map(trace, kind):
    (attention_map,) = [m for m in trace.maps if m.kind == kind]
    return attention_map.weights[0]


def signed(trace, index=0):
    return trace.maps[index].weights[0] - trace.maps[index + 1].weights[0]


def test_relevance_of_an_encoder_equals_the_papers_equations():
    trace = analysis.attribute(bert(), {"input_ids": TOKENS}, 2, method="chefer")
    eager = bert(attn_implementation="eager")
    output = eager(TOKENS, output_attentions=True)
    reference = DenseReference(output.logits[0, 2], *output.attentions)
    expected = reference.self_relevance([0, 1])
    np.testing.assert_allclose(only_map(trace, "self"), expected, atol=1e-5)
    assert expected.max() > 1.001


def test_relevance_of_every_output_of_a_decoder_is_the_row_of_its_position():
    trace = analysis.attribute(gpt2(), {"input_ids": TOKENS})
    eager = gpt2(attn_implementation="eager")
    output = eager(TOKENS, output_attentions=True)
    rows = []
    for position, logits in enumerate(output.logits[0]):
        reference = DenseReference(logits.max(), *output.attentions)
        rows.append(reference.self_relevance([0, 1, 2])[position])
    np.testing.assert_allclose(only_map(trace, "causal"), torch.stack(rows), atol=1e-5)


def test_relevance_of_an_encoder_decoder_model_equals_the_papers_equations():
    inputs = {"input_ids": TOKENS, "decoder_input_ids": TARGET}
    trace = analysis.attribute(bart(), inputs, (3, 17), method="chefer")
    eager = bart(attn_implementation="eager")
    output = eager(**inputs, output_attentions=True)
    weights = (*output.encoder_attentions, *output.decoder_attentions, *output.cross_attentions)
    reference = DenseReference(output.logits[0, 3, 17], *weights)
    source = reference.self_relevance([0, 1])
    target, cross = torch.eye(5), torch.zeros(5, 7)
    for layer in (0, 1):
        own, across = reference.mean[2 + layer], reference.mean[4 + layer]
        target, cross = target + own @ target, cross + own @ cross
        normalised = [DenseReference.normalised(x) for x in (target, source)]
        cross = cross + normalised[0].T @ across @ normalised[1]
    np.testing.assert_allclose(only_map(trace, "self"), source, atol=1e-5)
    np.testing.assert_allclose(only_map(trace, "causal"), target, atol=1e-5)
    np.testing.assert_allclose(only_map(trace, "cross"), cross, atol=1e-5)
    assert cross.max() > 1e-3


def test_gradient_x_weight_equals_that_of_weights_a_model_returns():
    trace = analysis.attribute(bert(), {"input_ids": TOKENS}, 1, method="gradient_x_weight")
    output = bert(attn_implementation="eager")(TOKENS, output_attentions=True)
    reference = DenseReference(output.logits[0, 1], *output.attentions)
    for attention_map, expected in zip(trace.maps, reference.gradient_x_weight, strict=True):
        np.testing.assert_allclose(attention_map.weights, expected, atol=1e-6)


@pytest.mark.parametrize("padding", [False, True])
def test_integrated_gradients_agree_with_captum(padding):
    from captum.attr import LayerIntegratedGradients

    model = bert()
    mask = torch.ones_like(TOKENS)
    if padding:
        mask[0, -2:] = 0
    inputs = {"input_ids": TOKENS, "attention_mask": mask}
    trace = analysis.attribute(model, inputs, 3, method="integrated_gradients", steps=20)
    method = LayerIntegratedGradients(
        lambda ids, mask: model(ids, attention_mask=mask).logits,
        model.bert.embeddings.word_embeddings,
    )
    # captum's default baseline of a layer is that of the inputs; zeros as vectors are ours
    ids = TOKENS.new_zeros(TOKENS.shape)
    with torch.no_grad():
        model.bert.embeddings.word_embeddings.weight[0] = 0
    expected = method.attribute(
        TOKENS, ids, target=3, additional_forward_args=(mask,), n_steps=20
    ).sum(-1)
    np.testing.assert_allclose(signed(trace), expected, atol=1e-4)


class NormedEmbedding(nn.Embedding):
    """Embeddings that are normalised where they are looked up, as in some language models."""

    def forward(self, ids):
        return nn.functional.rms_norm(super().forward(ids), (12,))


class NormedModel(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(9)
        self.embedding, self.attention = NormedEmbedding(40, 12), SmallAttention()
        self.out = nn.Linear(12, 4)
        self.eval()

    def forward(self, ids):
        return self.out(self.attention(self.embedding(ids))[:, 0])


@pytest.mark.parametrize("baseline", [None, 7])
def test_integrated_gradients_of_a_normalised_embedding_agree_with_captum(baseline):
    from captum.attr import IntegratedGradients

    model = NormedModel()
    trace = analysis.attribute(
        model, TOKENS, 3, method="integrated_gradients", steps=20, baseline=baseline
    )
    vectors = model.embedding(TOKENS).detach()
    method = IntegratedGradients(lambda x: model.out(model.attention(x)[:, 0]))
    start = 0 if baseline is None else model.embedding(torch.full_like(TOKENS, baseline)).detach()
    expected = method.attribute(vectors, start, target=3, n_steps=20).sum(-1)
    np.testing.assert_allclose(signed(trace), expected.detach(), atol=1e-4)
    assert not model.embedding._forward_hooks


@pytest.mark.parametrize("is_named", [True, False])
def test_masks_are_not_scaled(is_named):
    torch.manual_seed(8)
    model = nn.Transformer(
        12, nhead=4, num_encoder_layers=1, num_decoder_layers=1, dim_feedforward=16,
        batch_first=True,
    ).eval()  # fmt: skip
    source, target, mask = torch.randn(1, 6, 12), torch.randn(1, 4, 12), torch.rand(4, 4)
    inputs = (source, target, None, mask)
    if is_named:
        inputs = {"src": source, "tgt": target, "tgt_mask": mask}
    trace = analysis.attribute(model, inputs, first_state, method="gradient_x_input")
    leaves = source.clone().requires_grad_(), target.clone().requires_grad_()
    gradients = torch.autograd.grad(first_state(model(*leaves, tgt_mask=mask)), leaves)
    for n, (leaf, gradient) in enumerate(zip(leaves, gradients, strict=True)):
        expected = (leaf * gradient).sum(-1).detach()
        np.testing.assert_allclose(signed(trace, 2 * n), expected, atol=1e-5)


def test_integrated_gradients_that_have_not_converged_are_reported():
    with pytest.warns(UserWarning, match="not converged in 1 steps: they add up to .* use more"):
        analysis.attribute(bert(), {"input_ids": TOKENS}, 3, method="integrated_gradients", steps=1)


def test_integrated_gradients_from_a_baseline_token_add_up_to_the_change_of_the_output():
    model = bert()
    trace = analysis.attribute(
        model, {"input_ids": TOKENS}, 0, method="integrated_gradients", steps=100, baseline=1
    )
    with torch.no_grad():
        change = model(TOKENS).logits[0, 0] - model(torch.ones_like(TOKENS)).logits[0, 0]
    assert signed(trace).sum() == pytest.approx(float(change), abs=1e-3)


def test_gradient_x_input_agrees_with_captum():
    from captum.attr import LayerGradientXActivation

    model = gpt2()
    trace = analysis.attribute(model, TOKENS, (6, 11), method="gradient_x_input")
    method = LayerGradientXActivation(lambda ids: model(ids).logits[:, 6], model.transformer.wte)
    expected = method.attribute(TOKENS, target=11).sum(-1)
    np.testing.assert_allclose(signed(trace), expected.detach(), atol=1e-4)
    assert trace.tokens[trace.maps[0].queries].pieces == ("output",)


def test_gradient_x_input_of_an_encoder_decoder_model_covers_both_texts():
    inputs = {"input_ids": TOKENS, "decoder_input_ids": TARGET}
    trace = analysis.attribute(bart(), inputs, (4, 3), method="gradient_x_input")
    assert [trace.tokens[m.keys].pieces for m in trace.maps[::2]] == [
        trace.tokens["source"].pieces,
        trace.tokens["target"].pieces,
    ]
    assert all(np.abs(signed(trace, n)).max() > 0 for n in (0, 2))


def test_value_norms_equal_a_hand_computation():
    model = SmallAttention()
    x = torch.randn(1, 5, 12)
    trace = analysis.attribute(model, x, first_state, method="value_norm")
    q, k, v = model.projected(x)
    products = (q @ k.mT / 2).softmax(-1)[0] * v.norm(dim=-1)[0, :, None]
    expected = products / products.sum(-1, keepdim=True)
    np.testing.assert_allclose(trace.maps[0].weights, expected.detach(), atol=1e-6)


def test_rollout_of_cross_attention_continues_to_the_source():
    inputs = {"input_ids": TOKENS, "decoder_input_ids": TARGET}
    trace = analysis.attribute(bart(), inputs, method="rollout")
    output = bart(attn_implementation="eager")(**inputs, output_attentions=True)
    source = torch.eye(7)
    for weights in output.encoder_attentions:
        source = (0.5 * torch.eye(7) + 0.5 * weights[0].mean(0)) @ source
    expected = output.cross_attentions[1][0].mean(0) @ source
    last = [m for m in trace.maps if m.kind == "cross"][-1]
    np.testing.assert_allclose(last.weights[0], expected.detach(), atol=1e-5)


class SmallAttention(nn.Module):
    """Two heads of attention and a residual connection, by SDPA or step by step."""

    def __init__(self, style="sdpa"):
        super().__init__()
        torch.manual_seed(6)
        self.project, self.out, self.style = nn.Linear(12, 24), nn.Linear(8, 12), style
        self.eval()

    def projected(self, x):
        return self.project(x).unflatten(-1, (3, 2, 4)).permute(2, 0, 3, 1, 4)

    def forward(self, x, mask=None):
        q, k, v = self.projected(x)
        if self.style == "sdpa":
            context = scaled_dot_product_attention(q, k, v, mask)
        else:
            weights = (q @ k.mT / 2).softmax(-1)
            if self.style == "matmul":
                context = weights @ v
            elif self.style == "einsum":
                context = torch.einsum("bhqk,bhkd->bqhd", weights, v).transpose(1, 2)
            elif self.style == "folded":
                context = torch.bmm(weights.flatten(0, 1), v.flatten(0, 1)).unflatten(0, (-1, 2))
            elif self.style == "transposed":
                context = (v.mT @ weights.mT).mT
            else:
                context = (weights[..., None] * v[:, :, None]).sum(-2)
        return x + self.out(context.transpose(1, 2).flatten(2))


def first_state(states):
    return states[0, 0].square().sum()


@pytest.mark.parametrize("style", ["matmul", "einsum", "folded", "transposed", "sum"])
def test_gradients_of_weights_do_not_depend_on_how_attention_is_written(style):
    x = torch.randn(2, 5, 12)
    traces = [
        analysis.attribute(SmallAttention(s), x, first_state, method="gradient_x_weight")
        for s in ("sdpa", style)
    ]
    np.testing.assert_allclose(traces[0].maps[0].weights, traces[1].maps[0].weights, atol=1e-6)
    assert traces[0].maps[0].weights.max() > 1e-3


class GroupedHeads(SmallAttention):
    """Four heads of queries, and two of keys and values, which are repeated."""

    def __init__(self, style):
        super().__init__(style)
        self.project = nn.Linear(12, 16)
        self.eval()

    def projected(self, x):
        rows = self.project(x).split([8, 4, 4], -1)
        q, k, v = (r.unflatten(-1, (-1, 2)).transpose(1, 2) for r in rows)
        return q, k.repeat_interleave(2, 1), v.repeat_interleave(2, 1)


@pytest.mark.parametrize("style", ["einsum", "sum"])
@pytest.mark.parametrize("method", ["gradient_x_weight", "value_norm"])
def test_repeated_values_are_those_of_their_head(style, method):
    x = torch.randn(2, 5, 12)
    models = GroupedHeads("matmul"), GroupedHeads(style)
    models[1].load_state_dict(models[0].state_dict())
    traces = [analysis.attribute(m, x, first_state, method=method) for m in models]
    np.testing.assert_allclose(traces[0].maps[0].weights, traces[1].maps[0].weights, atol=1e-6)


class OneHead(SmallAttention):
    """One of the two heads, as a module of its own."""

    def __init__(self, whole, head):
        super().__init__()
        self.head = head
        self.load_state_dict(whole.state_dict())

    def forward(self, x):
        q, k, v = (rows[:, self.head] for rows in self.projected(x))
        return (q @ k.mT / 2).softmax(-1) @ v


class HeadsApart(SmallAttention):
    """The same layer with a module for each head."""

    def __init__(self, whole):
        super().__init__()
        self.load_state_dict(whole.state_dict())
        self.heads = nn.ModuleList([OneHead(whole, head) for head in range(2)])

    def forward(self, x):
        return x + self.out(torch.cat([head(x) for head in self.heads], -1))


@pytest.mark.parametrize("method", ["chefer", "rollout"])
def test_modules_of_one_head_each_are_one_layer(method):
    x = torch.randn(2, 5, 12)
    whole = nn.Sequential(SmallAttention(), SmallAttention())
    apart = nn.Sequential(*(HeadsApart(layer) for layer in whole))
    torch.testing.assert_close(apart(x), whole(x))
    expected, shown = (
        analysis.attribute(model.eval(), x, first_state, method=method) for model in (whole, apart)
    )
    assert len(shown.maps) == 1
    np.testing.assert_allclose(shown.maps[0].weights, expected.maps[0].weights, atol=1e-5)


@pytest.mark.parametrize("method", analysis.METHODS)
def test_every_method_works_with_torchs_transformer(method, tmp_path):
    torch.manual_seed(7)
    model = nn.Transformer(
        12, nhead=4, num_encoder_layers=2, num_decoder_layers=2, dim_feedforward=16,
        batch_first=True,
    ).eval()  # fmt: skip
    source, target = torch.randn(1, 6, 12), torch.randn(1, 4, 12)
    trace = analysis.attribute(model, (source, target), first_state, method=method, steps=3)
    trace.save(tmp_path / "trace.json")
    assert load_trace(tmp_path / "trace.json").maps[0].shape == trace.maps[0].shape
    assert {"cross"} <= {m.kind for m in trace.maps}
    trace.plot()


@pytest.mark.parametrize("method", analysis.METHODS)
def test_every_method_works_with_regards_own_attention(method):
    attention = nn.Sequential(regard.MultiHeadAttention(12, heads=3)).eval()
    x = torch.randn(1, 5, 12)
    trace = analysis.attribute(attention, x, first_state, method=method, steps=3)
    assert trace.maps[0].weights.max() > 0


def test_frozen_parameters_do_not_change_the_attribution():
    frozen = bert()
    frozen.requires_grad_(False)
    traces = [analysis.attribute(m, {"input_ids": TOKENS}, 2) for m in (bert(), frozen)]
    np.testing.assert_array_equal(traces[0].maps[0].weights, traces[1].maps[0].weights)


def test_parameters_get_no_gradient():
    model = bert()
    analysis.attribute(model, {"input_ids": TOKENS}, 2)
    assert all(parameter.grad is None for parameter in model.parameters())


class DetachedLayer(SmallAttention):
    def forward(self, x):
        with torch.no_grad():
            x = super().forward(x)
        return super().forward(x)


class Windows(SmallAttention):
    def forward(self, x):
        return super().forward(x.unflatten(1, (2, -1)).flatten(0, 1)).reshape(x.shape)


@pytest.mark.parametrize(
    ("model", "arguments", "message"),
    [
        (bert, {"method": "chefr"}, "Did you mean 'chefer'"),
        (bert, {"target": 9}, r"a class within \(4,\), but it is 9"),
        (bert, {"target": (1, 2)}, "target must be a class"),
        (gpt2, {"target": 3}, r"\(position, token\) within \(7, 40\)"),
        (lambda: bert().train(), {}, "call model.eval"),
        (bert, {"target": lambda output: 3.0}, "returned a float"),
        (bert, {"method": "integrated_gradients", "steps": 0}, "steps must be 1 or more"),
    ],
)
def test_wrong_arguments_are_refused(model, arguments, message):
    with pytest.raises(RegardError, match=message):
        analysis.attribute(model(), {"input_ids": TOKENS}, **arguments)


def test_layer_without_gradient_is_refused():
    with pytest.raises(RegardError, match="no gradient reaches the attention"):
        analysis.attribute(DetachedLayer(), torch.randn(1, 5, 12), first_state)


class MaskedWindows(SmallAttention):
    """The same as `Windows`, over all positions with a mask."""

    def forward(self, x):
        window = torch.arange(x.shape[1]) // (x.shape[1] // 2)
        return super().forward(x, window[:, None] == window)


@pytest.mark.parametrize("method", ["chefer", "rollout", "gradient_x_weight"])
def test_windows_agree_with_a_mask_over_all_positions(method):
    torch.manual_seed(0)
    windows, masked = Windows(), MaskedWindows()
    masked.load_state_dict(windows.state_dict())
    x = torch.randn(2, 6, 12)
    shown, expected = (
        analysis.attribute(model, x, first_state, method=method) for model in (windows, masked)
    )
    assert [m.shape for m in shown.maps] == [m.shape for m in expected.maps]
    for ours, theirs in zip(shown.maps, expected.maps, strict=True):
        np.testing.assert_allclose(ours.weights, theirs.weights, atol=1e-6)


def test_attention_that_was_seen_but_not_captured_is_refused(monkeypatch):
    from regard.capture.calls import SDPACall

    def fail(*args, **kwargs):
        raise RuntimeError("an unknown layout")

    monkeypatch.setattr(SDPACall, "_find_offset", fail)
    model = nn.Sequential(regard.MultiHeadAttention(12, heads=3), SmallAttention()).eval()
    with pytest.raises(RegardError, match="an unknown layout"):
        analysis.attribute(model, torch.randn(1, 5, 12), first_state)


@pytest.mark.usefixtures("unchecked")
def test_model_that_is_no_module_is_a_type_error():
    with pytest.raises(TypeError, match=r"must be an nn\.Module"):
        analysis.attribute("model", TOKENS)


@pytest.mark.usefixtures("unchecked")
def test_text_in_place_of_inputs_is_a_type_error():
    with pytest.raises(TypeError, match=r"inputs must be what the model is called with, such as"):
        analysis.attribute(nn.Linear(2, 2).eval(), "the cat")


@pytest.mark.filterwarnings("ignore:integrated gradients have not converged")
@pytest.mark.parametrize("method", analysis.METHODS)
def test_position_first_inputs_are_attributed_as_batch_first_ones(method):
    """torch's own layers read (position, batch, width) by default."""
    torch.manual_seed(8)
    layers = [
        nn.TransformerEncoder(
            nn.TransformerEncoderLayer(12, 3, 16, batch_first=batch_first), 2,
            enable_nested_tensor=False,
        ).eval()
        for batch_first in (True, False)
    ]  # fmt: skip
    layers[1].load_state_dict(layers[0].state_dict())
    x = torch.randn(2, 5, 12)
    expected, shown = (
        analysis.attribute(model, inputs, target, method=method, batch_index=1, steps=3)
        for model, inputs, target in (
            (layers[0], x, lambda states: states[1, 3].sum()),
            (layers[1], x.transpose(0, 1), lambda states: states[3, 1].sum()),
        )
    )
    for ours, theirs in zip(shown.maps, expected.maps, strict=True):
        np.testing.assert_allclose(ours.weights, theirs.weights, atol=1e-6)


def test_token_ids_that_a_model_transposes_are_recognised():
    torch.manual_seed(9)
    config = transformers.XLNetConfig(vocab_size=40, d_model=12, n_layer=2, n_head=3, d_inner=16)
    model = sharpen(transformers.XLNetModel(config)).eval()
    ids = torch.cat([TOKENS, TOKENS.flip(1)])

    def target(output):
        return output[0][1, 2, 3]

    trace = analysis.attribute(
        model, {"input_ids": ids}, target, method="gradient_x_input", batch_index=1
    )
    vectors = model.word_embedding(ids).detach().requires_grad_()
    (gradient,) = torch.autograd.grad(target(model(inputs_embeds=vectors)), vectors)
    expected = (gradient * vectors).sum(-1)[1].detach()
    np.testing.assert_allclose(signed(trace)[0], expected, atol=1e-5)


@pytest.mark.parametrize("method", ["gradient_x_input", "integrated_gradients"])
def test_inputs_without_vectors_are_refused(method):
    class Constant(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.rows = SmallAttention(), nn.Parameter(torch.randn(1, 5, 12))

        def forward(self, ids):
            return self.layer(self.rows + ids.sum())

    with pytest.raises(RegardError, match="that an embedding reads, or vectors .* there are none"):
        analysis.attribute(Constant().eval(), TOKENS, first_state, method=method)


class WeightsInParts(nn.Module):
    """Attention whose weights are multiplied with the values whole, or in two parts."""

    def __init__(self, axis=None):
        super().__init__()
        self.axis = axis
        self.qkv = nn.Linear(12, 36)

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, 3, 4)).permute(2, 0, 3, 1, 4)
        weights = (q @ k.mT).softmax(-1)
        if self.axis is None:
            return (weights @ v).sum(1)
        parts = weights.split([2, weights.shape[self.axis] - 2], dim=self.axis)
        if self.axis == 2:
            return torch.cat([part @ v for part in parts], dim=2).sum(1)
        sizes = [part.shape[self.axis] for part in parts]
        values = v.split(sizes, dim=1 if self.axis == 1 else 2)
        products = [part @ value for part, value in zip(parts, values, strict=True)]
        return (torch.cat(products, dim=1) if self.axis == 1 else sum(products)).sum(1)


@pytest.mark.parametrize("method", ["gradient_x_weight", "value_norm"])
@pytest.mark.parametrize("axis", [1, 2, 3])
def test_parts_of_one_softmax_have_the_attribution_of_the_whole(axis, method):
    torch.manual_seed(0)
    whole, parts = WeightsInParts().eval(), WeightsInParts(axis).eval()
    parts.load_state_dict(whole.state_dict())
    x, found = torch.randn(2, 5, 12), []
    for model in (whole, parts):
        trace = analysis.attribute(
            model, x, lambda y: (y[1] ** 2).sum(), method=method, batch_index=1
        )
        (attention_map,) = trace.maps
        found.append(attention_map.weights)
    np.testing.assert_allclose(found[1], found[0], atol=1e-5)


class LearnedKeys(nn.Module):
    """Causal attention over two learned keys before those of the text."""

    def __init__(self):
        super().__init__()
        self.qkv, self.memory = nn.Linear(12, 36), nn.Parameter(torch.randn(2, 1, 2, 12))

    def forward(self, rows):
        q, k, v = self.qkv(rows).chunk(3, dim=-1)
        memory = self.memory.expand(-1, len(rows), -1, -1)
        k, v = (torch.cat(pair, dim=1) for pair in zip(memory, (k, v), strict=True))
        later = torch.ones(q.shape[1], k.shape[1]).triu(3).bool()
        return (q @ k.mT).masked_fill(later, -torch.inf).softmax(-1) @ v


@pytest.mark.parametrize("method", ["chefer", "gradient_x_weight"])
def test_keys_before_the_first_query_are_refused_by_name(method):
    model, rows = LearnedKeys().eval(), torch.randn(1, 4, 12)
    with pytest.raises(
        RegardError, match="LearnedKeys has 2 keys before its first query, from a cache or learned"
    ):
        analysis.attribute(model, rows, lambda y: y[0, -1].sum(), method=method)
    trace = analysis.attribute(model, rows, lambda y: y[0, -1].sum(), method="integrated_gradients")
    assert trace.maps[0].shape[-1] == 4


class ReadInPlace(nn.Module):
    """A layer whose vectors are scaled in place, or read by a convolution over their positions."""

    def __init__(self, style):
        super().__init__()
        torch.manual_seed(10)
        self.style = style
        self.embedding, self.convolution = nn.Embedding(9, 12), nn.Conv1d(12, 12, 3, stride=2)
        self.layer = nn.TransformerEncoderLayer(12, 3, 16, batch_first=True)

    def forward(self, x):
        x = x if x.is_floating_point() else self.embedding(x)
        if self.style == "convolution":
            return self.layer(self.convolution(x).mT)
        x *= 3.0
        return self.layer(x)


@pytest.mark.filterwarnings("ignore:integrated gradients have not converged")
@pytest.mark.parametrize("method", ["gradient_x_input", "integrated_gradients", "chefer"])
def test_model_may_change_what_it_reads_in_place(method):
    model, ids = ReadInPlace("in place").eval(), torch.tensor([[1, 4, 2, 7]])
    vectors = model.embedding(ids).detach()
    of_ids, of_vectors = (
        analysis.attribute(model, x, lambda states: states[0, 1, 2], method=method, steps=3)
        for x in (ids, vectors.clone())
    )
    for ours, theirs in zip(of_ids.maps, of_vectors.maps, strict=True):
        np.testing.assert_allclose(ours.weights, theirs.weights, atol=1e-6)


def test_positions_of_what_a_convolution_reads_are_its_last_axis():
    model, x = ReadInPlace("convolution").eval(), torch.randn(2, 12, 9)

    def target(states):
        return states[1, 0, 2]

    trace = analysis.attribute(model, x, target, method="gradient_x_input", batch_index=1)
    x.requires_grad_()
    (gradient,) = torch.autograd.grad(target(model(x)), x)
    expected = (gradient * x).sum(1)[1].detach()
    np.testing.assert_allclose(signed(trace)[0], expected, atol=1e-5)
    assert expected.abs().max() > 1e-2


class CopiedClassToken(nn.Module):
    """Attention over all positions, then in blocks that each have a copy of the first of them."""

    def __init__(self):
        super().__init__()
        self.first, self.last = (
            nn.MultiheadAttention(12, num_heads=3, batch_first=True) for _ in range(2)
        )

    def forward(self, x):
        x = x + self.first(x, x, x)[0]
        token = x[:, None, :1].expand(-1, 3, -1, -1)
        rows = torch.cat([token, x[:, 1:].unflatten(1, (3, 4))], dim=2).flatten(0, 1)
        return self.last(rows, rows, rows)[0].unflatten(0, (-1, 3))[:, :, 0].mean(1)


def test_layer_that_cannot_be_put_back_to_positions_leaves_methods_by_layer():
    torch.manual_seed(0)
    model, x = CopiedClassToken().eval(), torch.randn(1, 13, 12)
    for method in ("rollout", "chefer"):
        with pytest.raises(RegardError, match="layers cannot be combined, since several windows"):
            analysis.attribute(model, x, torch.sum, method=method)
    for method in ("gradient_x_weight", "value_norm"):
        with pytest.warns(UserWarning, match="trace leaves out last"):
            trace = analysis.attribute(model, x, torch.sum, method=method)
        assert [m.name for m in trace.maps] == ["first"]
        assert (np.asarray(trace.maps[0].weights) > 0).any()
    with pytest.warns(UserWarning, match="trace leaves out last"):
        trace = analysis.attribute(model, x, torch.sum, method="integrated_gradients")
    assert trace.maps[0].shape[-1] == 13
