"""Watch every architecture of Hugging Face that can be made small, and compare with its own word.

    python bench/families.py [NAME ...]

Needs `pip install transformers`. Each gets random weights and is run three times: alone, watched,
and on its slow path, which tells its own weights. Some tell none, and some cannot be made small by
changing their sizes alone, or want other input than words or pictures: those are counted apart.
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

from regard import watch
from regard.capture import Capture

SIZES = {
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
SMALL = {name: size for size, names in SIZES.items() for name in names.split()}
MOST = 20_000_000  # weights; what stays larger is left out
NEAR = 1e-4


def small(kind: type) -> hf.PretrainedConfig:
    """Make a configuration whose sizes are small, and those of its parts."""
    usual = kind()
    told = usual.to_dict()
    sizes = {name: size for name, size in SMALL.items() if told.get(name) is not None}
    for name, part in told.items():
        if isinstance(part, dict) and isinstance(getattr(usual, name), hf.PretrainedConfig):
            sizes[name] = small(type(getattr(usual, name))).to_dict()
    return kind(**sizes)


def built(name: str) -> nn.Module | None:
    """Build a small model of an architecture with random weights; None if it would be large."""
    config = small(CONFIG_MAPPING[name])
    with torch.device("meta"):
        weights = sum(weight.numel() for weight in hf.AutoModel.from_config(config).parameters())
    if weights > MOST:
        return None
    torch.manual_seed(0)
    return hf.AutoModel.from_config(config).eval()


def inputs(model: nn.Module) -> dict[str, Tensor]:
    """Make up what the model reads: words, or a picture."""
    if model.main_input_name == "pixel_values":
        return {"pixel_values": torch.randn(2, 3, 16, 16)}
    given = {"input_ids": torch.randint(3, 50, (2, 6))}
    if model.config.is_encoder_decoder:
        given["decoder_input_ids"] = torch.randint(3, 50, (2, 5))
    return given


def told_by(model: nn.Module, given: dict[str, Tensor]) -> Iterator[Tensor]:
    """Give the weights that the model itself tells, on its slow path."""
    with suppress(ValueError, AttributeError):
        model.set_attn_implementation("eager")
    out = model(**given, output_attentions=True)
    for kind in ("encoder_attentions", "decoder_attentions", "cross_attentions", "attentions"):
        weights = getattr(out, kind, None)
        yield from (w for w in weights or () if isinstance(w, Tensor) and w.ndim == 4)


def verdict(name: str) -> tuple[str, str]:
    """Say how an architecture fared, and what there is to know about it."""
    try:
        model = built(name)
        if model is None:
            return "not made small", ""
        given = inputs(model)
        plain = first(model(**given))
    except Exception as problem:
        return "not made small", type(problem).__name__
    with watch(model) as seen:
        watched = first(model(**given))
    if not torch.equal(plain, watched):
        again = first(model(**given))
        return ("draws by chance" if not torch.equal(plain, again) else "CHANGED"), ""
    try:
        theirs = list(told_by(model, given))
    except Exception as problem:
        return "tells no weights", type(problem).__name__
    if not theirs:
        return ("tells no weights", f"{len(seen)} looks") if len(seen) else ("no attention", "")
    found = sum(agrees(weights, seen) for weights in theirs)
    return ("agrees" if found == len(theirs) else "differs"), f"{found} of {len(theirs)}"


def first(out: hf.utils.ModelOutput) -> Tensor:
    """Give the first tensor of what a model says."""
    return next(value for value in out.values() if isinstance(value, Tensor))


def agrees(weights: Tensor, seen: Capture) -> bool:
    """Tell whether weights were seen."""
    same = (x.weights for x in seen if x.weights is not None and x.weights.shape == weights.shape)
    return any(bool(((ours - weights.float()).abs() < NEAR).all()) for ours in same)


@torch.no_grad()
def main() -> None:
    """Print how many fared how, and name those that a reader may want to know."""
    warnings.simplefilter("ignore")
    hf.utils.logging.set_verbosity(hf.utils.logging.CRITICAL)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(MODEL_MAPPING_NAMES))
    fared: dict[str, list[str]] = {}
    for name in parser.parse_args().names:
        how, more = verdict(name)
        fared.setdefault(how, []).append(f"{name} ({more})" if more else name)
    print(f"transformers {hf.__version__}\n\n| the model | architectures |\n|---|---|")
    for how, names in sorted(fared.items(), key=lambda pair: -len(pair[1])):
        print(f"| {how} | {len(names)} |")
    for how in ("differs", "CHANGED", "no attention", "draws by chance"):
        print(f"\n{how}: {', '.join(fared.get(how, ['none']))}")


if __name__ == "__main__":
    main()
