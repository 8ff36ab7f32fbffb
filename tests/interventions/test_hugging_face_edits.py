"""Editing models of transformers: agreement with eager attention edited by hand, and generation."""

import pytest
import torch

import regard
from regard.interventions import Inspection

transformers = pytest.importorskip("transformers")

SIZES = {"gpt2": (3, 24), "bert": (3, 24), "t5": (3, 24), "marian": (3, 24), "llama": (4, 32)}


def build(family):
    """Return a small random model of a family with two layers."""
    heads, width = SIZES[family]
    torch.manual_seed(7)
    if family == "gpt2":
        config = transformers.GPT2Config(
            vocab_size=31, n_embd=width, n_layer=2, n_head=heads, n_positions=32,
            bos_token_id=0, eos_token_id=None, pad_token_id=0,
        )  # fmt: skip
        return transformers.GPT2LMHeadModel(config).eval()
    if family == "llama":
        config = transformers.LlamaConfig(
            vocab_size=31, hidden_size=width, intermediate_size=40, num_hidden_layers=2,
            num_attention_heads=heads, num_key_value_heads=2, eos_token_id=None, pad_token_id=0,
        )  # fmt: skip
        return transformers.LlamaForCausalLM(config).eval()
    if family == "bert":
        config = transformers.BertConfig(
            vocab_size=31, hidden_size=width, num_hidden_layers=2, num_attention_heads=heads,
            intermediate_size=40,
        )  # fmt: skip
        return transformers.BertModel(config).eval()
    if family == "t5":
        config = transformers.T5Config(
            vocab_size=31, d_model=width, d_kv=8, d_ff=40, num_layers=2, num_heads=heads,
            decoder_start_token_id=0, eos_token_id=None, pad_token_id=0,
        )  # fmt: skip
        return transformers.T5ForConditionalGeneration(config).eval()
    config = transformers.MarianConfig(
        vocab_size=31, d_model=width, encoder_layers=2, decoder_layers=2,
        encoder_attention_heads=heads, decoder_attention_heads=heads, encoder_ffn_dim=40,
        decoder_ffn_dim=40, max_position_embeddings=32, decoder_start_token_id=0,
        eos_token_id=None, forced_eos_token_id=None, pad_token_id=0,
    )  # fmt: skip
    return transformers.MarianMTModel(config).eval()


# the projection after the heads, whose input columns belong to head 1 alone
OUTPUTS = {
    "gpt2": ("transformer.h.1.attn", "c_proj"),
    "llama": ("model.layers.1.self_attn", "o_proj"),
    "bert": ("encoder.layer.1.attention.self", None),
    "t5": ("decoder.block.1.layer.1.EncDecAttention", "o"),
    "marian": ("model.decoder.layers.1.encoder_attn", "out_proj"),
}


def inputs_of(family):
    ids = torch.randint(1, 31, (2, 6), generator=torch.Generator().manual_seed(1))
    mask = torch.ones_like(ids)
    mask[1, -2:] = 0
    inputs = {"input_ids": ids, "attention_mask": mask}
    return inputs | ({"decoder_input_ids": ids[:, :4]} if family in ("t5", "marian") else {})


def zero_head_by_hand(model, family, head):
    """Register a hook that zeroes the columns of one head before the output projection."""
    heads, width = SIZES[family]
    size = 8 if family == "t5" else width // heads
    name, projection = OUTPUTS[family]
    module = model.get_submodule(name)

    def zero(rows):
        rows = rows.clone()
        rows[..., head * size : (head + 1) * size] = 0
        return rows

    if projection is None:
        return module.register_forward_hook(lambda _m, _a, out: (zero(out[0]), *out[1:]))
    return getattr(module, projection).register_forward_pre_hook(lambda _, args: (zero(args[0]),))


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
@pytest.mark.parametrize("family", SIZES)
def test_zeroed_head_equals_eager_attention_edited_by_hand(family, implementation):
    model = build(family)
    if family == "t5" and implementation == "sdpa":
        implementation = "eager" if not model._supports_sdpa else "sdpa"
    inputs, name = inputs_of(family), OUTPUTS[family][0]
    model.set_attn_implementation("eager")
    hook = zero_head_by_hand(model, family, head=1)
    expected = model(**inputs)[0]
    hook.remove()
    plain = model(**inputs)[0]
    model.set_attn_implementation(implementation)
    with regard.edit(model) as edits:
        edits[name].heads([1]).ablate()
        edited = model(**inputs)[0]
    torch.testing.assert_close(edited, expected, rtol=1e-4, atol=1e-5)
    assert not torch.allclose(edited, plain, atol=1e-4)


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_generation_with_a_cache_equals_edited_full_passes(family):
    model, ids = build(family), torch.tensor([[5, 9, 3, 14]])
    settings = {"max_new_tokens": 5, "do_sample": False}

    def change(edits):
        edits[OUTPUTS[family][0]].heads([0, 2]).block(queries=[5, 6], keys=[1, 4])
        edits[OUTPUTS[family][0]].heads([1]).set_weights("previous")

    with regard.edit(model) as edits:
        change(edits)
        cached = model.generate(ids, use_cache=True, output_logits=True,
                                return_dict_in_generate=True, **settings)  # fmt: skip
    with regard.edit(model) as edits:
        change(edits)
        full = model(cached.sequences).logits[:, 3:-1]
    torch.testing.assert_close(torch.stack(cached.logits, 1), full, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("family", ["marian", "t5"])
def test_cross_attention_of_generation_has_query_positions(family):
    model, ids = build(family), torch.tensor([[5, 9, 3, 14, 7]])
    name = OUTPUTS[family][0]
    with regard.edit(model) as edits:
        edits[name].block(queries=[2, 3], keys=[0, 1])
        cached = model.generate(ids, max_new_tokens=5, do_sample=False, num_beams=1,
                                output_logits=True, return_dict_in_generate=True)  # fmt: skip
    with regard.edit(model) as edits:
        edits[name].block(queries=[2, 3], keys=[0, 1])
        full = model(input_ids=ids, decoder_input_ids=cached.sequences).logits[:, :-1]
    torch.testing.assert_close(torch.stack(cached.logits, 1), full, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("window", [4, 16])
def test_positions_count_over_a_sliding_window(window):
    """The steps of a generation equal a full pass, whose positions are known."""
    torch.manual_seed(7)
    config = transformers.MistralConfig(
        vocab_size=31, hidden_size=32, intermediate_size=40, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, sliding_window=window, eos_token_id=None,
        pad_token_id=0,
    )  # fmt: skip
    model = transformers.MistralForCausalLM(config).eval()
    ids, settings = torch.tensor([[5, 9, 3, 14, 7, 2]]), {"max_new_tokens": 5, "do_sample": False}

    def change(edits):
        edits["model.layers.0"].heads([0, 3]).block(queries=[3, 7, 8], keys=[2, 5, 6])
        edits["model.layers.1"].heads([1]).set_weights("previous")

    with regard.edit(model) as edits:
        change(edits)
        cached = model.generate(ids, output_logits=True, return_dict_in_generate=True, **settings)
    with regard.edit(model) as edits:
        change(edits)
        full = model(cached.sequences).logits[:, 5:-1]
    torch.testing.assert_close(torch.stack(cached.logits, 1), full, rtol=1e-4, atol=1e-5)


GENERATION = {
    "beams": {"num_beams": 3, "num_return_sequences": 2},
    "static": {"cache_implementation": "static"},
}


@pytest.mark.parametrize("settings", GENERATION.values(), ids=GENERATION)
@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
@pytest.mark.parametrize("family", ["gpt2", "llama", "t5", "marian"])
def test_generation_with_any_cache_equals_one_without(family, implementation, settings):
    model, ids = build(family), torch.tensor([[5, 9, 3, 14, 8, 2], [7, 7, 20, 11, 4, 0]])
    model.set_attn_implementation(implementation)
    mask = torch.tensor([[1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 0]])
    if family in ("gpt2", "llama"):  # which read padding on the left
        ids, mask = ids.flip(1), mask.flip(1)
    queries = [2, 3, 7, 8] if family in ("gpt2", "llama") else [2, 3]
    generated = []
    for use_cache in (True, False):
        how = settings if use_cache else {k: v for k, v in settings.items() if "cache" not in k}
        with regard.edit(model) as edits:
            edits[OUTPUTS[family][0]].heads([0, 2]).block(queries=queries, keys=[1, 2])
            edits[OUTPUTS[family][0]].heads([1]).set_weights("itself")
            generated.append(
                model.generate(
                    ids, attention_mask=mask, max_new_tokens=5, do_sample=False,
                    use_cache=use_cache, output_logits=True, return_dict_in_generate=True, **how,
                )
            )  # fmt: skip
    assert torch.equal(generated[0].sequences, generated[1].sequences)
    cached, full = (torch.stack(x.logits, 1) for x in generated)
    torch.testing.assert_close(cached, full, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("window", [None, 4])
def test_positions_are_known_where_an_assistant_is_wrong(window):
    """The cache is cut where tokens of the assistant are rejected."""
    models = []
    for noise in (0.0, 0.05):
        torch.manual_seed(7)
        config = transformers.MistralConfig(
            vocab_size=31, hidden_size=32, intermediate_size=40, num_hidden_layers=2,
            num_attention_heads=4, num_key_value_heads=2, sliding_window=window,
            eos_token_id=None, pad_token_id=0, initializer_range=0.2,
        )  # fmt: skip
        model = transformers.MistralForCausalLM(config).eval()
        for parameter in model.parameters():
            parameter.data += noise * torch.randn_like(parameter)
        models.append(model)
    model, assistant = models
    texts, positions = [], []
    for settings in ({}, {"assistant_model": assistant}):
        seen = []

        def note(attention, seen=seen):
            seen.append((attention.location.offset, attention.shape[2]))

        with torch.no_grad(), regard.edit(model) as edits:
            edits["model.layers.1"].heads([0, 3]).block(queries=[5, 8, 9], keys=[3, 6, 7])
            edits["model.layers.0"].apply(Inspection(note))
            texts.append(
                model.generate(
                    torch.tensor([[5, 9, 3, 14]]), max_new_tokens=8, do_sample=False, **settings
                )
            )
        positions.append(seen)
    assert torch.equal(*texts)
    ends = [first + count for first, count in positions[1]]
    starts = [first for first, _ in positions[1]]
    assert any(start < end for start, end in zip(starts[1:], ends, strict=False))  # it was wrong
