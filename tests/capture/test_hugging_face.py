"""Hugging Face models on their default kernel, against the weights that eager mode returns."""

import pytest
import torch

from regard import watch

hf = pytest.importorskip("transformers")  # its models are imported when they are built

pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")

SIZES = {
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 32,
    "vocab_size": 50,
    "max_position_embeddings": 32,
}
SEQ2SEQ = {
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
RELATIVE_POSITIONS = {"relative_attention": True, "pos_att_type": ["c2p", "p2c"]}
IMAGE = {"image_size": 8, "patch_size": 4}
AUDIO = {"num_mel_bins": 8, "max_source_positions": 10, "max_target_positions": 12}

IDS = torch.tensor([[9, 4, 27, 33, 5, 41, 8], [14, 7, 7, 22, 3, 0, 0]])
RIGHT_MASK = (IDS > 0).long()
LEFT_MASK = RIGHT_MASK.flip(1)
TARGET_IDS = torch.tensor([[1, 30, 12, 6, 44], [1, 18, 25, 9, 10]])
LONG_TARGET_IDS = torch.tensor([[1, 30, 12, 6, 44, 5, 5], [1, 18, 25, 9, 10, 3, 8]])

CASES = {
    "BERT": ("BertConfig", SIZES, {"input_ids": IDS, "attention_mask": RIGHT_MASK}),
    "ALBERT": ("AlbertConfig", SIZES | {"embedding_size": 8}, {"input_ids": IDS}),
    "GPT-2": ("GPT2Config", GPT2, {"input_ids": IDS}),
    "GPT-2, padded": (
        "GPT2Config",
        GPT2,
        {"input_ids": IDS.flip(1), "attention_mask": LEFT_MASK},
    ),
    "Llama": ("LlamaConfig", SIZES | {"num_key_value_heads": 2}, {"input_ids": IDS}),
    "ViT": ("ViTConfig", SIZES | IMAGE, {"pixel_values": torch.ones(2, 3, 8, 8)}),
    "DeBERTa": (
        "DebertaConfig",
        SIZES | RELATIVE_POSITIONS,
        {"input_ids": IDS, "attention_mask": RIGHT_MASK},
    ),
    "T5": (
        "T5Config",
        T5,
        {"input_ids": IDS, "attention_mask": RIGHT_MASK, "decoder_input_ids": TARGET_IDS},
    ),
    "Marian": (
        "MarianConfig",
        SEQ2SEQ,
        {
            "input_ids": IDS,
            "attention_mask": RIGHT_MASK,
            "decoder_input_ids": LONG_TARGET_IDS,
        },
    ),
    "Whisper": (
        "WhisperConfig",
        SEQ2SEQ | AUDIO,
        {"input_features": torch.ones(2, 8, 20), "decoder_input_ids": TARGET_IDS},
    ),
}
for _, _, inputs in CASES.values():
    for name in ("pixel_values", "input_features"):
        if name in inputs:
            waves = torch.sin(torch.arange(inputs[name].numel()) ** 1.3)
            inputs[name] = waves.view_as(inputs[name])


def build_model(config, settings, auto_class="AutoModel"):
    """Build a random model with sharp weights: those of a fresh one are nearly uniform."""
    model = getattr(hf, auto_class).from_config(getattr(hf, config)(**settings)).eval()
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.normal_(0, 0.35)
    return model


def eager_weights(model, inputs):
    """Return the weights of eager mode by kind: "all", or those of encoder, decoder and cross."""
    model.set_attn_implementation("eager")
    out = model(**inputs, output_attentions=True)
    if "decoder_input_ids" not in inputs:
        return {"all": out.attentions}
    return {
        "self": out.encoder_attentions,
        "causal": out.decoder_attentions,
        "cross": out.cross_attentions,
    }


@pytest.mark.parametrize("case", CASES)
@torch.no_grad()
def test_weights_agree_with_eager_mode(case):
    config, settings, inputs = CASES[case]
    model = build_model(config, settings)
    unwatched = model(**inputs)[0]
    with watch(model) as capture:
        watched = model(**inputs)[0]
    assert torch.equal(unwatched, watched)
    reference = eager_weights(model, inputs)
    assert len(capture) == sum(map(len, reference.values()))
    for kind, layers in reference.items():
        records = [x for x in capture if kind in ("all", x.kind)]
        for captured, expected in zip(records, layers, strict=True):
            assert expected.max() > 0.5 and expected.std() > 0.1, (
                "nearly uniform weights would agree in any case"
            )
            rows = unpadded_rows(case, expected.shape[2])
            torch.testing.assert_close(
                captured.weights.transpose(1, 2)[rows],
                expected.transpose(1, 2)[rows],
                atol=1e-5,
                rtol=0,
            )


def unpadded_rows(case, queries):
    """Leave out queries of left padding, whose keys are all masked: the kernels differ there."""
    return LEFT_MASK.bool() if case == "GPT-2, padded" else torch.ones(2, queries, dtype=torch.bool)


@pytest.mark.parametrize("case", ["GPT-2", "Llama", "Marian", "T5"])
@torch.no_grad()
def test_layers_differ_so_that_comparing_them_can_fail(case):
    config, settings, inputs = CASES[case]
    model = build_model(config, settings)
    with watch(model) as capture:
        model(**inputs)
    first, second = (x.weights for x in capture if x.kind == "causal")
    assert (first - second).abs().max() > 0.3


@pytest.mark.parametrize("case", ["GPT-2", "Llama"])
@torch.no_grad()
def test_greedy_generation_equals_a_single_pass(case):
    config, settings, _ = CASES[case]
    model = build_model(config, settings, "AutoModelForCausalLM")
    options = {
        "max_new_tokens": 6,
        "min_new_tokens": 6,
        "do_sample": False,
        "pad_token_id": 0,
    }
    ids = IDS[:, :4]
    unwatched = model.generate(ids, attention_mask=torch.ones_like(ids), **options)
    with watch(model) as capture:
        watched = model.generate(ids, attention_mask=torch.ones_like(ids), **options)
    assert torch.equal(unwatched, watched)
    assert len(capture) == 2 and [x.steps for x in capture] == [6, 6]
    with watch(model) as full:
        model(watched[:, :-1])
    for captured, expected in zip(capture, full, strict=True):
        assert captured.kind == "causal"
        torch.testing.assert_close(captured.weights, expected.weights, atol=2e-6, rtol=0)


@pytest.mark.parametrize("case", ["Marian", "T5"])
@torch.no_grad()
def test_greedy_translation_equals_a_single_pass(case):
    config, settings, _ = CASES[case]
    settings = settings | {"pad_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 1}
    model = build_model(config, settings, "AutoModelForSeq2SeqLM")
    options = {
        "max_new_tokens": 5,
        "min_new_tokens": 5,
        "do_sample": False,
        "num_beams": 1,
    }
    with watch(model) as capture:
        output = model.generate(IDS, attention_mask=RIGHT_MASK, **options)
    assert torch.equal(output, model.generate(IDS, attention_mask=RIGHT_MASK, **options))
    assert len(capture) == 6
    with watch(model) as full:
        model(input_ids=IDS, attention_mask=RIGHT_MASK, decoder_input_ids=output[:, :-1])
    for name in full.module_names:
        torch.testing.assert_close(capture.weights(name), full.weights(name), atol=3e-6, rtol=0)
    assert [x.kind for x in capture] == [x.kind for x in full]


@torch.no_grad()
def test_static_cache_is_cut_to_its_filled_part():
    config, settings, _ = CASES["Llama"]
    model = build_model(config, settings, "AutoModelForCausalLM")
    options = {
        "max_new_tokens": 6,
        "min_new_tokens": 6,
        "do_sample": False,
        "pad_token_id": 0,
    }
    options["cache_implementation"] = "static"
    ids = IDS[:1, :4]
    with watch(model) as capture:
        output = model.generate(ids, attention_mask=torch.ones_like(ids), **options)
    with watch(model) as full:
        model(output[:, :-1])
    assert len(capture) == 2
    for captured, expected in zip(capture, full, strict=True):
        torch.testing.assert_close(captured.weights, expected.weights, atol=2e-6, rtol=0)


@pytest.mark.parametrize("prompt", [2, 4, 7])  # shorter than the window, as long, and longer
@pytest.mark.parametrize("cache", ["dynamic", "static"])
@torch.no_grad()
def test_sliding_window_steps_keep_their_positions_in_the_text(cache, prompt):
    settings = SIZES | {"num_key_value_heads": 2, "sliding_window": 4}
    model = build_model("MistralConfig", settings, "AutoModelForCausalLM")
    options = {
        "max_new_tokens": 6,
        "min_new_tokens": 6,
        "do_sample": False,
        "pad_token_id": 0,
    }
    ids = IDS[:, :prompt] + 1
    inputs = {"attention_mask": torch.ones_like(ids), "cache_implementation": cache}
    with watch(model) as capture:
        output = model.generate(ids, **inputs, **options)
    assert torch.equal(output, model.generate(ids, **inputs, **options))
    with watch(model) as full:
        model(output[:, :-1])
    assert [x.steps for x in capture] == [6, 6]
    for captured, expected in zip(capture, full, strict=True):
        assert captured.weights.shape == expected.weights.shape
        assert not captured.weights[..., -1, :-4].any()
        torch.testing.assert_close(captured.weights, expected.weights, atol=2e-6, rtol=0)
        torch.testing.assert_close(captured.value_norms, expected.value_norms, atol=2e-6, rtol=0)
        assert torch.equal(captured.fully_masked_keys, expected.fully_masked_keys)


@torch.no_grad()
def test_reordered_beams_are_not_joined():
    config, settings, _ = CASES["GPT-2"]
    model = build_model(config, settings, "AutoModelForCausalLM")
    ids = IDS[:1, :4]
    options = {
        "max_new_tokens": 8,
        "min_new_tokens": 8,
        "num_beams": 3,
        "pad_token_id": 0,
    }
    with watch(model) as capture:
        model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, **options)
    assert len(capture) > 2


@torch.no_grad()
def test_trace_marks_padding():
    config, settings, inputs = CASES["BERT"]
    model = build_model(config, settings)
    with watch(model) as capture:
        model(**inputs)
    trace = capture.trace([str(token) for token in IDS[1].tolist()], batch_index=1)
    assert trace.tokens["text"].padding == (5, 6)
    assert trace.model == "BertModel"
