"""Decoding speed against CTranslate2 (the same parameters) and Hugging Face (the same sizes).

    python bench/decode.py [--seconds 20] [--batch-sizes] [--smoke]

Needs `pip install transformers ctranslate2`; without CTranslate2, its columns are left out.
`--batch-sizes` compares, instead, CTranslate2 in float32 and int8 by the number of sentences that a
thread decodes together, which `regard.decoding.engines.max_batch_size` chooses.
`--smoke` runs everything once at a tiny size, to see that it works.
"""

import argparse
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from marian import build_marian, decode_marian
from regard._support.resources import parallel_map
from regard.config import ModelConfig
from regard.data import PAD
from regard.decoding import LengthLimits, beam_search, greedy_search
from regard.models import Transformer, TransformerLayer, build
from regard.positions import sinusoidal
from timing import median_ratio, time_interleaved

try:
    import ctranslate2
    from ctranslate2.specs import transformer_spec
except ImportError:
    ctranslate2 = None

VOCAB_SIZE, HEADS = 8000, 4
OUTPUT_TOKENS = 15  # of every translation, EOS included
BATCH_SENTENCES = 128  # of a batch in regard; its batches are decoded in parallel threads
BATCH_SIZES = (128, 64, 32, 16)  # of CTranslate2
WORDS = ["<pad>", "<s>", "</s>", "<unk>", *(f"w{n}" for n in range(VOCAB_SIZE - 4))]
TOKEN_IDS = {word: token for token, word in enumerate(WORDS)}


def model_config(width: int, layers: int) -> ModelConfig:
    """Return the sizes of all compared models."""
    return ModelConfig(
        width=width, layers=layers, heads=HEADS, ffn_width=4 * width, norm="pre", dropout=0.0
    )


def build_model(width: int, layers: int) -> Transformer:
    """Build an untrained model."""
    torch.manual_seed(0)
    model = build(model_config(width, layers), VOCAB_SIZE).eval()
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
    results = beam_search(model, pad(batch), lengths, beam_size=beam_size, limits=limits)
    return [hypotheses[0].tokens for hypotheses in results]


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


def load_ctranslate2(folder: Path, sentences: int) -> dict[int, Any]:
    """Load the model so that threads share a batch, and so that each has one; by batch size.

    Either may be the faster one.
    """
    threads = torch.get_num_threads()
    shared = ctranslate2.Translator(str(folder), inter_threads=1, intra_threads=threads)
    separate = ctranslate2.Translator(str(folder), inter_threads=threads, intra_threads=1)
    torch.set_num_threads(threads)  # loading may change it
    return {sentences: shared, max(sentences // threads, 1): separate}


def decode_ctranslate2(
    translator: Any, batch: int, sources: list[list[str]], beam_size: int
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


def growth(
    model: Transformer, sources: Sequence[Tensor], lengths: tuple[int, int], seconds: float
) -> float:
    """Return how many times longer the second output length takes than the first."""
    batch = torch.stack([source[:8] for source in sources[:16]])
    source_lengths = torch.full((len(batch),), 8)

    @torch.inference_mode()
    def decode(length: int) -> None:
        limits = LengthLimits(min_length=length, max_length=length)
        greedy_search(model, batch, source_lengths, limits=limits)

    short, long = (str(length) for length in lengths)
    functions = {str(length): partial(decode, length) for length in lengths}
    return median_ratio(time_interleaved(functions, seconds, min_rounds=3), long, short)


def compare(model: Transformer, sources: Sequence[Tensor], beam_size: int, seconds: float) -> str:
    """Time the libraries in turn; return a row of the table."""
    sizes = model_config(model.target_embedding.width, len(model.encoder.layers))
    marian = build_marian(sizes, VOCAB_SIZE)
    functions: dict[str, Callable[[], object]] = {
        "regard": partial(decode_regard, model, sources, beam_size),
        "marian": partial(decode_marian, marian, pad(sources), beam_size, OUTPUT_TOKENS),
    }
    identical = "–"
    with tempfile.TemporaryDirectory() as folder:
        if ctranslate2 is not None:
            save_ctranslate2(model, Path(folder))
            words = [[WORDS[token] for token in source.tolist()] for source in sources]
            for batch, translator in load_ctranslate2(Path(folder), len(sources)).items():
                function = partial(decode_ctranslate2, translator, batch, words, beam_size)
                functions[f"ctranslate2 {batch}"] = function
            pairs = zip(functions["regard"](), function(), strict=True)
            same = sum(ours == theirs[: OUTPUT_TOKENS - 1] for ours, theirs in pairs)
            identical = f"{same / len(sources):.0%}"
        times = time_interleaved(functions, seconds, min_rounds=3)
    # against the faster of CTranslate2's two ways
    ratios = [median_ratio(times, name, "regard") for name in times if "ctranslate2" in name]
    faster = f"{min(ratios):.2f}" if ratios else "–"
    search = "greedy" if beam_size == 1 else f"beam size {beam_size}"
    speed = len(sources) / min(times["regard"])
    marian_ratio = median_ratio(times, "marian", "regard")
    return f"| {search} | {speed:.0f} | {faster} | {marian_ratio:.1f} | {identical} |"


def compare_batch_sizes(model: Transformer, sources: Sequence[Tensor], seconds: float) -> None:
    """Print the speed of CTranslate2 by quantization and batch size, against the best float32."""
    words = [[WORDS[token] for token in source.tolist()] for source in sources]
    threads = torch.get_num_threads()
    translators = {}
    with tempfile.TemporaryDirectory() as folder:
        save_ctranslate2(model, Path(folder))
        for name in ("float32", "int8"):
            translators[name] = ctranslate2.Translator(
                folder, inter_threads=threads, intra_threads=1, compute_type=name
            )
    torch.set_num_threads(threads)  # loading may change it
    print("| search | quantization | batch size | sentences/s | × best float32 |")
    print("|---|---|---|---|---|")
    for beam_size in (1, 5):
        functions = {
            f"{name} | {batch}": partial(decode_ctranslate2, translator, batch, words, beam_size)
            for name, translator in translators.items()
            for batch in BATCH_SIZES
        }
        times = time_interleaved(functions, seconds, min_rounds=3)
        best = min((name for name in times if "float32" in name), key=lambda name: min(times[name]))
        search = "greedy" if beam_size == 1 else f"beam size {beam_size}"
        for name in times:
            speed = len(sources) / min(times[name])
            print(f"| {search} | {name} | {speed:.0f} | {median_ratio(times, best, name):.2f} |")


def main() -> None:
    """Compare greedy search and beam search with 5 beams, and print the growth with length."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=20.0, help="of each comparison")
    parser.add_argument("--batch-sizes", action="store_true", help="compare those of CTranslate2")
    parser.add_argument("--smoke", action="store_true", help="tiny model, one second in all")
    options = parser.parse_args()
    seconds = 0.0 if options.smoke else options.seconds
    model = build_model(width=16, layers=1) if options.smoke else build_model(256, 4)
    sources = random_sources(3 if options.smoke else 256)
    if options.batch_sizes:
        compare_batch_sizes(model, sources, seconds)
        return
    print("| search | sentences/s | × CTranslate2 float32 | × Hugging Face | same output |")
    print("|---|---|---|---|---|")
    for beam_size in (1, 5):
        print(compare(model, sources, beam_size, seconds))
    short, long = (2, 16) if options.smoke else (50, 400)
    ratio = growth(model, sources, (short, long), seconds)
    print(f"\n{long} output tokens take {ratio:.1f} × as long as {short}.")
    print("Time that is linear in the length would give 8, quadratic time 64; the goal is 10.")


if __name__ == "__main__":
    main()
