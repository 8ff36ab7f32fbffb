"""Queries and keys that `watch(model, keep_vectors=True)` keeps."""

import pytest
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

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
    "regard": MultiHeadAttention(12, heads=3),
    "regard with a mask": MultiHeadAttention(12, heads=3),
}


@pytest.mark.parametrize("name", MODELS)
def test_vectors_give_the_weights_of_the_record(name):
    model, x = MODELS[name], torch.randn(2, 5, 12)
    with torch.no_grad(), watch(model, keep_vectors=True) as capture:
        if name == "torch":
            model(x, x, x, need_weights=False)
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
