"""Steps of a generation with a KV cache become one record, equal to that of a single pass."""

import pytest
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

from helpers.watched_models import SelfAttention, sharpen
from regard import masks, watch
from regard.attention import KVCache, MultiHeadAttention
from regard.models import Embedding, RecurrentModel


def test_steps_over_the_cache_of_regard_are_one_record():
    model = MultiHeadAttention(12, 4, key_heads=2)
    rows = torch.randn(2, 6, 12)
    with torch.no_grad():
        expected = model.look(rows, mask=masks.causal()).weights
        with watch(model) as capture:
            cache = KVCache()
            for step in rows.split([3, 1, 1, 1], dim=1):
                _, cache = model.step(step, cache)
    assert [(x.steps, x.kind) for x in capture] == [(4, "causal")]
    torch.testing.assert_close(capture[0].weights, expected)


class LatentCache(nn.Module):
    """Causal attention whose cache holds narrow rows that keys and values are projected from."""

    def __init__(self):
        super().__init__()
        self.query, self.down, self.up = nn.Linear(12, 12), nn.Linear(12, 5), nn.Linear(5, 24)

    def forward(self, rows, cache=None):
        latent = self.down(rows)
        cache = latent if cache is None else torch.cat([cache, latent], dim=1)
        vectors = (self.query(rows), *self.up(cache).chunk(2, dim=-1))
        queries, keys, values = (x.unflatten(-1, (3, 4)).transpose(1, 2) for x in vectors)
        context = scaled_dot_product_attention(queries, keys, values, is_causal=rows.shape[1] > 1)
        return context, cache


class SharedLayer(nn.Module):
    """One layer that is applied twice, with a cache for each time."""

    def __init__(self):
        super().__init__()
        self.layer = MultiHeadAttention(12, 3)

    def forward(self, rows, caches=None):
        new_caches = []
        for cache in caches or (KVCache(), KVCache()):
            rows, cache = self.layer.step(rows, cache)
            new_caches.append(cache)
        return rows, new_caches


@pytest.mark.parametrize("make_model, num_records", [(LatentCache, 1), (SharedLayer, 2)])
@torch.no_grad()
def test_steps_are_matched_by_their_cached_keys(make_model, num_records):
    model, rows = make_model(), torch.randn(2, 7, 12) * 3
    with watch(model) as capture:
        _, cache = model(rows[:, :4])
        for n in range(4, 7):
            _, cache = model(rows[:, n : n + 1], cache)
    with watch(model) as full:
        model(rows)
    assert [x.steps for x in capture] == [4] * num_records
    assert [x.kind for x in capture] == [x.kind for x in full] == ["causal"] * num_records
    for captured, expected in zip(capture, full, strict=True):
        torch.testing.assert_close(captured.weights, expected.weights)


def test_cache_that_is_written_in_place_is_causal():
    class InPlaceCache(SelfAttention):
        def __init__(self):
            super().__init__()
            self.buffers_, self.length = [torch.zeros(2, 3, 9, 4) for _ in range(2)], 0

        def forward(self, rows):
            queries, *new = self.queries_keys_values(rows)
            end = self.length + rows.shape[1]
            for buffer, part in zip(self.buffers_, new, strict=True):
                buffer[:, :, self.length : end] = part
            self.length = end
            filled = (buffer[:, :, :end] for buffer in self.buffers_)
            return scaled_dot_product_attention(queries, *filled)

    model = InPlaceCache()
    with torch.no_grad(), watch(model) as capture:
        for _ in range(3):
            model(torch.randn(2, 1, 12))
    assert capture[-1].kind == "causal"


@pytest.mark.parametrize("score", ["additive", "bilinear"])
def test_recurrent_decoder_is_one_record_of_all_its_steps(score):
    model = sharpen(RecurrentModel(Embedding(20, 12), Embedding(20, 12), score=score)).eval()
    source, lengths = torch.randint(4, 20, (2, 7)), torch.tensor([7, 4])
    target = torch.randint(4, 20, (2, 5))
    with torch.no_grad():
        _, weights = model.forward_with_weights(source, lengths, target)
        with watch(model) as capture:
            model.decode(target, model.encode(source, lengths))
    assert len(capture) == 1 and capture[0].kind == "cross" and capture[0].steps == 5
    torch.testing.assert_close(capture[0].weights, weights.cross[0])


class AttentionPooling(nn.Module):
    def __init__(self):
        super().__init__()
        self.pool = nn.MultiheadAttention(12, 3, batch_first=True)
        self.query = nn.Parameter(torch.randn(1, 1, 12))

    def forward(self, rows):
        return self.pool(self.query.expand(len(rows), -1, -1), rows, rows)


def test_two_model_calls_over_the_same_text_are_two_records():
    model, rows = AttentionPooling(), torch.randn(2, 5, 12)
    with watch(model) as capture:
        for _ in range(2):
            model(rows)
    assert [(x.call, x.steps) for x in capture] == [(0, 1), (1, 1)]
    assert capture.weights("pool", 1).shape == (2, 3, 1, 5)


def test_keys_recomputed_in_each_step_of_one_model_call_are_one_record():
    class Decoder(AttentionPooling):
        def forward(self, rows):
            return [super(Decoder, self).forward(rows) for _ in range(4)]

    model = Decoder()
    with watch(model) as capture:
        model(torch.randn(2, 5, 12))
    assert [x.steps for x in capture] == [4]


def small_transformer(implementation):
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(
        vocab_size=31, n_embd=24, n_layer=2, n_head=3, n_positions=32, bos_token_id=0,
        eos_token_id=None, pad_token_id=0,
    )  # fmt: skip
    model = transformers.GPT2LMHeadModel._from_config(config, attn_implementation=implementation)
    return model.eval()


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
def test_beams_are_items_of_the_batch(implementation):
    model, ids = small_transformer(implementation), torch.tensor([[5, 9, 3, 14], [7, 20, 11, 4]])
    with torch.no_grad(), watch(model) as capture:
        model.generate(ids, max_new_tokens=4, do_sample=False, num_beams=3)
    assert not capture.failures
    assert {(x.kind, x.weights.shape[:2]) for x in capture} == {("causal", (6, 3))}


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
def test_steps_over_a_static_cache_are_one_record(implementation):
    model, ids = small_transformer(implementation), torch.tensor([[5, 9, 3, 14], [7, 20, 11, 4]])
    settings = {"max_new_tokens": 4, "do_sample": False}
    with torch.no_grad(), watch(model) as capture:
        text = model.generate(ids, cache_implementation="static", **settings)
    with torch.no_grad(), watch(model) as whole:
        model(text[:, :-1])
    assert [x.kind for x in capture] == ["causal", "causal"]
    for record, expected in zip(capture, whole, strict=True):
        torch.testing.assert_close(record.weights, expected.weights, atol=1e-5, rtol=1e-4)


def test_heads_are_known_where_a_static_cache_is_folded_into_the_batch():
    """Bloom multiplies (batch · head, query, key) with values of a cache that was made before."""
    transformers = pytest.importorskip("transformers")
    config = transformers.BloomConfig(
        vocab_size=31, hidden_size=24, n_layer=2, n_head=3, bos_token_id=0, eos_token_id=None,
        pad_token_id=0,
    )  # fmt: skip
    model, ids = transformers.BloomForCausalLM(config).eval(), torch.tensor([[5, 9, 3], [7, 20, 4]])
    settings = {"max_new_tokens": 3, "do_sample": False, "cache_implementation": "static"}
    with torch.no_grad(), watch(model) as capture:
        text = model.generate(ids, **settings)
    with torch.no_grad(), watch(model) as whole:
        model(text[:, :-1])
    for record, expected in zip(capture, whole, strict=True):
        assert record.weights.shape == (2, 3, 5, 5)
        torch.testing.assert_close(record.weights, expected.weights, atol=1e-5, rtol=1e-4)


def test_rows_are_known_where_projections_are_products_with_a_transposed_parameter():
    """Falcon projects by `hidden_states @ weight.T`."""
    transformers = pytest.importorskip("transformers")
    config = transformers.FalconConfig(
        vocab_size=31, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        multi_query=True, eos_token_id=None, pad_token_id=0,
    )  # fmt: skip
    model = transformers.FalconForCausalLM._from_config(config, attn_implementation="eager").eval()
    with torch.no_grad(), watch(model) as capture:
        model.generate(torch.tensor([[5, 9, 3, 14]]), max_new_tokens=4, do_sample=False)
    assert [(x.kind, x.weights.shape) for x in capture] == [("causal", (1, 4, 7, 7))] * 2
