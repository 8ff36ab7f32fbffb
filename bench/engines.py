"""Engines side by side, from sentences to sentences: the same words? how fast?

    python bench/engines.py RUN --data FOLDER [--languages en fr] [--seconds 20] [--limit N]
        [--cpu-time]
    python bench/engines.py --smoke

RUN is a run that CTranslate2 can represent, and FOLDER has Multi30k: `val.en.gz` and
`test_2016_flickr.en.gz` with their translations. Words are compared on the validation sentences,
BLEU and speed are those of the test set. All engines get the same sentences, and tokenization and
detokenization count.

- torch, ctranslate2, ctranslate2 int8: `run.translate` with each engine.
- direct: CTranslate2 in float32 called without regard, on the batches that regard would take (also
  within CTranslate2: `max_batch_size`), with the tokenizers that `regard export` writes; batches
  run asynchronously on all threads.
- Hugging Face: a Marian model of the same sizes, in batches of the same token ids; its parameters
  are random, and it writes as many tokens as the run's longest translation of each batch.

Speed is the number of sentences per second, or of CPU time with `--cpu-time`, for a busy machine;
ratios are medians over interleaved rounds. For a
sentence that two engines translate differently, the torch model scores both translations as the
search ranks them, and in greedy search the first tokens that differ. A difference below 0.001 is
a tie that rounding decides; other sentences are printed.
"""

import argparse
import gzip
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import ctranslate2
import torch
from torch import Tensor, nn
from transformers import MarianMTModel

import regard
from marian import build_marian, decode_marian
from regard.data import EOS, PAD, to_library_tokenizer
from regard.decoding import SentenceBatch, Translation
from regard.decoding.engines import max_batch_size, save_ctranslate2
from regard.decoding.translation import sentence_batches
from regard.evaluation import bleu
from regard.models import Transformer
from regard.runs import trace_translation
from timing import median_ratio, time_interleaved

ENGINES = {
    "torch": ("torch", None),
    "ctranslate2": ("ctranslate2", None),
    "ctranslate2 int8": ("ctranslate2", "int8"),
}
BEAM_SIZES = (1, 5)
TIE = 1e-3  # largest difference of log-probabilities that rounding may decide
GOALS = (  # by beam size
    ("ctranslate2", "direct", {1: 0.97, 5: 0.97}),
    ("ctranslate2 int8", "direct", {1: 1.9, 5: 1.6}),
    ("ctranslate2 int8", "Hugging Face", {1: 3, 5: 5}),
)


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


class Agreement(NamedTuple):
    """How the translations of an engine differ from those of torch."""

    same: float  # share of the sentences
    gaps: list[float]  # of the other sentences, by the torch model
    others: list[str]  # sentences that differ by more than a tie

    @property
    def ties(self) -> int:
        """Number of sentences that rounding decides."""
        return len(self.gaps) - len(self.others)


def compare_words(
    reference_run: regard.Run, run: regard.Run, sentences: list[str], beam_size: int
) -> Agreement:
    """Compare the translations of two engines."""
    pairs = zip(
        sentences,
        run.translate(sentences, beam_size=beam_size),
        reference_run.translate(sentences, beam_size=beam_size),
        strict=True,
    )
    differing = [(source, one, other) for source, one, other in pairs if one.text != other.text]
    gaps = [score_gap(reference_run, *each, beam_size) for each in differing]
    others = [
        f"{source} → {one} | {other} ({gap:.4f})"
        for gap, (source, one, other) in zip(gaps, differing, strict=True)
        if gap >= TIE
    ]
    return Agreement(1 - len(differing) / len(sentences), gaps, others)


def score_gap(
    run: regard.Run, source: str, one: Translation, other: Translation, beam_size: int
) -> float:
    """Return the difference that decided between two translations, by the torch model.

    Of beam search it is that of the scores; of greedy search, that of the log-probabilities of the
    first tokens that differ.
    """
    log_probs = [forced_log_probs(run, source, each.tokens) for each in (one, other)]
    if beam_size == 1:
        first = next(
            position
            for position, (own, token) in enumerate(
                zip((*one.tokens, EOS), (*other.tokens, EOS), strict=False)
            )
            if own != token
        )
        return abs(log_probs[0][first] - log_probs[1][first])
    penalty = run.settings.search.length_penalty
    scores = [sum(each) / len(each) ** penalty for each in log_probs]
    return abs(scores[0] - scores[1])


def forced_log_probs(run: regard.Run, source: str, tokens: Sequence[int]) -> list[float]:
    """Return the log-probability of each token of a translation and of EOS."""
    trace = trace_translation(run.model, run.tokenizers, source.strip(), tokens)
    return [value for value in trace.tokens["target"].log_probs or () if value is not None]


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
                max_batch_size=max_batch_size("float32"),
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


def decode_batches(
    model: MarianMTModel, sources: list[Tensor], lengths: list[int], beam_size: int
) -> None:
    """Decode padded batches with Hugging Face, each to its own number of tokens."""
    for source, length in zip(sources, lengths, strict=True):
        decode_marian(model, source, beam_size, length)


def measure_speed(
    runs: dict[str, regard.Run],
    sentences: list[str],
    beam_size: int,
    seconds: float,
    clock: Callable[[], float],
) -> dict[str, list[float]]:
    """Return the seconds of every round, by engine."""
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
    direct = DirectTranslator(run)
    marian = build_marian(run.settings.model, max(run.tokenizers.vocab_sizes))
    functions: dict[str, Callable[[], Any]] = {
        name: partial(each.translate, sentences, beam_size=beam_size) for name, each in runs.items()
    }
    functions["direct"] = partial(direct.translate, sentences, batches, beam_size)
    functions["Hugging Face"] = partial(decode_batches, marian, padded, lengths, beam_size)
    return time_interleaved(functions, seconds, min_rounds=3, clock=clock)


def search_name(beam_size: int) -> str:
    """Return what a beam size is called."""
    return "greedy" if beam_size == 1 else f"beam size {beam_size}"


def report_agreement(
    runs: dict[str, regard.Run], valid: list[str], test: list[str], references: list[str] | None
) -> list[str]:
    """Print how words and BLEU differ between engines; return rows of the summary."""
    summary, others = [], []
    print("| search | engine | same words as torch | ties | other | largest difference | BLEU |")
    print("|---|---|---|---|---|---|---|")
    for beam_size in BEAM_SIZES:
        scores = {}
        for name, run in runs.items():
            result = compare_words(runs["torch"], run, valid, beam_size)
            if references:
                words = [str(each) for each in run.translate(test, beam_size=beam_size)]
                scores[name] = bleu(words, references)
            print(
                f"| {search_name(beam_size)} | {name} | {result.same:.1%} | {result.ties} "
                f"| {len(result.others)} | {max(result.gaps, default=0.0):.4f} "
                f"| {f'{scores[name]:.2f}' if scores else '–'} |",
                flush=True,
            )
            if name == "ctranslate2":
                others += result.others
                summary.append(
                    f"| same words in float32, {search_name(beam_size)} | {result.same:.1%} "
                    f"| ≥ 99 % |"
                )
        if scores:
            change = scores["ctranslate2 int8"] - scores["torch"]
            summary.append(
                f"| BLEU of int8 − torch, {search_name(beam_size)} | {change:+.2f} | ≥ −0.2 |"
            )
    for line in others:
        print(f"no tie: {line}")
    return summary


def report_speed(
    runs: dict[str, regard.Run],
    sentences: list[str],
    seconds: float,
    clock: Callable[[], float] = time.perf_counter,
) -> list[str]:
    """Print the speed of every engine; return rows of the summary."""
    summary = []
    print("\n| search | engine | sentences/s | × direct CTranslate2 float32 | × Hugging Face |")
    print("|---|---|---|---|---|")
    for beam_size in BEAM_SIZES:
        times = measure_speed(runs, sentences, beam_size, seconds, clock)
        for name in times:
            print(
                f"| {search_name(beam_size)} | {name} | {len(sentences) / min(times[name]):.0f} "
                f"| {median_ratio(times, 'direct', name):.2f} "
                f"| {median_ratio(times, 'Hugging Face', name):.2f} |",
                flush=True,
            )
        for engine, reference, goals in GOALS:
            summary.append(
                f"| {engine} / {reference}, {search_name(beam_size)} "
                f"| {median_ratio(times, reference, engine):.2f} | ≥ {goals[beam_size]} |"
            )
    return summary


def main() -> None:
    """Print agreement, speed, and a summary with the goals."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", nargs="?", default="demo-model")
    parser.add_argument("--data", type=Path, metavar="FOLDER")
    parser.add_argument("--languages", nargs=2, default=("en", "fr"), metavar=("FROM", "TO"))
    parser.add_argument("--seconds", type=float, default=20.0, help="of each comparison")
    parser.add_argument("--limit", type=int, help="number of sentences")
    parser.add_argument("--no-speed", action="store_true")
    parser.add_argument("--cpu-time", action="store_true", help="of all threads, not wall time")
    parser.add_argument("--smoke", action="store_true", help="three sentences, once")
    options = parser.parse_args()
    references = None
    if options.smoke:
        options.seconds = 0.0
        valid = test = ["The cat sees a dog.", "I like it.", "The man works."]
    elif options.data is None:
        parser.error("--data is required, except with --smoke")
    else:
        source, target = options.languages
        valid = read_lines(options.data / f"val.{source}.gz", options.limit)
        test, references = (
            read_lines(options.data / f"test_2016_flickr.{language}.gz", options.limit)
            for language in (source, target)
        )
    runs = load_engines(options.run)
    summary = report_agreement(runs, valid, test, references)
    if not options.no_speed:
        clock = time.process_time if options.cpu_time else time.perf_counter
        summary += report_speed(runs, test, options.seconds, clock)
    print("\n| measure | result | goal |\n|---|---|---|")
    print("\n".join(summary))


if __name__ == "__main__":
    main()
