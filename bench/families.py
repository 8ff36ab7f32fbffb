"""Compare captured weights with those that Hugging Face architectures return themselves.

    python bench/families.py [NAME ...]

Needs `pip install transformers`. Each architecture is built small with random parameters and run
three times: unwatched, watched, and in eager mode, where it returns its attention weights. Some
return none, and some cannot be made small by changing their sizes alone or take other input than
tokens or images: those are counted separately.
"""

import argparse
import warnings
from collections.abc import Iterator
from contextlib import suppress

import torch
import transformers as hf
from torch import Tensor, nn
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

from regard import Capture, watch

SETTINGS_BY_SIZE = {
    32: "hidden_size d_model n_embd dim embedding_size word_embed_proj_dim",
    2: "num_hidden_layers n_layer n_layers num_layers encoder_layers decoder_layers "
    "num_key_value_heads num_kv_heads num_local_experts num_experts n_routed_experts eos_token_id",
    4: "num_attention_heads n_head n_heads num_heads encoder_attention_heads "
    "decoder_attention_heads sliding_window rotary_dim",
    8: "head_dim d_kv q_lora_rank kv_lora_rank patch_size",
    16: "moe_intermediate_size shared_expert_intermediate_size image_size",
    48: "intermediate_size n_inner d_ff ffn_dim encoder_ffn_dim decoder_ffn_dim hidden_dim",
    60: "vocab_size",
    64: "max_position_embeddings n_positions",
    1: "num_experts_per_tok n_group topk_group bos_token_id decoder_start_token_id",
    0: "pad_token_id",
}
SMALL_SETTINGS = {name: size for size, names in SETTINGS_BY_SIZE.items() for name in names.split()}
MAX_PARAMETERS = 20_000_000  # larger models are left out
TOLERANCE = 1e-4


def small_config(config_class: type) -> hf.PretrainedConfig:
    """Return a configuration with small sizes, also in its parts."""
    default = config_class()
    values = default.to_dict()
    settings = {name: n for name, n in SMALL_SETTINGS.items() if values.get(name) is not None}
    for name, part in values.items():
        if isinstance(part, dict) and isinstance(getattr(default, name), hf.PretrainedConfig):
            settings[name] = small_config(type(getattr(default, name))).to_dict()
    return config_class(**settings)


def build_small_model(name: str) -> nn.Module | None:
    """Build a small model with random parameters; None if it would still be large."""
    config = small_config(CONFIG_MAPPING[name])
    with torch.device("meta"):
        num_parameters = sum(p.numel() for p in hf.AutoModel.from_config(config).parameters())
    if num_parameters > MAX_PARAMETERS:
        return None
    torch.manual_seed(0)
    return hf.AutoModel.from_config(config).eval()


def random_inputs(model: nn.Module) -> dict[str, Tensor]:
    """Return random tokens, or a random image."""
    if model.main_input_name == "pixel_values":
        return {"pixel_values": torch.randn(2, 3, 16, 16)}
    inputs = {"input_ids": torch.randint(3, 50, (2, 6))}
    if model.config.is_encoder_decoder:
        inputs["decoder_input_ids"] = torch.randint(3, 50, (2, 5))
    return inputs


def returned_weights(model: nn.Module, inputs: dict[str, Tensor]) -> Iterator[Tensor]:
    """Yield the attention weights that the model returns in eager mode."""
    with suppress(ValueError, AttributeError):
        model.set_attn_implementation("eager")
    out = model(**inputs, output_attentions=True)
    for kind in ("encoder_attentions", "decoder_attentions", "cross_attentions", "attentions"):
        weights = getattr(out, kind, None)
        yield from (w for w in weights or () if isinstance(w, Tensor) and w.ndim == 4)


def compare(name: str) -> tuple[str, str]:
    """Return the outcome for an architecture, and a detail."""
    try:
        model = build_small_model(name)
        if model is None:
            return "not made small", ""
        inputs = random_inputs(model)
        unwatched = first_tensor(model(**inputs))
    except Exception as error:
        return "not made small", type(error).__name__
    with watch(model) as capture:
        watched = first_tensor(model(**inputs))
    if not torch.equal(unwatched, watched):
        repeated = first_tensor(model(**inputs))
        return ("random output" if not torch.equal(unwatched, repeated) else "CHANGED OUTPUT"), ""
    try:
        expected = list(returned_weights(model, inputs))
    except Exception as error:
        return "returns no weights", type(error).__name__
    if not expected:
        captured = f"{len(capture)} attention calls captured"
        return ("returns no weights", captured) if len(capture) else ("no attention", "")
    num_agreeing = sum(was_captured(weights, capture) for weights in expected)
    outcome = "agrees" if num_agreeing == len(expected) else "differs"
    return outcome, f"{num_agreeing} of {len(expected)}"


def first_tensor(out: hf.utils.ModelOutput) -> Tensor:
    """Return the first tensor of a model's output."""
    return next(value for value in out.values() if isinstance(value, Tensor))


def was_captured(weights: Tensor, capture: Capture) -> bool:
    """Return whether any captured weights equal these."""
    candidates = (x.weights for x in capture if x.weights is not None)
    return any(
        bool(((ours - weights.float()).abs() < TOLERANCE).all())
        for ours in candidates
        if ours.shape == weights.shape
    )


@torch.no_grad()
def main() -> None:
    """Print a table of outcomes, and the architectures of some of them."""
    warnings.simplefilter("ignore")
    hf.utils.logging.set_verbosity(hf.utils.logging.CRITICAL)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(MODEL_MAPPING_NAMES))
    outcomes: dict[str, list[str]] = {}
    for name in parser.parse_args().names:
        outcome, detail = compare(name)
        outcomes.setdefault(outcome, []).append(f"{name} ({detail})" if detail else name)
    print(f"transformers {hf.__version__}\n\n| outcome | architectures |\n|---|---|")
    for outcome, names in sorted(outcomes.items(), key=lambda pair: -len(pair[1])):
        print(f"| {outcome} | {len(names)} |")
    for outcome in ("differs", "CHANGED OUTPUT", "no attention", "random output"):
        print(f"\n{outcome}: {', '.join(outcomes.get(outcome, ['none']))}")


if __name__ == "__main__":
    main()
