"""What a time limit reaches: validation loss after `--minutes`, of several revisions in turn.

    python bench/time_limit.py --data DATA --source OLD/src --source src [--minutes 3] [--rounds 1]
    python bench/time_limit.py --smoke

DATA is a folder of Multi30k (train.en.gz, train.fr.gz); its first 5,000 pairs are trained on. Each
revision is a folder that holds the package `regard`; the command `regard train` of each runs in a
process of its own, one after the other, so that none competes with another. --smoke takes seconds:
made-up sentences and a limit of a few seconds.
"""

import argparse
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PAIRS = 5000
SMOKE_MINUTES = 0.05
# without early stopping, which would end the run before its limit on a fast machine
SMOKE_SETTINGS = (
    "model.width=16",
    "model.layers=1",
    "model.heads=2",
    "model.ffn_width=16",
    "train.patience=0",
)


class Result(NamedTuple):
    """What one run reached."""

    steps: int
    validations: list[float]
    seconds: float  # of the whole command
    end: str


def main() -> None:
    """Train with every revision in turn, and print a row for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder of Multi30k")
    parser.add_argument("--source", type=Path, action="append", help="a revision; repeatable")
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--smoke", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        sources = options.source or [Path(__file__).parents[1] / "src"]
        for source in sources:
            if not (source / "regard").is_dir():  # or the installed package would run instead
                parser.error(f"--source must hold the package regard, but {source} does not")
        sets: tuple[str, ...] = ()
        if options.smoke:
            options.minutes, sets = SMOKE_MINUTES, SMOKE_SETTINGS
        write_pairs(work, None if options.smoke else options.data)
        for line in table(work, sources, options.minutes, options.rounds, sets):
            print(line, flush=True)


def write_pairs(work: Path, data: Path | None) -> None:
    """Write the first pairs of Multi30k, or made-up ones, as two parallel files."""
    for language in ("en", "fr"):
        if data is None:
            lines = [f"{language} word {n % 7} and {n % 11}" for n in range(200)]
        else:
            with gzip.open(data / f"train.{language}.gz", "rt", encoding="utf-8") as file:
                lines = [line.rstrip("\n") for line, _ in zip(file, range(PAIRS), strict=False)]
        (work / f"pairs.{language}").write_text("\n".join(lines) + "\n", encoding="utf-8")


def table(
    work: Path, sources: list[Path], minutes: float, rounds: int, sets: tuple[str, ...]
) -> Iterator[str]:
    """Yield the rows of a Markdown table."""
    yield "| revision | minutes | steps | lowest validation loss | last | command, s | end |"
    yield "|---|---|---|---|---|---|---|"
    for number in range(rounds):
        for index, source in enumerate(sources):
            result = train(source.resolve(), work, work / f"run-{number}-{index}", minutes, sets)
            losses = result.validations
            yield (
                f"| {source} | {minutes:g} | {result.steps} | {min(losses):.3f} "
                f"| {losses[-1]:.3f} | {result.seconds:.0f} | {result.end} |"
            )


def train(
    source: Path, work: Path, out: Path, minutes: float, sets: tuple[str, ...] = ()
) -> Result:
    """Run `regard train` of a revision, and read its log."""
    command = [sys.executable, "-m", "regard", "train", "pairs.en", "pairs.fr"]
    command += ["--out", str(out), "--minutes", str(minutes)]
    command += [word for assignment in sets for word in ("--set", assignment)]
    start = time.monotonic()
    done = subprocess.run(
        command,
        cwd=work,
        env={**os.environ, "PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
    )
    seconds = time.monotonic() - start
    if done.returncode:
        raise SystemExit(done.stderr)
    entries = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    losses = [entry["valid_loss"] for entry in entries if "valid_loss" in entry]
    end = re.search(r"finished[^:]*: ([^;]*)", done.stderr)
    return Result(entries[-1]["step"], losses, seconds, end[1] if end else "")


if __name__ == "__main__":
    main()
