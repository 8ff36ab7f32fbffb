"""Training side by side with JoeyNMT 2.3: same sizes, same tokens, same budget of a batch.

    python bench/train.py --data FOLDER --joeynmt PYTHON [--seconds 8] [--rounds 6] [--cores 2]

FOLDER has train.en.gz and train.de.gz (Multi30k), which are only read. PYTHON is the python of
an environment that has JoeyNMT; without it, regard is measured alone. To make one:

    python -m venv joey && joey/bin/pip install joeynmt==2.3.0 torch==2.13.0

The recipe is the preset `multi30k`: 4 + 4 layers, width 128, feed-forward 256, 4 heads,
one embedding for source, target and output, a joint BPE of 8,000 pieces, dropout .3,
labels smoothed by .1, Adam, gradients clipped to 1, batches of 2,048 tokens. Where JoeyNMT differs
from the preset, regard does as JoeyNMT: norms after the layers, Adam and not Muon.

What each side does:

- Both train on the same tokens: regard's BPE is learned and applied once, beforehand. JoeyNMT
  gets them as words with a vocabulary of the same size, so it is spared the tokenizing that it
  else does anew in every epoch.
- JoeyNMT runs its own `TrainManager.train_and_validate`, with its own data sets, batches, loss,
  optimizer and schedule. Not named in the settings, and so its defaults: no data workers,
  no grouping by length (it has none: `batch_type: token` takes sentences in shuffled order until
  the longest times their number reaches the budget). It adds an end to each source. Its module
  is changed in nothing; a step is told of by a subclass that calls the original. One name,
  `importlib_metadata`, is filled from the standard library if that package is missing.
- regard runs its own `Training.run`, as `regard train` does: one process with a thread for each
  core (1 × 2), and a process for each core (2 × 1), as `torchrun --nproc-per-node 2` starts them.
  JoeyNMT has 1 × 2: its own way to several processes is NCCL, which needs GPUs.
- JoeyNMT also drops attention weights and the inside of the feed-forward, and cannot be told not
  to. "same dropout" is regard doing likewise (`inner_dropout = 0.3`); "recipe" is the preset.

What is counted: target tokens that are learned from, the end of each sentence included, padding
not. A turn is whole steps, with batching, clipping and the optimizer, without validation. Turns
alternate, and the ratio is the median over rounds. A busy machine slows several threads of one
process, which wait for each other at every operation, more than anything else: if it cannot be
quiet, `--cores 1` compares one thread with one thread.

The share of peak is the arithmetic of the model's matrix products, forward and backward, over
real tokens, against a float32 product of 2048 × 2048 measured in every round on all cores. The
backward counts twice the forward; causal attention counts the half it needs.
"""

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import torch

from regard import presets
from regard.config import ModelConfig, RunConfig
from regard.data import Corpus, EncodedPairs
from regard.runs import RunFolder
from regard.training.setup import Prepared, prepare
from turns import Turn, Worker

HERE = Path(__file__).parent
DROPOUT = {"same": "same dropout", "recipe": "dropout of the recipe"}
NEVER = 10**9
SPECIAL = 4  # both have as many tokens that are no words
SIDE = 2048  # of the square matrices whose product is the peak


def recipe(inner: float = 0.0) -> RunConfig:
    """Give the preset with JoeyNMT's optimizer and norms, without validations, states or an end."""
    train = {
        "optimizer": "adam",
        "steps": NEVER,
        "validate_every": NEVER,
        "patience": 0,
        "save_every": float(NEVER),
    }
    settings = RunConfig.from_dict(presets.read("multi30k"))
    return settings.update({"train": train, "model": {"inner_dropout": inner, "norm": "post"}})


def prepared(folder: Path, data: Path, settings: RunConfig) -> Prepared:
    """Learn the pieces and encode the pairs, as a run that could begin."""
    corpus = Corpus.from_files([data / "train.en.gz", data / "train.de.gz"])
    run = RunFolder(folder)
    run.write_settings(settings, {})
    return prepare(run, settings, corpus, None, sum(1 for _ in corpus.read()))


def hand_over(pairs: EncodedPairs, vocabulary: int, settings: RunConfig, folder: Path) -> None:
    """Write the same pairs for JoeyNMT, a token as a word."""
    folder.mkdir()
    both = [pairs.pair(number) for number in range(len(pairs))]
    for name, side in (("source", 0), ("target", 1)):
        lines = (" ".join(map(str, pair[side].tolist())) for pair in both)
        (folder / f"train.{name}").write_text("\n".join(lines) + "\n")
    words = "\n".join(map(str, range(SPECIAL, vocabulary)))
    (folder / "vocabulary.txt").write_text(words + "\n")
    model, train = settings.model, settings.train
    sizes = {name: getattr(model, name) for name in ("width", "hidden", "layers", "heads")}
    sizes |= {name: getattr(train, name) for name in ("rate", "warmup", "clip", "smoothing")}
    sizes |= {"dropout": model.dropout, "tokens": train.tokens}
    (folder / "sizes.json").write_text(json.dumps(sizes))


def arithmetic(pairs: EncodedPairs, model: ModelConfig, vocabulary: int) -> float:
    """Count the operations of all matrix products in training, per target token."""
    source, target = pairs.lengths[0].astype(float), pairs.lengths[1] + 1.0
    square, forward = model.width**2, 2 * model.width * model.hidden
    encoder = source * (4 * square + forward) + 2 * source**2 * model.width
    looking_back = target * 4 * square + target * (target + 1) * model.width
    crossing = (target + source) * 2 * square + 2 * target * source * model.width
    decoder = looking_back + crossing + target * forward
    products = model.layers * (encoder + decoder) + target * model.width * vocabulary
    # a product is a multiplication and an addition, once forward and twice backward
    return float(2 * 3 * products.sum() / target.sum())


def peak(seconds: float = 1.0) -> float:
    """Measure the operations per second of a large float32 product: the best of many."""
    left, right = torch.rand(SIDE, SIDE), torch.rand(SIDE, SIDE)
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        left @ right
        times.append(time.perf_counter() - start)
    return 2 * SIDE**3 / min(times)


@contextmanager
def workers(
    work: Path, data: Path, joeynmt: str | None, cores: int
) -> Iterator[tuple[dict[str, Worker], float]]:
    """Prepare the data and start all workers; give also the arithmetic of a target token."""
    ready = prepared(work / "recipe", data, recipe())
    shutil.copytree(work / "recipe", work / "same")
    RunFolder(work / "same").write_settings(recipe(inner=ready.settings.model.dropout), {})
    vocabulary = len(ready.tokenizers.target)
    hand_over(ready.train, vocabulary, ready.settings, work / "joeynmt")
    started = {}
    for name in ("same", "recipe"):
        for processes in sorted({1, cores}):
            title = f"regard, {DROPOUT[name]}, {processes} × {cores // processes}"
            command = [str(HERE / "train_regard.py"), str(work / name)]
            started[title] = _worker(sys.executable, command, processes, cores // processes)
    if joeynmt is not None:
        command = [str(HERE / "train_joeynmt.py"), str(work / "joeynmt")]
        started["JoeyNMT"] = _worker(joeynmt, command, 1, cores)
    try:
        yield started, arithmetic(ready.train, ready.settings.model, vocabulary)
    finally:
        for worker in started.values():
            worker.end()


def _worker(python: str, command: list[str], processes: int, threads: int) -> Worker:
    crew = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    crew = crew if processes > 1 else []
    return Worker([python, *crew, *command], {"OMP_NUM_THREADS": str(threads)})


def rounds(
    started: Mapping[str, Worker], seconds: float, count: int
) -> tuple[dict[str, list[Turn]], list[float]]:
    """Give each worker its turn, round after round; the first, to warm up, is not kept."""
    for worker in started.values():
        worker.turn(seconds / 2)
    turns: dict[str, list[Turn]] = {name: [] for name in started}
    peaks = []
    for number in range(count):
        for name, worker in started.items():
            turns[name].append(worker.turn(seconds))
        peaks.append(peak())
        speeds = ", ".join(f"{some[-1].speed:.0f}" for some in turns.values())
        print(f"round {number + 1} of {count}: {speeds} tokens/s", file=sys.stderr)
    return turns, peaks


def table(
    turns: Mapping[str, Sequence[Turn]], peaks: Sequence[float], operations: float
) -> Iterator[str]:
    """Write a row for each worker."""
    yield "| trainer, processes × threads | target tokens/s | × JoeyNMT | padding | share of peak |"
    yield "|---|---|---|---|---|"
    for name, own in turns.items():
        faster = "–"
        if theirs := turns.get("JoeyNMT"):
            pairs = zip(own, theirs, strict=True)
            faster = f"{median(mine.speed / other.speed for mine, other in pairs):.2f}"
        speed = median(turn.speed for turn in own)
        padding = 1 - sum(turn.tokens for turn in own) / sum(turn.cells for turn in own)
        shares = (t.speed * operations / most for t, most in zip(own, peaks, strict=True))
        yield f"| {name} | {speed:.0f} | {faster} | {padding:.1%} | {median(shares):.0%} |"
    yield ""
    yield (
        f"{len(peaks)} rounds. A float32 product of {SIDE} × {SIDE}: {median(peaks) / 1e9:.0f} "
        f"GFLOP/s; a target token: {operations / 1e6:.1f} MFLOP."
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--joeynmt", metavar="PYTHON")
    parser.add_argument("--seconds", type=float, default=8.0, help="of a turn")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--cores", type=int, default=torch.get_num_threads(), help="for each side")
    wishes = parser.parse_args()
    torch.set_num_threads(wishes.cores)
    with (
        tempfile.TemporaryDirectory() as work,
        workers(Path(work), wishes.data, wishes.joeynmt, wishes.cores) as (started, operations),
    ):
        turns, peaks = rounds(started, wishes.seconds, wishes.rounds)
    print("\n".join(table(turns, peaks, operations)))


if __name__ == "__main__":
    main()
