"""Hugging Face models on their default kernel, against what their slow one says of itself."""

import pytest
import torch

pytest.importorskip("transformers")
import transformers as hf

from regard import watch

pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")

SIZES = {
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 32,
    "vocab_size": 50,
    "max_position_embeddings": 32,
}
BOTH = {
    "d_model": 24,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 32,
    "decoder_ffn_dim": 32,
    "vocab_size": 50,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 1,
}
GPT2 = {"n_embd": 24, "n_layer": 2, "n_head": 4, "vocab_size": 50, "n_positions": 32}
GPT2 |= {"bos_token_id": 1, "eos_token_id": 2}
T5 = {"d_model": 24, "d_kv": 6, "d_ff": 32, "num_layers": 2, "num_heads": 4, "vocab_size": 50}
POSITIONS = {"relative_attention": True, "pos_att_type": ["c2p", "p2c"]}
IMAGE = {"image_size": 8, "patch_size": 4}
SOUND = {"num_mel_bins": 8, "max_source_positions": 10, "max_target_positions": 12}

WORDS = torch.tensor([[9, 4, 27, 33, 5, 41, 8], [14, 7, 7, 22, 3, 0, 0]])
RIGHT = (WORDS > 0).long()
LEFT = RIGHT.flip(1)
TARGET = torch.tensor([[1, 30, 12, 6, 44], [1, 18, 25, 9, 10]])
AS_LONG = torch.tensor([[1, 30, 12, 6, 44, 5, 5], [1, 18, 25, 9, 10, 3, 8]])

CASES = {
    "BERT": (hf.BertConfig, SIZES, {"input_ids": WORDS, "attention_mask": RIGHT}),
    "ALBERT": (hf.AlbertConfig, SIZES | {"embedding_size": 8}, {"input_ids": WORDS}),
    "GPT-2": (hf.GPT2Config, GPT2, {"input_ids": WORDS}),
    "GPT-2, padded": (hf.GPT2Config, GPT2, {"input_ids": WORDS.flip(1), "attention_mask": LEFT}),
    "Llama": (hf.LlamaConfig, SIZES | {"num_key_value_heads": 2}, {"input_ids": WORDS}),
    "ViT": (hf.ViTConfig, SIZES | IMAGE, {"pixel_values": torch.ones(2, 3, 8, 8)}),
    "DeBERTa": (hf.DebertaConfig, SIZES | POSITIONS, {"input_ids": WORDS, "attention_mask": RIGHT}),
    "T5": (
        hf.T5Config,
        T5,
        {"input_ids": WORDS, "attention_mask": RIGHT, "decoder_input_ids": TARGET},
    ),
    "Marian": (
        hf.MarianConfig,
        BOTH,
        {"input_ids": WORDS, "attention_mask": RIGHT, "decoder_input_ids": AS_LONG},
    ),
    "Whisper": (
        hf.WhisperConfig,
        BOTH | SOUND,
        {"input_features": torch.ones(2, 8, 20), "decoder_input_ids": TARGET},
    ),
}
for _, _, given in CASES.values():
    for name in ("pixel_values", "input_features"):
        if name in given:
            given[name] = torch.sin(torch.arange(given[name].numel()) ** 1.3).view_as(given[name])


def built(config, settings, kind=hf.AutoModel):
    """Build a random model that looks somewhere: a fresh one looks everywhere alike."""
    model = kind.from_config(config(**settings)).eval()
    torch.manual_seed(1)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.ndim > 1:
                weight.normal_(0, 0.35)
    return model


def weights_of(model, given):
    """Ask the slow kernel for its weights: encoder, decoder and cross, if there are three."""
    model.set_attn_implementation("eager")
    out = model(**given, output_attentions=True)
    if "decoder_input_ids" not in given:
        return {"all": out.attentions}
    return {
        "self": out.encoder_attentions,
        "causal": out.decoder_attentions,
        "cross": out.cross_attentions,
    }


@pytest.mark.parametrize("case", CASES)
@torch.no_grad()
def test_weights_are_those_of_the_slow_kernel(case):
    config, settings, given = CASES[case]
    model = built(config, settings)
    plain = model(**given)[0]
    with watch(model) as seen:
        watched = model(**given)[0]
    assert torch.equal(plain, watched)
    reference = weights_of(model, given)
    assert len(seen) == sum(map(len, reference.values()))
    for kind, layers in reference.items():
        looks = [look for look in seen if kind in ("all", look.kind)]
        for look, expected in zip(looks, layers, strict=True):
            assert expected.max() > 0.5 and expected.std() > 0.1, "the test could not fail"
            rows = _real_rows(case, expected.shape[2])
            torch.testing.assert_close(
                look.weights.transpose(1, 2)[rows],
                expected.transpose(1, 2)[rows],
                atol=1e-5,
                rtol=0,
            )


def _real_rows(case, queries):
    """Leave padding before a text out: the two kernels let it look at different nothings."""
    return LEFT.bool() if case == "GPT-2, padded" else torch.ones(2, queries, dtype=torch.bool)


@pytest.mark.parametrize("case", ["GPT-2", "Llama", "Marian", "T5"])
@torch.no_grad()
def test_layers_differ_so_that_the_comparison_can_fail(case):
    config, settings, given = CASES[case]
    model = built(config, settings)
    with watch(model) as seen:
        model(**given)
    by_kind = [look.weights for look in seen if look.kind == "causal"]
    assert (by_kind[0] - by_kind[1]).abs().max() > 0.3


@pytest.mark.parametrize("case", ["GPT-2", "Llama"])
@torch.no_grad()
def test_greedy_generation_is_one_full_pass(case):
    config, settings, _ = CASES[case]
    model = built(config, settings, hf.AutoModelForCausalLM)
    ask = {"max_new_tokens": 6, "min_new_tokens": 6, "do_sample": False, "pad_token_id": 0}
    words = WORDS[:, :4]
    plain = model.generate(words, attention_mask=torch.ones_like(words), **ask)
    with watch(model) as seen:
        watched = model.generate(words, attention_mask=torch.ones_like(words), **ask)
    assert torch.equal(plain, watched)
    assert len(seen) == 2 and [look.steps for look in seen] == [6, 6]
    with watch(model) as whole:
        model(watched[:, :-1])
    for look, expected in zip(seen, whole, strict=True):
        assert look.kind == "causal"
        torch.testing.assert_close(look.weights, expected.weights, atol=2e-6, rtol=0)


@pytest.mark.parametrize("case", ["Marian", "T5"])
@torch.no_grad()
def test_greedy_translation_is_one_full_pass(case):
    config, settings, _ = CASES[case]
    settings = settings | {"pad_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 1}
    model = built(config, settings, hf.AutoModelForSeq2SeqLM)
    ask = {"max_new_tokens": 5, "min_new_tokens": 5, "do_sample": False, "num_beams": 1}
    with watch(model) as seen:
        made = model.generate(WORDS, attention_mask=RIGHT, **ask)
    assert torch.equal(made, model.generate(WORDS, attention_mask=RIGHT, **ask))
    assert len(seen) == 6
    with watch(model) as whole:
        model(input_ids=WORDS, attention_mask=RIGHT, decoder_input_ids=made[:, :-1])
    for name in whole.module_names:
        torch.testing.assert_close(seen.weights(name), whole.weights(name), atol=3e-6, rtol=0)
    assert [look.kind for look in seen] == [look.kind for look in whole]


@torch.no_grad()
def test_a_cache_with_room_to_spare_is_cut_to_what_was_filled():
    config, settings, _ = CASES["Llama"]
    model = built(config, settings, hf.AutoModelForCausalLM)
    ask = {"max_new_tokens": 6, "min_new_tokens": 6, "do_sample": False, "pad_token_id": 0}
    ask["cache_implementation"] = "static"
    words = WORDS[:1, :4]
    with watch(model) as seen:
        made = model.generate(words, attention_mask=torch.ones_like(words), **ask)
    with watch(model) as whole:
        model(made[:, :-1])
    assert len(seen) == 2
    for look, expected in zip(seen, whole, strict=True):
        torch.testing.assert_close(look.weights, expected.weights, atol=2e-6, rtol=0)


@pytest.mark.parametrize("prompt", [2, 4, 7])  # shorter than the window, as long, and longer
@pytest.mark.parametrize("cache", ["dynamic", "static"])
@torch.no_grad()
def test_a_window_that_slides_is_stitched_where_its_keys_stand_in_the_text(cache, prompt):
    settings = SIZES | {"num_key_value_heads": 2, "sliding_window": 4}
    model = built(hf.MistralConfig, settings, hf.AutoModelForCausalLM)
    ask = {"max_new_tokens": 9, "min_new_tokens": 9, "do_sample": False, "pad_token_id": 0}
    words = WORDS[:, :prompt] + 1
    given = {"attention_mask": torch.ones_like(words), "cache_implementation": cache}
    with watch(model) as seen:
        made = model.generate(words, **given, **ask)
    assert torch.equal(made, model.generate(words, **given, **ask))
    with watch(model) as whole:
        model(made[:, :-1])
    assert [look.steps for look in seen] == [9, 9]
    for look, expected in zip(seen, whole, strict=True):
        assert look.sizes == expected.sizes and not look.weights[..., -1, :-4].any()
        torch.testing.assert_close(look.weights, expected.weights, atol=2e-6, rtol=0)
        torch.testing.assert_close(look.norms, expected.norms, atol=2e-6, rtol=0)
        assert torch.equal(look.hidden, expected.hidden)


@torch.no_grad()
def test_rows_of_beams_that_change_places_are_not_stitched():
    config, settings, _ = CASES["GPT-2"]
    model = built(config, settings, hf.AutoModelForCausalLM)
    words = WORDS[:1, :4]
    ask = {"max_new_tokens": 8, "min_new_tokens": 8, "num_beams": 3, "pad_token_id": 0}
    with watch(model) as seen:
        model.generate(words, attention_mask=torch.ones_like(words), do_sample=False, **ask)
    assert len(seen) > 2


@torch.no_grad()
def test_a_trace_of_a_text_marks_its_padding():
    config, settings, given = CASES["BERT"]
    model = built(config, settings)
    with watch(model) as seen:
        model(**given)
    trace = seen.trace([str(word) for word in WORDS[1].tolist()], batch_index=1)
    assert trace.tokens["text"].padding == (5, 6)
    assert trace.model == "BertModel"
