"""FlashAttention and other kernels of transformers models, captured and edited."""

from threading import Thread

import pytest
import torch

from regard import analysis, edit, watch

transformers = pytest.importorskip("transformers")
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS  # noqa: E402
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS, AttentionInterface  # noqa: E402

LIBRARY = torch.library.Library("regard_tests", "FRAGMENT")
LIBRARY.define("attention(Tensor q, Tensor k, Tensor v, Tensor bias, float scale) -> Tensor")


def attention_kernel(queries, keys, values, bias, scale):
    scores = queries @ keys.transpose(-2, -1) * scale + bias
    return scores.softmax(-1).nan_to_num() @ values


LIBRARY.impl("attention", attention_kernel, "CompositeImplicitAutograd")


def run_kernel(module, query, key, value, attention_mask, scaling=None, is_causal=None, **options):
    """Attention by FlashAttention's conventions, in one operator."""
    groups = query.shape[1] // key.shape[1]
    key, value = (x.repeat_interleave(groups, 1) for x in (key, value))
    queries, keys = query.shape[2], key.shape[2]
    distance = torch.arange(keys - queries, keys)[:, None] - torch.arange(keys)
    visible = torch.ones(len(query), 1, queries, keys, dtype=torch.bool)
    if module.is_causal if is_causal is None else is_causal:
        visible = visible & (distance >= 0)
    if options.get("sliding_window"):
        visible = visible & (distance.abs() < options["sliding_window"])
    if attention_mask is not None:
        visible = visible & attention_mask.bool()[:, None, None]
    bias = torch.zeros(visible.shape).masked_fill(~visible, -torch.inf)
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    context = torch.ops.regard_tests.attention(query, key, value, bias, scale)
    if attention_mask is not None:  # kernels leave padded queries out
        context = context * attention_mask[:, None, -queries:, None]
    return context.transpose(1, 2), None


def run_sdpa(*args, **kwargs):
    """An attention function that calls another one, whose attention torch shows."""
    return ALL_ATTENTION_FUNCTIONS["sdpa"](*args, **kwargs)


def run_sigmoid(module, query, key, value, attention_mask, **options):
    """No softmax, in an operator that torch does not show."""
    context, _ = run_kernel(module, query, key, value, None, **options)
    return context.sigmoid(), None


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    functions = {**AttentionInterface._global_mapping}
    functions |= {"kernel": run_kernel, "wrapped": run_sdpa, "sigmoid": run_sigmoid}
    functions["flash_attention_2"] = run_kernel
    monkeypatch.setattr(AttentionInterface, "_global_mapping", functions)
    masks = {**ALL_MASK_ATTENTION_FUNCTIONS._global_mapping}
    masks["kernel"] = masks["sigmoid"] = masks["flash_attention_2"]
    masks["wrapped"] = masks["sdpa"]
    monkeypatch.setattr(type(ALL_MASK_ATTENTION_FUNCTIONS), "_global_mapping", masks)


def make_model(implementation, family="llama", **settings):
    torch.manual_seed(0)
    sizes = {"vocab_size": 50, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4}
    sizes |= {"intermediate_size": 20, "initializer_range": 0.5, "pad_token_id": 0}
    if family == "llama":
        config = transformers.LlamaConfig(**sizes, num_key_value_heads=2, **settings)
        model = transformers.LlamaForCausalLM(config)
    elif family == "mistral":
        config = transformers.MistralConfig(**sizes, num_key_value_heads=2, **settings)
        model = transformers.MistralForCausalLM(config)
    else:
        model = transformers.BertModel(transformers.BertConfig(**sizes, **settings))
    # as from_pretrained would, which checks that flash_attn is installed
    model.config._attn_implementation = implementation
    return model.eval()


def capture_weights(model, **inputs):
    with torch.no_grad(), watch(model, keep="all") as capture:
        output = model(**inputs)
    return capture, output[0]


TOKENS = torch.tensor([[3, 8, 5, 2, 9, 4], [7, 6, 1, 2, 8, 3]])
RIGHT_PADDED = torch.tensor([[1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0]])
LEFT_PADDED = RIGHT_PADDED.flip(1)


@pytest.mark.parametrize("implementation", ["kernel", "flash_attention_2"])
@pytest.mark.parametrize(
    ("family", "settings"),
    [("llama", {}), ("bert", {}), ("mistral", {"sliding_window": 3})],
)
@pytest.mark.parametrize("mask", [None, RIGHT_PADDED, LEFT_PADDED])
def test_weights_of_a_kernel_agree_with_eager_attention(implementation, family, settings, mask):
    inputs = (
        {"input_ids": TOKENS} if mask is None else {"input_ids": TOKENS, "attention_mask": mask}
    )
    capture, _ = capture_weights(make_model(implementation, family, **settings), **inputs)
    reference, _ = capture_weights(make_model("eager", family, **settings), **inputs)
    assert [x.name for x in capture] == [x.name for x in reference]
    assert {x.kind for x in capture} == {"self" if family == "bert" else "causal"}
    assert capture.failures == ()
    first, expected = capture[0].weights, reference[0].weights
    if mask is not None:  # rows of padding differ: eager attention computes them
        is_real = mask.bool()[:, None, :, None]
        first, expected = first * is_real, expected * is_real
    torch.testing.assert_close(first, expected, rtol=1e-4, atol=1e-5)


def test_output_is_unchanged():
    model = make_model("flash_attention_2")
    with torch.no_grad():
        plain = model(TOKENS).logits
    _, watched = capture_weights(model, input_ids=TOKENS)
    assert torch.equal(plain, watched)


def test_call_site_is_in_the_module_that_calls_the_function():
    capture, _ = capture_weights(make_model("kernel"), input_ids=TOKENS)
    assert capture.module_names == ("model.layers.0.self_attn", "model.layers.1.self_attn")
    assert capture[0].call_site.startswith("modeling_llama.py:")


@pytest.mark.parametrize("implementation", ["sdpa", "wrapped", "eager", "flex_attention"])
@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_attention_that_torch_shows_is_recorded_once(implementation):
    capture, _ = capture_weights(make_model(implementation), input_ids=TOKENS)
    assert len(capture) == 2


def test_function_without_softmax_is_a_failure_and_not_a_record():
    capture, _ = capture_weights(make_model("sigmoid"), input_ids=TOKENS)
    assert len(capture) == 0
    assert len(capture.failures) == 2
    assert "'sigmoid' does not return softmax(QKᵀ)V" in capture.failures[0]


def test_paged_cache_is_a_failure(monkeypatch):
    model = make_model("kernel")
    for layer in model.model.layers:
        forward = layer.self_attn.forward
        monkeypatch.setattr(
            layer.self_attn,
            "forward",
            lambda *args, forward=forward, **kwargs: forward(*args, **kwargs, block_table=1),
        )
    capture, _ = capture_weights(model, input_ids=TOKENS)
    assert len(capture) == 0
    assert "paged cache (block_table=)" in capture.failures[0]


def test_packed_texts_do_not_attend_to_each_other():
    positions = torch.tensor([[0, 1, 2, 0, 1, 2]])

    def packed(module, query, key, value, attention_mask, position_ids=None, **options):
        starts = [query[:, :, :3], query[:, :, 3:]], [key[:, :, :3], key[:, :, 3:]]
        contexts = [
            run_kernel(module, q, k, v, None, **options)[0]
            for q, k, v in zip(*starts, [value[:, :, :3], value[:, :, 3:]], strict=True)
        ]
        return torch.cat(contexts, 1), None

    AttentionInterface._global_mapping["kernel"] = packed
    capture, _ = capture_weights(make_model("kernel"), input_ids=TOKENS[:1], position_ids=positions)
    weights = capture[0].weights
    assert not weights[:, :, 3:, :3].any()
    torch.testing.assert_close(weights.sum(-1), torch.ones(1, 4, 6))


def test_generation_with_a_cache_is_one_record_per_layer():
    settings = {"max_new_tokens": 4, "min_new_tokens": 4, "do_sample": False, "pad_token_id": 0}
    weights = {}
    for name in ("flash_attention_2", "sdpa"):
        model = make_model(name)
        with torch.no_grad(), watch(model, keep="all") as capture:
            model.generate(TOKENS[:1], **settings)
        assert len(capture) == 2
        weights[name] = capture[1].weights
    assert weights["sdpa"].shape == (1, 4, 9, 9)
    torch.testing.assert_close(weights["flash_attention_2"], weights["sdpa"], rtol=1e-4, atol=1e-5)


def test_edited_kernel_agrees_with_edited_sdpa_and_is_watched():
    results = {}
    for name in ("flash_attention_2", "sdpa"):
        model = make_model(name)
        with torch.no_grad(), watch(model, keep="all") as capture, edit(model) as edits:
            edits["model.layers.0"].heads([1]).ablate()
            edits["model.layers.1"].block(keys=[0])
            logits = model(TOKENS).logits
        results[name] = logits, capture[0].weights, capture[1].weights
    for kernel, reference in zip(*results.values(), strict=True):
        torch.testing.assert_close(kernel, reference, rtol=1e-4, atol=1e-4)
    assert not results["flash_attention_2"][1][:, 1].any()


def test_unedited_heads_of_a_kernel_stay_bit_identical():
    model = make_model("kernel")
    contexts = []
    hook = model.model.layers[0].self_attn.o_proj.register_forward_pre_hook(
        lambda module, args: contexts.append(args[0].unflatten(-1, (4, -1)))
    )
    with torch.no_grad():
        model(TOKENS)
        with edit(model) as edits:
            edits["model.layers.0"].heads([2]).ablate()
            model(TOKENS)
    hook.remove()
    plain, edited = contexts
    assert torch.equal(plain[:, :, [0, 1, 3]], edited[:, :, [0, 1, 3]])
    assert not edited[:, :, 2].any()


def test_attribution_reaches_the_weights_of_a_kernel():
    traces = [
        analysis.attribute(make_model(name), TOKENS[:1], (5, 7), method="chefer")
        for name in ("kernel", "sdpa")
    ]
    kernel, reference = (torch.tensor(trace.maps[0].weights) for trace in traces)
    torch.testing.assert_close(kernel, reference, rtol=1e-4, atol=1e-5)


def test_nested_watches_record_the_kernel_each():
    model = make_model("kernel")
    with torch.no_grad(), watch(model) as outer:
        with watch(model) as inner:
            model(TOKENS)
        model(TOKENS)
    assert (len(outer), len(inner)) == (4, 2)


def test_other_threads_are_not_recorded():
    model = make_model("kernel")
    with watch(model) as capture:
        thread = Thread(target=lambda: model(TOKENS))
        thread.start()
        thread.join()
    assert len(capture) == 0
