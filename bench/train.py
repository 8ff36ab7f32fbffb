"""Training speed side by side with JoeyNMT 2.3: same model, same tokens, same batch size.

    python bench/train.py --data FOLDER --joeynmt PYTHON [--seconds 8] [--rounds 6] [--cores 2]
    python bench/train.py --smoke

FOLDER has train.en.gz and train.de.gz (Multi30k). PYTHON is the interpreter of an environment with
JoeyNMT; without it, regard is measured alone. To make one:

    python -m venv joey && joey/bin/pip install joeynmt==2.3.0 torch==2.13.0

--smoke takes seconds: a tiny model on sentences made up on the fly, to see that everything runs.

The recipe is the preset `multi30k`: 4 + 4 layers, width 128, feed-forward 256, 4 heads, one
embedding for source, target and output, a joint BPE vocabulary of 8,000, dropout 0.3, label
smoothing 0.1, gradients clipped to norm 1, batches of 2,048 tokens. Where JoeyNMT cannot follow
the preset, regard follows JoeyNMT: layer norm after the sublayers, Adam instead of Muon.

What each side does:

- Both train on the same tokens: regard's BPE is trained and applied once, beforehand. JoeyNMT gets
  them as words with a vocabulary of the same size, which spares it the tokenization that it
  otherwise repeats in every epoch.
- JoeyNMT runs its own `TrainManager.train_and_validate`, with its own data sets, batches, loss,
  optimizer and schedule. Everything else is at its defaults: no data workers, no batching by length
  (it has none: `batch_type: token` takes sentences in shuffled order until the longest times their
  number reaches the batch size). It appends an end token to each source. Its code is not changed;
  a subclass that calls the original counts the steps. One module, `importlib_metadata`, is replaced
  by the standard library's if it is missing.
- regard runs its own `TrainingLoop.run`, as `regard train` does: one process with a thread for
  each core (1 × 2), and a process for each core (2 × 1), as `torchrun --nproc-per-node 2` starts
  them. JoeyNMT has 1 × 2: for several processes it needs NCCL, hence GPUs.
- JoeyNMT also applies dropout to attention weights and inside the feed-forward network, which
  cannot be switched off. "same dropout" is regard doing the same (`inner_dropout = 0.3`); "recipe"
  is the preset.

What is counted: target tokens, the end of each sentence included, padding not. A turn consists of
whole steps, with batching, clipping and the optimizer, without validation. Turns alternate, and
the ratio is the median over rounds. Other programs slow several threads of one process, which wait
for each other at every operation, more than anything else: on a busy machine, `--cores 1` compares
one thread with one thread.

The share of peak is the arithmetic of the model's matrix products, forward and backward, over
tokens without padding, against a float32 product of 2048 × 2048, measured in every round on all
cores, with oneDNN where regard trains with it. Backward counts twice as much as forward; causal
attention counts the half that it needs.
"""

import argparse
import gzip
import json
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import torch

from regard import presets
from regard._support.linear import fast_products, multiply
from regard.config import ModelConfig, RunConfig
from regard.data import Corpus, EncodedPairs
from regard.runs import RunFolder
from regard.training import TrainingData
from regard.training.preparation import open_data, prepare_data
from regard.training.setup import scan_corpus
from turns import Turn, Worker

HERE = Path(__file__).parent
DROPOUT = {"same": "same dropout", "recipe": "dropout of the recipe"}
NEVER = 10**9
SPECIAL_TOKENS = 4  # both sides have as many
PEAK_SIZE = 2048  # of the square matrices whose product measures the peak
SMOKE_PAIRS = 300
SMOKE_SETTINGS: dict[str, Any] = {
    "data": {"vocab_size": 400},
    "model": {"layers": 1, "width": 16, "ffn_width": 16, "heads": 2},
    "train": {"batch_tokens": 256},
}


def recipe(updates: Mapping[str, Any], inner_dropout: float = 0.0) -> RunConfig:
    """Return the preset with JoeyNMT's optimizer and norm, without validation, saving or end."""
    train = {
        "optimizer": "adam",
        "steps": NEVER,
        "validate_every": NEVER,
        "patience": 0,
        "save_every": float(NEVER),
    }
    model = {"inner_dropout": inner_dropout, "norm": "post"}
    config = RunConfig.from_dict(presets.read("multi30k"))
    return config.update({"train": train, "model": model}).update(updates)


def write_smoke_data(folder: Path) -> None:
    """Write a few sentences of random words in two invented languages."""
    rng = random.Random(0)
    words = ["".join(rng.choices("abcdefghij", k=4)) for _ in range(40)]
    sentences = [rng.choices(words, k=rng.randint(3, 12)) for _ in range(SMOKE_PAIRS)]
    for language, suffix in (("en", ""), ("de", "en")):
        text = "".join(" ".join(word + suffix for word in words) + "\n" for words in sentences)
        with gzip.open(folder / f"train.{language}.gz", "wt") as file:
            file.write(text)


def prepare(folder: Path, data: Path, config: RunConfig) -> TrainingData:
    """Train the tokenizer and encode the pairs, as for a run that is about to start."""
    corpus = Corpus.from_files([data / "train.en.gz", data / "train.de.gz"])
    run, pairs = RunFolder(folder), scan_corpus(corpus).pairs
    run.write_settings(config, {"texts": list(corpus.names), "pairs": pairs})
    prepare_data(run, config, corpus, None, pairs)
    return open_data(run, config)


def write_joeynmt_data(pairs: EncodedPairs, vocab_size: int, config: RunConfig, to: Path) -> None:
    """Write the same pairs for JoeyNMT, with token ids as words, and the settings it needs."""
    to.mkdir()
    tokens = [pairs.pair(index) for index in range(len(pairs))]
    for name, side in (("source", 0), ("target", 1)):
        lines = (" ".join(map(str, pair[side].tolist())) for pair in tokens)
        (to / f"train.{name}").write_text("\n".join(lines) + "\n")
    words = "\n".join(map(str, range(SPECIAL_TOKENS, vocab_size)))
    (to / "vocabulary.txt").write_text(words + "\n")
    settings = config.to_dict()
    (to / "settings.json").write_text(json.dumps({**settings["model"], **settings["train"]}))


def flops_per_token(pairs: EncodedPairs, model: ModelConfig, vocab_size: int) -> float:
    """Return the floating-point operations of all matrix products in training, per target token."""
    source, target = pairs.lengths[0].astype(float), pairs.lengths[1] + 1.0
    square, feed_forward = model.width**2, 2 * model.width * model.ffn_width
    encoder = source * (4 * square + feed_forward) + 2 * source**2 * model.width
    self_attention = target * 4 * square + target * (target + 1) * model.width
    cross_attention = (target + source) * 2 * square + 2 * target * source * model.width
    decoder = self_attention + cross_attention + target * feed_forward
    multiplications = model.layers * (encoder + decoder) + target * model.width * vocab_size
    # a multiplication and an addition; once forward and twice backward
    return float(2 * 3 * multiplications.sum() / target.sum())


def measure_peak(seconds: float) -> float:
    """Return the operations per second of a large float32 product: the best of many."""
    left, right = torch.rand(PEAK_SIZE, PEAK_SIZE), torch.rand(PEAK_SIZE, PEAK_SIZE)
    times, end = [], time.perf_counter() + seconds
    while not times or time.perf_counter() < end:
        start = time.perf_counter()
        with fast_products():  # of the library that regard trains with
            multiply(left, right)
        times.append(time.perf_counter() - start)
    return 2 * PEAK_SIZE**3 / min(times)


@contextmanager
def start_workers(
    work: Path, data: Path, joeynmt: str | None, cores: int, updates: Mapping[str, Any]
) -> Iterator[tuple[dict[str, Worker], float]]:
    """Prepare the data and start all workers; yield them and the FLOP of a target token."""
    ready = prepare(work / "recipe", data, recipe(updates))
    shutil.copytree(work / "recipe", work / "same")
    same = recipe(updates, inner_dropout=ready.config.model.dropout)
    known = RunFolder(work / "recipe")
    RunFolder(work / "same").write_settings(same, known.read_settings()[1], known.read_id())
    vocab_size = len(ready.tokenizers.target)
    write_joeynmt_data(ready.train, vocab_size, ready.config, work / "joeynmt")
    workers = {}
    for name in ("same", "recipe"):
        for processes in sorted({1, cores}):
            title = f"regard, {DROPOUT[name]}, {processes} × {cores // processes}"
            script = [str(HERE / "train_regard.py"), str(work / name)]
            workers[title] = _start(sys.executable, script, processes, cores // processes)
    if joeynmt is not None:
        script = [str(HERE / "train_joeynmt.py"), str(work / "joeynmt")]
        workers["JoeyNMT"] = _start(joeynmt, script, 1, cores)
    try:
        yield workers, flops_per_token(ready.train, ready.config.model, vocab_size)
    finally:
        for worker in workers.values():
            worker.close()


def _start(python: str, script: list[str], processes: int, threads: int) -> Worker:
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    launcher = torchrun if processes > 1 else []
    return Worker([python, *launcher, *script], {"OMP_NUM_THREADS": str(threads)})


def run_rounds(
    workers: Mapping[str, Worker], seconds: float, count: int
) -> tuple[dict[str, list[Turn]], list[float]]:
    """Give each worker its turn, round after round, after a warm-up; return turns and peaks."""
    for worker in workers.values():
        worker.turn(seconds / 2)
    turns: dict[str, list[Turn]] = {name: [] for name in workers}
    peaks = []
    for index in range(count):
        for name, worker in workers.items():
            turns[name].append(worker.turn(seconds))
        peaks.append(measure_peak(min(seconds, 1.0)))
        speeds = ", ".join(f"{own[-1].speed:.0f}" for own in turns.values())
        print(f"round {index + 1} of {count}: {speeds} tokens/s", file=sys.stderr)
    return turns, peaks


def table(
    turns: Mapping[str, Sequence[Turn]], peaks: Sequence[float], flops: float
) -> Iterator[str]:
    """Yield the lines of the result, a row for each worker."""
    yield "| trainer, processes × threads | target tokens/s | × JoeyNMT | padding | share of peak |"
    yield "|---|---|---|---|---|"
    for name, own in turns.items():
        ratio = "–"
        if baseline := turns.get("JoeyNMT"):
            pairs = zip(own, baseline, strict=True)
            ratio = f"{median(mine.speed / theirs.speed for mine, theirs in pairs):.2f}"
        speed = median(turn.speed for turn in own)
        padding = 1 - sum(turn.tokens for turn in own) / sum(turn.positions for turn in own)
        shares = (turn.speed * flops / peak for turn, peak in zip(own, peaks, strict=True))
        yield f"| {name} | {speed:.0f} | {ratio} | {padding:.1%} | {median(shares):.0%} |"
    yield ""
    yield (
        f"Rounds: {len(peaks)}. A float32 product of {PEAK_SIZE} × {PEAK_SIZE}: "
        f"{median(peaks) / 1e9:.0f} GFLOP/s; a target token: {flops / 1e6:.2f} MFLOP."
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, metavar="FOLDER")
    parser.add_argument("--joeynmt", metavar="PYTHON")
    parser.add_argument("--seconds", type=float, default=8.0, help="of a turn")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--cores", type=int, default=torch.get_num_threads(), help="for each side")
    parser.add_argument("--smoke", action="store_true", help="tiny sizes, made-up data")
    options = parser.parse_args()
    if options.data is None and not options.smoke:
        parser.error("--data is required, except with --smoke")
    torch.set_num_threads(options.cores)
    with tempfile.TemporaryDirectory() as folder:
        work, updates = Path(folder), {}
        if options.smoke:
            write_smoke_data(work)
            options.data, options.seconds, options.rounds = work, 0.2, 1
            updates = SMOKE_SETTINGS
        workers = start_workers(work, options.data, options.joeynmt, options.cores, updates)
        with workers as (started, flops):
            turns, peaks = run_rounds(started, options.seconds, options.rounds)
    print("\n".join(table(turns, peaks, flops)))


if __name__ == "__main__":
    main()
