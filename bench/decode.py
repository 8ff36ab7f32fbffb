"""Decoding side by side with CTranslate2 and Hugging Face: same weights, or same sizes.

    python bench/decode.py [--seconds 20]

Needs `pip install ctranslate2 transformers`.
"""

import argparse
import tempfile
from functools import partial
from pathlib import Path

import ctranslate2
import torch
from ctranslate2.specs import transformer_spec
from torch import Tensor, nn
from transformers import MarianConfig, MarianMTModel

from regard._support.threads import parallel_map
from regard.config import ModelConfig
from regard.data import BOS, EOS, PAD
from regard.decoding import LengthLimits, beam_search, greedy_search
from regard.models import Transformer, build
from regard.positions import sinusoidal
from timing import ratio, rounds

VOCABULARY, WIDTH, LAYERS, HEADS, HIDDEN = 8000, 256, 4, 4, 1024
SOURCES, BATCH, OUT = 256, 256, 15  # sentences, sentences at a time at most, tokens out
PART = 128  # sentences in a part, when parts are translated side by side
WORDS = ["<pad>", "<s>", "</s>", "<unk>", *(f"w{n}" for n in range(VOCABULARY - 4))]
NUMBERS = {word: number for number, word in enumerate(WORDS)}


def make_model() -> Transformer:
    """Make a translator with random weights, strong enough to prefer some words."""
    torch.manual_seed(0)
    settings = ModelConfig(
        width=WIDTH, layers=LAYERS, heads=HEADS, ffn_width=HIDDEN, norm="pre", dropout=0.0
    )
    model = build(settings, (VOCABULARY, VOCABULARY)).eval()
    assert isinstance(model, Transformer)
    return model


def make_sources() -> list[Tensor]:
    """Draw sentences of 8 to 20 words, sorted by length, as a translator would."""
    lengths = torch.randint(8, 21, (SOURCES,)).sort().values.tolist()
    return [torch.randint(4, VOCABULARY, (length,)) for length in lengths]


def ours(model: Transformer, sources: list[Tensor], beams: int) -> list[tuple[int, ...]]:
    """Translate with regard, in parts side by side."""
    parts = [sources[first : first + PART] for first in range(0, SOURCES, PART)]
    found = list(parallel_map(partial(_ours, model, beams), parts))
    return [tokens for part in found for tokens in part]


@torch.inference_mode()
def _ours(model: Transformer, beams: int, part: list[Tensor]) -> list[tuple[int, ...]]:
    lengths = torch.tensor([len(source) for source in part])
    padded = nn.utils.rnn.pad_sequence(part, batch_first=True, padding_value=PAD)
    limits = LengthLimits(min_length=OUT - 1, max_length=OUT - 1)  # and the end makes OUT steps
    found = beam_search(model, padded, lengths, beam_size=beams, limits=limits)
    return [texts[0].tokens for texts in found]


def to_ctranslate2(model: Transformer, folder: Path) -> None:
    """Write the same weights as a CTranslate2 model."""
    spec = transformer_spec.TransformerSpec.from_config(LAYERS, HEADS, pre_norm=True)
    spec.register_source_vocabulary(WORDS)
    spec.register_target_vocabulary(WORDS)
    spec.config.add_source_eos = False
    for part in (spec.encoder, spec.decoder):
        part.position_encodings.encodings = sinusoidal(512, WIDTH).numpy()
    spec.encoder.embeddings[0].weight = _numbers(model.source_embedding.weight)
    spec.decoder.embeddings.weight = _numbers(model.target_embedding.weight)
    spec.decoder.projection.weight = _numbers(model.target_embedding.weight)
    spec.decoder.projection.bias = torch.zeros(VOCABULARY).numpy()
    for theirs, layer in zip(spec.encoder.layer, model.encoder.layers, strict=True):
        _fill(theirs, layer)
    for theirs, layer in zip(spec.decoder.layer, model.decoder.layers, strict=True):
        _fill(theirs, layer)
        _fill_norm(theirs.attention.layer_norm, layer.cross_residual.norm)
        _fill_linear(theirs.attention.linear[0], layer.cross.query)
        _fill_linear(theirs.attention.linear[1], layer.cross.key, layer.cross.value)
        _fill_linear(theirs.attention.linear[2], layer.cross.out)
    _fill_norm(spec.encoder.layer_norm, model.encoder.norm)
    _fill_norm(spec.decoder.layer_norm, model.decoder.norm)
    spec.validate()
    spec.optimize()
    spec.save(str(folder))


def load_both_ways(folder: Path) -> dict[int, ctranslate2.Translator]:
    """Load it so that threads share a batch, or so that each has its own; by sentences at a time.

    Either may be the faster one.
    """
    threads = torch.get_num_threads()
    shared = ctranslate2.Translator(str(folder), inter_threads=1, intra_threads=threads)
    apart = ctranslate2.Translator(str(folder), inter_threads=threads, intra_threads=1)
    torch.set_num_threads(threads)  # loading may change it
    return {BATCH: shared, BATCH // threads: apart}


def _fill(theirs: object, layer: nn.Module) -> None:
    attention = layer.attention
    _fill_norm(theirs.self_attention.layer_norm, layer.attention_residual.norm)
    _fill_linear(theirs.self_attention.linear[0], attention.query, attention.key, attention.value)
    _fill_linear(theirs.self_attention.linear[1], attention.out)
    _fill_norm(theirs.ffn.layer_norm, layer.feed_forward_residual.norm)
    _fill_linear(theirs.ffn.linear_0, layer.feed_forward.up)
    _fill_linear(theirs.ffn.linear_1, layer.feed_forward.down)


def _fill_norm(theirs: object, norm: nn.LayerNorm) -> None:
    theirs.gamma, theirs.beta = _numbers(norm.weight), _numbers(norm.bias)


def _fill_linear(theirs: object, *layers: nn.Linear) -> None:
    theirs.weight = _numbers(torch.cat([layer.weight for layer in layers]))
    theirs.bias = _numbers(torch.cat([layer.bias for layer in layers]))


def _numbers(tensor: Tensor) -> object:
    return tensor.detach().numpy()


def theirs(
    translator: ctranslate2.Translator, batch: int, sources: list[list[str]], beams: int
) -> list[tuple[int, ...]]:
    """Translate with CTranslate2."""
    results = translator.translate_batch(
        sources,
        beam_size=beams,
        max_batch_size=batch,
        min_decoding_length=OUT,
        max_decoding_length=OUT,
        suppress_sequences=[["<pad>"], ["<s>"]],
    )
    return [tuple(NUMBERS[word] for word in result.hypotheses[0]) for result in results]


def make_marian() -> MarianMTModel:
    """Make a Hugging Face model of the same sizes, with random weights."""
    config = MarianConfig(
        vocab_size=VOCABULARY,
        d_model=WIDTH,
        encoder_layers=LAYERS,
        decoder_layers=LAYERS,
        encoder_attention_heads=HEADS,
        decoder_attention_heads=HEADS,
        encoder_ffn_dim=HIDDEN,
        decoder_ffn_dim=HIDDEN,
        pad_token_id=PAD,
        eos_token_id=EOS,
        bos_token_id=BOS,
        decoder_start_token_id=BOS,
        forced_eos_token_id=None,
    )
    return MarianMTModel(config).eval()


def marian(model: MarianMTModel, sources: list[Tensor], beams: int) -> None:
    """Translate in batches with Hugging Face."""
    for first in range(0, len(sources), BATCH):
        batch = sources[first : first + BATCH]
        padded = nn.utils.rnn.pad_sequence(batch, batch_first=True, padding_value=PAD)
        with torch.inference_mode():
            model.generate(
                padded,
                attention_mask=(padded != PAD).long(),
                num_beams=beams,
                do_sample=False,
                min_new_tokens=OUT,
                max_new_tokens=OUT,
            )


def growth(model: Transformer, sources: list[Tensor], seconds: float) -> float:
    """Give how many times longer 400 tokens out take than 50; the square would be 64 times."""
    batch = torch.stack([source[:8] for source in sources[:16]])

    @torch.inference_mode()
    def say(out: int) -> None:
        limits = LengthLimits(min_length=out, max_length=out)
        greedy_search(model, batch, torch.full((16,), 8), limits=limits)

    times = rounds({"50": partial(say, 50), "400": partial(say, 400)}, seconds, least=3)
    return ratio(times, "400", "50")


def main() -> None:
    """Compare greedy and beam 5."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=20.0)
    wishes = parser.parse_args()
    model, sources, hugging = make_model(), make_sources(), make_marian()
    words = [[WORDS[token] for token in source.tolist()] for source in sources]
    with tempfile.TemporaryDirectory() as folder:
        to_ctranslate2(model, Path(folder))
        translators = load_both_ways(Path(folder))
        print("| search | sentences/s | × CTranslate2 float32 | × Hugging Face | same words |")
        print("|---|---|---|---|---|")
        for beams in (1, 5):
            mine, other = (
                ours(model, sources, beams),
                theirs(translators[BATCH], BATCH, words, beams),
            )
            same = sum(a == b[: OUT - 1] for a, b in zip(mine, other, strict=True)) / SOURCES
            times = rounds(
                {
                    "ours": partial(ours, model, sources, beams),
                    "hugging": partial(marian, hugging, sources, beams),
                    **{
                        f"theirs {batch}": partial(theirs, translator, batch, words, beams)
                        for batch, translator in translators.items()
                    },
                },
                wishes.seconds,
                least=3,
            )
            name = "greedy" if beams == 1 else f"beam {beams}"
            # against the faster of its two ways
            faster = min(1 / ratio(times, "ours", f"theirs {batch}") for batch in translators)
            hugged = 1 / ratio(times, "ours", "hugging")
            speed = SOURCES / min(times["ours"])
            print(f"| {name} | {speed:.0f} | {faster:.2f} | {hugged:.1f} | {same:.0%} |")
    times_longer = growth(model, sources, wishes.seconds)
    print(f"\n400 tokens out take {times_longer:.1f} × as long as 50 (goal: under 10).")


if __name__ == "__main__":
    main()
