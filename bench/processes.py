"""Training speed with the default number of processes against one process.

    python bench/processes.py --data FOLDER [--recipe multi30k] [--processes N]
    python bench/processes.py --smoke

FOLDER has Multi30k's train.en.gz and train.fr.gz. Both sides are `regard.train` with the same
settings; one of them has `processes=1`. They take turns of some seconds, after a warm-up. A turn
consists of whole optimizer steps, with batching and callbacks, without validation. What is counted
are target tokens, the end of each sentence included, padding not. The ratio is that of the best
turns, because other programs slow both sides down, but not equally; that of the medians is beside
it.

Recipes: "defaults" (of 10,000 to 100,000 pairs), "small" (the defaults of fewer, with the first
9,000 pairs) and "multi30k" (the preset).
"""

import argparse
import gzip
import random
import sys
import tempfile
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

from regard.training import Callback, StepResult, TrainState, train
from turns import Turns, Worker

NEVER = 10**9
ENDLESS: dict[str, Any] = {
    "train": {"steps": NEVER, "validate_every": NEVER, "patience": 0, "save_every": float(NEVER)}
}
RECIPES = ("defaults", "small", "multi30k")
SMALL_PAIRS = 9000
SMOKE_PAIRS = 300
SMOKE_SETTINGS: dict[str, Any] = {
    "data": {"vocab_size": 400},
    "model": {"layers": 1, "width": 16, "ffn_width": 16, "heads": 2},
    "train": {"batch_tokens": 256},
}


class TurnTaker(Callback):
    """Blocks the main process between turns; the others wait for it in their next all-reduce."""

    def __init__(self) -> None:
        self.turns = Turns()

    def on_step(self, state: TrainState, result: StepResult) -> None:
        """Report a step; exit when there is no further turn."""
        if not self.turns.step(result.tokens, result.tokens):
            sys.exit()


def train_in_turns(pairs: Path, out: Path, recipe: str, processes: int | None, smoke: bool) -> None:
    """Train without end, whenever it is this side's turn."""
    taker = TurnTaker()
    preset = "multi30k" if recipe == "multi30k" else None
    settings = [SMOKE_SETTINGS, ENDLESS] if smoke else [ENDLESS]
    train(
        pairs,
        out,
        preset=preset,
        processes=processes,
        settings=settings,
        callbacks=[taker],
        echo=lambda line: print(line, file=sys.stderr),
    )


def write_pairs(data: Path | None, recipe: str, to: Path) -> None:
    """Write the training pairs as one TSV file; without data, sentences of random words."""
    if data is None:
        rng = random.Random(0)
        words = ["".join(rng.choices("abcdefghij", k=4)) for _ in range(40)]
        sentences = [" ".join(rng.choices(words, k=rng.randint(3, 12))) for _ in range(SMOKE_PAIRS)]
        lines = [f"{sentence}\t{sentence}" for sentence in sentences]
    else:
        with (
            gzip.open(data / "train.en.gz", "rt") as one,
            gzip.open(data / "train.fr.gz", "rt") as two,
        ):
            both = zip(one, two, strict=True)
            lines = [f"{source.strip()}\t{target.strip()}" for source, target in both]
    limit = SMALL_PAIRS if recipe == "small" else None
    to.write_text("".join(f"{line}\n" for line in islice(lines, limit)), encoding="utf-8")


def measure(
    work: Path, recipe: str, processes: int, rounds: int, seconds: float, smoke: bool
) -> dict[str, list[float]]:
    """Return the tokens per second of each side and turn."""
    workers = {}
    for name, number in (("one process", 1), ("default", processes)):
        options = ["--turns", str(work), "--recipe", recipe, "--processes", str(number)]
        command = [sys.executable, __file__, *options, *(["--smoke"] if smoke else [])]
        workers[name] = Worker(command, {})
    try:
        for worker in workers.values():
            worker.turn(seconds / 2)
        speeds: dict[str, list[float]] = {name: [] for name in workers}
        for index in range(rounds):
            for name, worker in workers.items():
                speeds[name].append(worker.turn(seconds).speed)
            latest = ", ".join(f"{name} {own[-1]:.0f}" for name, own in speeds.items())
            print(f"round {index + 1} of {rounds}: {latest} tokens/s", file=sys.stderr)
    finally:
        for worker in workers.values():
            worker.close()
    return speeds


def main() -> None:
    """Print a table row for the recipe."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, metavar="FOLDER")
    parser.add_argument("--recipe", choices=RECIPES, default="defaults")
    parser.add_argument("--processes", type=int, default=0, help="instead of the default number")
    parser.add_argument("--seconds", type=float, default=5.0, help="of a turn")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--smoke", action="store_true", help="tiny sizes, made-up data")
    parser.add_argument("--turns", type=Path, metavar="FOLDER", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.turns is not None:
        out = options.turns / f"run-{options.processes}"
        pairs = options.turns / "pairs.tsv"
        train_in_turns(pairs, out, options.recipe, options.processes, options.smoke)
        return
    if options.data is None and not options.smoke:
        parser.error("--data is required, except with --smoke")
    if options.smoke:
        options.seconds, options.rounds, options.processes = 0.2, 1, 2
    with tempfile.TemporaryDirectory() as folder:
        write_pairs(options.data, options.recipe, Path(folder) / "pairs.tsv")
        speeds = measure(
            Path(folder),
            options.recipe,
            options.processes,
            options.rounds,
            options.seconds,
            options.smoke,
        )
    one, default = speeds.values()
    print("| recipe | one process, tokens/s | default, tokens/s | ratio | of medians |")
    print("|---|---|---|---|---|")
    print(
        f"| {options.recipe} | {max(one):.0f} | {max(default):.0f} | "
        f"{max(default) / max(one):.2f} | {median(default) / median(one):.2f} |"
    )


if __name__ == "__main__":
    main()
