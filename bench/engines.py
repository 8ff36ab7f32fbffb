"""Engines side by side, from sentences to sentences: the same words? how fast?

    python bench/engines.py RUN SOURCE [REFERENCE] [--seconds 20] [--limit N] [--no-speed]
    python bench/engines.py --smoke

RUN is a run that CTranslate2 can represent, SOURCE a file of sentences (.gz or not), REFERENCE
their translations. All engines get the same sentences, and tokenization and detokenization count.

- torch, ctranslate2, ctranslate2 int8: `run.translate` with each engine.
- direct: CTranslate2 in float32 called without regard, on the batches that regard would take, with
  the tokenizers that `regard export` writes; batches run asynchronously on all threads.
- Hugging Face: a Marian model of the same sizes, in batches of the same token ids; its parameters
  are random, and it writes as many tokens as the run's longest translation of each batch.

Speed is the number of sentences per second; ratios are medians over interleaved rounds. For a
sentence that two engines translate differently, both translations are scored with the torch
model: a difference near zero is a tie that rounding decides.
"""

import argparse
import gzip
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import ctranslate2
import torch
from torch import Tensor, nn
from transformers import MarianConfig, MarianMTModel

import regard
from regard.data import BOS, EOS, PAD
from regard.data.standalone import to_library_tokenizer
from regard.decoding import SentenceBatch
from regard.decoding.engines import save_ctranslate2
from regard.decoding.translation import sentence_batches
from regard.evaluation import bleu
from regard.models import Transformer
from timing import median_ratio, time_interleaved

ENGINES = {
    "torch": ("torch", None),
    "ctranslate2": ("ctranslate2", None),
    "ctranslate2 int8": ("ctranslate2", "int8"),
}
BEAM_SIZES = (1, 5)


def read_lines(path: Path, limit: int | None = None) -> list[str]:
    """Return the lines of a text file, .gz or not."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as file:
        return [line.strip() for line in islice(file, limit)]


def load_engines(folder: str) -> dict[str, regard.Run]:
    """Load the run once with each engine."""
    return {
        name: regard.load(folder, engine=engine, quantization=quantization)
        for name, (engine, quantization) in ENGINES.items()
    }


def agreement(
    runs: dict[str, regard.Run], sentences: list[str], references: list[str] | None, beam_size: int
) -> list[str]:
    """Return rows that compare the words of each engine with torch's."""
    words = {
        name: [str(each) for each in run.translate(sentences, beam_size=beam_size)]
        for name, run in runs.items()
    }
    rows = []
    for name in runs:
        differing = [
            (source, own, reference)
            for source, own, reference in zip(sentences, words[name], words["torch"], strict=True)
            if own != reference
        ]
        gaps = [score_gap(runs["torch"], *each) for each in differing]
        score = f"{bleu(words[name], references):.2f}" if references else "–"
        rows.append(
            f"| {search_name(beam_size)} | {name} | {1 - len(differing) / len(sentences):.1%} "
            f"| {max(gaps):.1e} | {score} |"
            if gaps
            else f"| {search_name(beam_size)} | {name} | 100 % | | {score} |"
        )
    return rows


def score_gap(run: regard.Run, source: str, own: str, reference: str) -> float:
    """Return how much log-probability per token the torch model sees between two translations."""
    scores = []
    for text in (own, reference):
        trace = run.trace(source, target=text) if text else None
        log_probs = [] if trace is None else (trace.tokens["target"].log_probs or ())
        known = [value for value in log_probs if value is not None]
        scores.append(sum(known) / max(len(known), 1))
    return abs(scores[0] - scores[1])


class DirectTranslator:
    """CTranslate2 in float32 as its documentation calls it, without regard."""

    def __init__(self, run: regard.Run) -> None:
        assert isinstance(run.model, Transformer)
        source, target = (to_library_tokenizer(tokenizer) for tokenizer in run.tokenizers)
        self.source, self.target = source, target
        threads = torch.get_num_threads()
        with TemporaryDirectory() as folder:
            save_ctranslate2(run.model, run.tokenizers, Path(folder))
            self.translator = ctranslate2.Translator(folder, inter_threads=threads, intra_threads=1)
        torch.set_num_threads(threads)  # loading may change it
        self.length_penalty = run.settings.search.length_penalty

    def translate(
        self, sentences: list[str], batches: Sequence[SentenceBatch], beam_size: int
    ) -> list[str]:
        """Translate the sentences in the given batches."""
        tokens = [encoding.tokens for encoding in self.source.encode_batch(sentences)]
        pending = [
            self.translator.translate_batch(
                [tokens[row] for row in batch.rows],
                beam_size=beam_size,
                length_penalty=self.length_penalty,
                max_decoding_length=2 * max(map(len, batch.sources)) + 20,
                asynchronous=True,
            )
            for batch in batches
        ]
        texts = [""] * len(sentences)
        for batch, results in zip(batches, pending, strict=True):
            for row, result in zip(batch.rows, results, strict=True):
                ids = [self.target.token_to_id(token) for token in result.result().hypotheses[0]]
                texts[row] = self.target.decode(ids)
        return texts


def build_marian(run: regard.Run) -> MarianMTModel:
    """Build a Hugging Face model of the same sizes."""
    sizes = run.settings.model
    config = MarianConfig(
        vocab_size=max(run.tokenizers.vocab_sizes),
        d_model=sizes.width,
        encoder_layers=sizes.layers,
        decoder_layers=sizes.layers,
        encoder_attention_heads=sizes.heads,
        decoder_attention_heads=sizes.heads,
        encoder_ffn_dim=sizes.ffn_width,
        decoder_ffn_dim=sizes.ffn_width,
        pad_token_id=PAD,
        eos_token_id=EOS,
        bos_token_id=BOS,
        decoder_start_token_id=BOS,
        forced_eos_token_id=None,
    )
    return MarianMTModel(config).eval()


@torch.inference_mode()
def decode_marian(
    model: MarianMTModel, sources: list[Tensor], lengths: list[int], beam_size: int
) -> None:
    """Decode padded batches with Hugging Face, each to its own number of tokens."""
    for source, length in zip(sources, lengths, strict=True):
        model.generate(
            source,
            attention_mask=(source != PAD).long(),
            num_beams=beam_size,
            do_sample=False,
            min_new_tokens=length,
            max_new_tokens=length,
        )


def speed(
    runs: dict[str, regard.Run], sentences: list[str], beam_size: int, seconds: float
) -> list[str]:
    """Return rows with the speed of every engine."""
    run = runs["torch"]
    options = run.translation_options(beam_size=beam_size)
    batches = sentence_batches(run.model, run.tokenizers, sentences, options)
    outputs = run.translate(sentences, beam_size=beam_size)
    lengths = [max(len(outputs[row].tokens) + 1 for row in batch.rows) for batch in batches]
    padded = [
        nn.utils.rnn.pad_sequence(
            [torch.tensor(source) for source in batch.sources], batch_first=True, padding_value=PAD
        )
        for batch in batches
    ]
    direct, marian = DirectTranslator(run), build_marian(run)
    functions: dict[str, Callable[[], Any]] = {
        name: partial(each.translate, sentences, beam_size=beam_size) for name, each in runs.items()
    }
    functions["direct"] = partial(direct.translate, sentences, batches, beam_size)
    functions["Hugging Face"] = partial(decode_marian, marian, padded, lengths, beam_size)
    times = time_interleaved(functions, seconds, min_rounds=3)
    return [
        f"| {search_name(beam_size)} | {name} | {len(sentences) / min(times[name]):.0f} "
        f"| {median_ratio(times, 'direct', name):.2f} "
        f"| {median_ratio(times, 'Hugging Face', name):.2f} |"
        for name in functions
    ]


def search_name(beam_size: int) -> str:
    """Return what a beam size is called."""
    return "greedy" if beam_size == 1 else f"beam size {beam_size}"


def main() -> None:
    """Print two tables: agreement and speed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", nargs="?", default="demo-model")
    parser.add_argument("source", nargs="?", type=Path)
    parser.add_argument("reference", nargs="?", type=Path)
    parser.add_argument("--seconds", type=float, default=20.0, help="of each comparison")
    parser.add_argument("--limit", type=int, help="number of sentences")
    parser.add_argument("--no-speed", action="store_true")
    parser.add_argument("--smoke", action="store_true", help="three sentences, once")
    options = parser.parse_args()
    references = None
    if options.smoke:
        options.seconds, sentences = 0.0, ["The cat sees a dog.", "I like it.", "The man works."]
    elif options.source is None:
        parser.error("SOURCE is needed: a file of sentences")
    else:
        sentences = read_lines(options.source, options.limit)
        if options.reference:
            references = read_lines(options.reference, options.limit)
    runs = load_engines(options.run)
    print("| search | engine | same words as torch | largest difference per token | BLEU |")
    print("|---|---|---|---|---|")
    for beam_size in BEAM_SIZES:
        print("\n".join(agreement(runs, sentences, references, beam_size)), flush=True)
    if options.no_speed:
        return
    print("\n| search | engine | sentences/s | × direct CTranslate2 float32 | × Hugging Face |")
    print("|---|---|---|---|---|")
    for beam_size in BEAM_SIZES:
        print("\n".join(speed(runs, sentences, beam_size, options.seconds)), flush=True)


if __name__ == "__main__":
    main()
