"""Queries and keys that `watch(model, keep_vectors=True)` keeps."""

import pytest
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

from capture.patterns import PATTERNS
from regard import MultiHeadAttention, edit, masks, watch
from regard.errors import RegardError
from regard.viz import plot_neuron_view


class Projected(nn.Module):
    """Self-attention of grouped heads on torch's kernel."""

    def __init__(self):
        super().__init__()
        self.project = nn.Linear(12, 12 + 6 + 6)

    def forward(self, x):
        rows = self.project(x).split([12, 6, 6], -1)
        q, k, v = (r.unflatten(-1, (-1, 3)).transpose(1, 2) for r in rows)
        return scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)


def scores_of(vectors):
    keys = vectors.keys.repeat_interleave(vectors.queries.shape[1] // vectors.keys.shape[1], 1)
    return vectors.queries @ keys.transpose(-2, -1) * vectors.scale


MODELS = {
    "sdpa": Projected(),
    "torch": nn.MultiheadAttention(12, 3, batch_first=True),
    "torch with weights": nn.MultiheadAttention(12, 3, batch_first=True),
    "regard": MultiHeadAttention(12, heads=3),
    "regard with a mask": MultiHeadAttention(12, heads=3),
}


@pytest.mark.parametrize("name", MODELS)
def test_vectors_give_the_weights_of_the_record(name):
    model, x = MODELS[name], torch.randn(2, 5, 12)
    with torch.no_grad(), watch(model, keep_vectors=True) as capture:
        if name.startswith("torch"):
            model(x, x, x, need_weights=name == "torch with weights")
        elif name == "regard with a mask":
            model(x, mask=masks.lengths([5, 5]))
        else:
            model(x)
    scores = scores_of(capture[0].vectors)
    if name == "sdpa":
        scores = scores.masked_fill(~torch.ones(5, 5).tril().bool(), -torch.inf)
    torch.testing.assert_close(scores.softmax(-1), capture[0].weights)


def test_vectors_are_not_kept_by_default():
    model = MultiHeadAttention(12, heads=3)
    with watch(model) as capture:
        model(torch.randn(2, 5, 12))
    assert capture[0].vectors is None
    with pytest.raises(RegardError, match="keep_vectors=True"):
        plot_neuron_view(capture[0])


def test_vectors_of_summarized_weights_are_kept_for_all_heads():
    model = MultiHeadAttention(12, heads=3)
    with watch(model, keep="summary", heads=[1], keep_vectors=True) as capture:
        model(torch.randn(2, 5, 12))
    assert capture[0].vectors.queries.shape == (2, 3, 5, 4)
    assert not capture[0].vectors.queries.requires_grad


def test_edited_head_keeps_the_vectors_of_the_model():
    model, x = MultiHeadAttention(12, heads=3), torch.randn(2, 5, 12)
    with edit(model) as edits, watch(model, keep_vectors=True) as capture:
        edits["*"].ablate()
        model(x)
    with watch(model, keep_vectors=True) as plain:
        model(x)
    assert torch.equal(capture[0].vectors.queries, plain[0].vectors.queries)


def test_generation_joins_the_vectors_of_its_steps():
    transformers = pytest.importorskip("transformers")
    config = transformers.LlamaConfig(
        vocab_size=31, hidden_size=24, intermediate_size=20, num_hidden_layers=1,
        num_attention_heads=4, num_key_value_heads=2, eos_token_id=None, pad_token_id=0,
    )  # fmt: skip
    model, tokens = transformers.LlamaForCausalLM(config).eval(), torch.tensor([[3, 8, 5]])
    with torch.no_grad(), watch(model, keep_vectors=True) as steps:
        written = model.generate(tokens, max_new_tokens=4, do_sample=False)
    with torch.no_grad(), watch(model, keep_vectors=True) as once:
        model(written[:, :-1])
    joined, whole = steps[0].vectors, once[0].vectors
    torch.testing.assert_close(joined.queries, whole.queries, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(
        joined.keys[:, : whole.keys.shape[1]], whole.keys, rtol=1e-4, atol=1e-5
    )


def test_neuron_view_of_a_capture():
    model = MultiHeadAttention(12, heads=3)
    with torch.no_grad(), watch(model, keep_vectors=True) as capture:
        model(torch.randn(2, 3, 12))
    figure = plot_neuron_view(capture[0], head=1, query=2, tokens=["the", "old", "cat"])
    assert figure.get_suptitle() == "MultiHeadAttention · head 1 · query cat"


# scores with a bias, a cap, or in half precision, which vectors alone do not give
BIASED = {
    *("heads.Alibi", "heads.DebertaDisentangled", "heads.T5RelativeBias", "windows.SwinBlock"),
    *("normalisers.SoftcapTanh", "products.Baddbmm", "running.Autocast", "running.Float16"),
    *("sdpa.SdpaFloatBias", "token_mixing.ForgetGates", "windows.SwinShiftedBlock"),
}
NEED_GRADIENTS = {
    *("running.Backward", "running.Checkpointed", "running.InputsWithGradients"),
    "running.TrainingMode",
}
WITHOUT_VECTORS = {
    *("cross.BahdanauBmm", "pooling.LinearToOne", "cross.NadarayaWatson", "products.ByCdist"),
    *("after_softmax.TalkingHeadsLinear", "cross.BahdanauMulSum"),
}
DEFAULT_SIZES = [name for name in PATTERNS if "-" not in name]


def run_pattern(name):
    pattern = PATTERNS[name]
    model, inputs = pattern.build(), pattern.inputs()
    gradients = torch.set_grad_enabled(name in NEED_GRADIENTS)
    with gradients, watch(model, keep="all", keep_vectors=True) as capture:
        pattern.run(model, *inputs)
    return capture


@pytest.mark.parametrize("name", [name for name in DEFAULT_SIZES if name not in BIASED])
def test_vectors_of_every_style_give_its_weights(name):
    for record in run_pattern(name):
        if record.vectors is None or record.normaliser != "softmax" or record.applied:
            continue
        weights = record.flat_weights
        scores = scores_of(record.vectors)[:, record.heads]
        assert scores.shape == weights.shape
        is_visible = weights > 1e-12
        constant = torch.where(is_visible, weights.clamp_min(1e-12).log() - scores, torch.nan)
        spread = constant - constant.nanmean(-1, keepdim=True)
        torch.testing.assert_close(spread.nan_to_num(), torch.zeros_like(spread), atol=1e-4, rtol=0)


@pytest.mark.parametrize("name", sorted(WITHOUT_VECTORS))
def test_scores_that_are_no_product_of_queries_and_keys_have_no_vectors(name):
    capture = run_pattern(name)
    assert all(record.vectors is None for record in capture)
    assert str(capture).splitlines()[1].endswith("no vectors")


def test_most_styles_have_vectors():
    known = [all(x.vectors is not None for x in run_pattern(name)) for name in DEFAULT_SIZES]
    assert sum(known) > 0.75 * len(known)


class Scored(nn.Module):
    """Attention of one head whose scores are a product that a function changes."""

    def __init__(self, change):
        super().__init__()
        self.to_q, self.to_k, self.change = nn.Linear(12, 12), nn.Linear(12, 12), change

    def forward(self, x):
        scores = self.to_q(x) @ self.to_k(x).transpose(1, 2)
        return self.change(scores).softmax(-1) @ x


@pytest.mark.parametrize(
    ("change", "scale"),
    [
        (lambda s: s / 12**0.5, 12**-0.5),
        (lambda s: 0.5 * s, 0.5),
        (lambda s: s.mul_(3.0).div_(2.0), 1.5),
        (lambda s: (s + 1.0) * torch.tensor(2.0), 2.0),
        (lambda s: 30 * torch.tanh(s / 30), 1 / 30),
        (lambda s: s.float().masked_fill(s > 9, -torch.inf) * 0.25, 0.25),
    ],
)
def test_scale_is_that_of_the_scores(change, scale):
    model = Scored(change)
    with torch.no_grad(), watch(model, keep_vectors=True) as capture:
        model(torch.randn(2, 5, 12))
    assert capture[0].vectors.scale == pytest.approx(scale)


@pytest.mark.parametrize(
    "change", [lambda s: 1.0 - s, lambda s: s**2, lambda s: s * torch.rand(5, 5), lambda s: 1 / s]
)
def test_scores_that_are_no_multiple_of_the_product_have_no_vectors(change):
    model = Scored(change)
    with torch.no_grad(), watch(model, keep_vectors=True) as capture:
        model(torch.randn(2, 5, 12))
    assert len(capture) == 1 and capture[0].vectors is None


@pytest.mark.parametrize("family", ["gpt2", "llama", "bert"])
def test_vectors_of_eager_attention_are_those_of_the_kernel(family):
    transformers = pytest.importorskip("transformers")
    sizes = {"vocab_size": 31, "hidden_size": 24, "num_hidden_layers": 1, "num_attention_heads": 4}
    configs = {
        "gpt2": lambda: transformers.GPT2Config(vocab_size=31, n_embd=24, n_layer=1, n_head=4),
        "llama": lambda: transformers.LlamaConfig(
            **sizes, intermediate_size=20, num_key_value_heads=2, pad_token_id=0
        ),
        "bert": lambda: transformers.BertConfig(**sizes, intermediate_size=20),
    }
    tokens, found = torch.tensor([[3, 8, 5, 9]]), []
    for implementation in ("sdpa", "eager"):
        torch.manual_seed(0)
        config = configs[family]()
        config._attn_implementation = implementation
        model = transformers.AutoModel.from_config(config).eval()
        with torch.no_grad(), watch(model, keep_vectors=True) as capture:
            model(tokens)
        found.append(capture[0].vectors)
    kernel, eager = found
    torch.testing.assert_close(scores_of(eager), scores_of(kernel), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(eager.queries, kernel.queries)
