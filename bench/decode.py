"""Decoding speed against CTranslate2 (the same parameters) and Hugging Face (the same sizes).

    python bench/decode.py [--seconds 20] [--sentences 256] [--layers 4] [--width 256]

Needs `pip install ctranslate2 transformers`.
"""

import argparse
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import ctranslate2
import torch
from ctranslate2.specs import transformer_spec
from torch import Tensor, nn
from transformers import MarianConfig, MarianMTModel

from regard._support.threads import parallel_map
from regard.config import ModelConfig
from regard.data import BOS, EOS, PAD
from regard.decoding import LengthLimits, beam_search, greedy_search
from regard.models import Transformer, TransformerLayer, build
from regard.positions import sinusoidal
from timing import median_ratio, time_interleaved

VOCAB_SIZE, HEADS = 8000, 4
OUTPUT_TOKENS = 15  # of every translation, EOS included
BATCH_SENTENCES = 128  # of a batch in regard; its batches are decoded in parallel threads
GROWTH_LENGTHS = (50, 400)  # output tokens
WORDS = ["<pad>", "<s>", "</s>", "<unk>", *(f"w{n}" for n in range(VOCAB_SIZE - 4))]
TOKEN_IDS = {word: token for token, word in enumerate(WORDS)}


def build_model(width: int, layers: int) -> Transformer:
    """Build an untrained model."""
    torch.manual_seed(0)
    config = ModelConfig(
        width=width, layers=layers, heads=HEADS, ffn_width=4 * width, norm="pre", dropout=0.0
    )
    model = build(config, (VOCAB_SIZE, VOCAB_SIZE)).eval()
    assert isinstance(model, Transformer)
    return model


def random_sources(count: int) -> list[Tensor]:
    """Return sentences of 8 to 20 tokens, sorted by length, as `translate` sorts them."""
    lengths = torch.randint(8, 21, (count,)).sort().values.tolist()
    return [torch.randint(4, VOCAB_SIZE, (length,)) for length in lengths]


def decode_regard(
    model: Transformer, sources: Sequence[Tensor], beam_size: int
) -> list[tuple[int, ...]]:
    """Translate with regard, batches in parallel threads."""
    firsts = range(0, len(sources), BATCH_SENTENCES)
    batches = [sources[first : first + BATCH_SENTENCES] for first in firsts]
    results = list(parallel_map(partial(_decode_batch, model, beam_size), batches))
    return [tokens for batch in results for tokens in batch]


@torch.inference_mode()
def _decode_batch(
    model: Transformer, beam_size: int, batch: Sequence[Tensor]
) -> list[tuple[int, ...]]:
    lengths = torch.tensor([len(source) for source in batch])
    # EOS takes the last step
    limits = LengthLimits(min_length=OUTPUT_TOKENS - 1, max_length=OUTPUT_TOKENS - 1)
    found = beam_search(model, pad(batch), lengths, beam_size=beam_size, limits=limits)
    return [hypotheses[0].tokens for hypotheses in found]


def pad(batch: Sequence[Tensor]) -> Tensor:
    """Pad sources to the longest one."""
    return nn.utils.rnn.pad_sequence(list(batch), batch_first=True, padding_value=PAD)


def save_ctranslate2(model: Transformer, folder: Path) -> None:
    """Write the parameters as a CTranslate2 model."""
    layers, width = len(model.encoder.layers), model.target_embedding.width
    spec = transformer_spec.TransformerSpec.from_config(layers, HEADS, pre_norm=True)
    spec.register_source_vocabulary(WORDS)
    spec.register_target_vocabulary(WORDS)
    spec.config.add_source_eos = False
    for side in (spec.encoder, spec.decoder):
        side.position_encodings.encodings = sinusoidal(512, width).numpy()
    spec.encoder.embeddings[0].weight = _to_numpy(model.source_embedding.weight)
    spec.decoder.embeddings.weight = _to_numpy(model.target_embedding.weight)
    spec.decoder.projection.weight = _to_numpy(model.target_embedding.weight)
    spec.decoder.projection.bias = torch.zeros(VOCAB_SIZE).numpy()
    for layer_spec, layer in zip(spec.encoder.layer, model.encoder.layers, strict=True):
        _copy_layer(layer_spec, layer)
    for layer_spec, layer in zip(spec.decoder.layer, model.decoder.layers, strict=True):
        _copy_layer(layer_spec, layer)
        _copy_norm(layer_spec.attention.layer_norm, layer.cross_residual.norm)
        _copy_linear(layer_spec.attention.linear[0], layer.cross.query)
        _copy_linear(layer_spec.attention.linear[1], layer.cross.key, layer.cross.value)
        _copy_linear(layer_spec.attention.linear[2], layer.cross.out)
    _copy_norm(spec.encoder.layer_norm, model.encoder.norm)
    _copy_norm(spec.decoder.layer_norm, model.decoder.norm)
    spec.validate()
    spec.optimize()
    spec.save(str(folder))


def _copy_layer(spec: Any, layer: TransformerLayer) -> None:
    attention = layer.attention
    _copy_norm(spec.self_attention.layer_norm, layer.attention_residual.norm)
    _copy_linear(spec.self_attention.linear[0], attention.query, attention.key, attention.value)
    _copy_linear(spec.self_attention.linear[1], attention.out)
    _copy_norm(spec.ffn.layer_norm, layer.feed_forward_residual.norm)
    _copy_linear(spec.ffn.linear_0, layer.feed_forward.up)
    _copy_linear(spec.ffn.linear_1, layer.feed_forward.down)


def _copy_norm(spec: Any, norm: nn.LayerNorm) -> None:
    spec.gamma, spec.beta = _to_numpy(norm.weight), _to_numpy(norm.bias)


def _copy_linear(spec: Any, *layers: nn.Linear) -> None:
    spec.weight = _to_numpy(torch.cat([layer.weight for layer in layers]))
    spec.bias = _to_numpy(torch.cat([layer.bias for layer in layers]))


def _to_numpy(tensor: Tensor) -> Any:
    return tensor.detach().numpy()


def load_ctranslate2(folder: Path, sentences: int) -> dict[int, ctranslate2.Translator]:
    """Load the model so that threads share a batch, and so that each has one; by batch size.

    Either may be the faster one.
    """
    threads = torch.get_num_threads()
    shared = ctranslate2.Translator(str(folder), inter_threads=1, intra_threads=threads)
    separate = ctranslate2.Translator(str(folder), inter_threads=threads, intra_threads=1)
    torch.set_num_threads(threads)  # loading may change it
    return {sentences: shared, max(sentences // threads, 1): separate}


def decode_ctranslate2(
    translator: ctranslate2.Translator, batch: int, sources: list[list[str]], beam_size: int
) -> list[tuple[int, ...]]:
    """Translate with CTranslate2."""
    results = translator.translate_batch(
        sources,
        beam_size=beam_size,
        max_batch_size=batch,
        min_decoding_length=OUTPUT_TOKENS,
        max_decoding_length=OUTPUT_TOKENS,
        suppress_sequences=[["<pad>"], ["<s>"]],
    )
    return [tuple(TOKEN_IDS[word] for word in result.hypotheses[0]) for result in results]


def build_marian(width: int, layers: int) -> MarianMTModel:
    """Build an untrained Hugging Face model of the same sizes."""
    config = MarianConfig(
        vocab_size=VOCAB_SIZE,
        d_model=width,
        encoder_layers=layers,
        decoder_layers=layers,
        encoder_attention_heads=HEADS,
        decoder_attention_heads=HEADS,
        encoder_ffn_dim=4 * width,
        decoder_ffn_dim=4 * width,
        pad_token_id=PAD,
        eos_token_id=EOS,
        bos_token_id=BOS,
        decoder_start_token_id=BOS,
        forced_eos_token_id=None,
    )
    return MarianMTModel(config).eval()


@torch.inference_mode()
def decode_marian(model: MarianMTModel, sources: Sequence[Tensor], beam_size: int) -> None:
    """Translate with Hugging Face, all sentences in one batch."""
    padded = pad(sources)
    model.generate(
        padded,
        attention_mask=(padded != PAD).long(),
        num_beams=beam_size,
        do_sample=False,
        min_new_tokens=OUTPUT_TOKENS,
        max_new_tokens=OUTPUT_TOKENS,
    )


def growth(model: Transformer, sources: Sequence[Tensor], seconds: float) -> float:
    """Return how many times longer 400 output tokens take than 50; quadratic time would be 64."""
    batch = torch.stack([source[:8] for source in sources[:16]])
    lengths = torch.full((len(batch),), 8)

    @torch.inference_mode()
    def decode(length: int) -> None:
        limits = LengthLimits(min_length=length, max_length=length)
        greedy_search(model, batch, lengths, limits=limits)

    short, long = (str(length) for length in GROWTH_LENGTHS)
    functions = {str(length): partial(decode, length) for length in GROWTH_LENGTHS}
    times = time_interleaved(functions, seconds, min_rounds=3)
    return median_ratio(times, long, short)


def compare(model: Transformer, sources: Sequence[Tensor], beam_size: int, seconds: float) -> str:
    """Time the three libraries in turn; return a row of the table."""
    width, layers = model.target_embedding.width, len(model.encoder.layers)
    marian = build_marian(width, layers)
    words = [[WORDS[token] for token in source.tolist()] for source in sources]
    with tempfile.TemporaryDirectory() as folder:
        save_ctranslate2(model, Path(folder))
        translators = load_ctranslate2(Path(folder), len(sources))
        ours = decode_regard(model, sources, beam_size)
        theirs = decode_ctranslate2(translators[len(sources)], len(sources), words, beam_size)
        functions = {
            "regard": partial(decode_regard, model, sources, beam_size),
            "marian": partial(decode_marian, marian, sources, beam_size),
            **{
                f"ctranslate2 {batch}": partial(
                    decode_ctranslate2, translator, batch, words, beam_size
                )
                for batch, translator in translators.items()
            },
        }
        times = time_interleaved(functions, seconds, min_rounds=3)
    pairs = zip(ours, theirs, strict=True)
    identical = sum(one == other[: OUTPUT_TOKENS - 1] for one, other in pairs) / len(sources)
    # against the faster of CTranslate2's two ways
    ctranslate2_ratio = min(
        median_ratio(times, f"ctranslate2 {batch}", "regard") for batch in translators
    )
    marian_ratio = median_ratio(times, "marian", "regard")
    name = "greedy" if beam_size == 1 else f"beam {beam_size}"
    speed = len(sources) / min(times["regard"])
    return (
        f"| {name} | {speed:.0f} | {ctranslate2_ratio:.2f} | {marian_ratio:.1f} | {identical:.0%} |"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Compare greedy search and beam search with 5 beams, and print the growth with length."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=20.0, help="of each comparison")
    parser.add_argument("--sentences", type=int, default=256)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--width", type=int, default=256)
    options = parser.parse_args(arguments)
    model = build_model(options.width, options.layers)
    sources = random_sources(options.sentences)
    print("| search | sentences/s | × CTranslate2 float32 | × Hugging Face | same output |")
    print("|---|---|---|---|---|")
    for beam_size in (1, 5):
        print(compare(model, sources, beam_size, options.seconds))
    ratio = growth(model, sources, options.seconds)
    short, long = GROWTH_LENGTHS
    print(f"\n{long} output tokens take {ratio:.1f} × as long as {short} (goal: under 10).")


if __name__ == "__main__":
    main()
