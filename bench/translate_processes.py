"""Speed of `regard translate` in two processes against one process with one and two threads.

    python bench/translate_processes.py [--run demo-model] [--sentences 4000] [--rounds 3]
    python bench/translate_processes.py --smoke

Each measurement is one whole command, with its start: a Python process that imports torch and loads
the run, and with two processes torchrun, too. A command with a few sentences is measured as well,
and its time subtracted, which leaves the time of translating. Commands take turns; times are the
best of the rounds, because other programs slow commands down, but not equally. CPU seconds (user
and system, of all processes) are beside them: they hardly depend on other programs. All outputs
must be equal, byte for byte.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from regard.data.phrasebook import load_phrasebook

TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
FEW_SENTENCES = 8  # of the command whose time is subtracted
SIDES = {
    "one process, one thread": ([], "1"),
    "one process, two threads": ([], "2"),
    "two processes, one thread each": (TORCHRUN, "1"),
}


def run_command(side: str, options: list[str], text: Path) -> tuple[float, float, bytes]:
    """Translate a file; return wall-clock seconds, CPU seconds, and the output."""
    launcher, threads = SIDES[side]
    command = [sys.executable, *launcher, "-m", "regard", "translate", *options]
    before, start = _children_seconds(), time.monotonic()
    with text.open("rb") as file:
        done = subprocess.run(
            command,
            stdin=file,
            capture_output=True,
            env={**os.environ, "OMP_NUM_THREADS": threads},
        )
    seconds = time.monotonic() - start
    if done.returncode:
        raise SystemExit(done.stderr.decode())
    return seconds, _children_seconds() - before, done.stdout


def _children_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def measure(options: list[str], sentences: list[str], rounds: int, folder: Path) -> None:
    """Print a table row for each side."""
    many, few = folder / "many.txt", folder / "few.txt"
    many.write_text("".join(f"{sentence}\n" for sentence in sentences), encoding="utf-8")
    few.write_text("".join(f"{one}\n" for one in sentences[:FEW_SENTENCES]), encoding="utf-8")
    starts: dict[str, list[float]] = {side: [] for side in SIDES}
    walls: dict[str, list[float]] = {side: [] for side in SIDES}
    cpus: dict[str, list[float]] = {side: [] for side in SIDES}
    outputs = set()
    for _ in range(rounds):
        for side in SIDES:
            starts[side].append(run_command(side, options, few)[0])
            wall, cpu, output = run_command(side, options, many)
            walls[side].append(wall)
            cpus[side].append(cpu)
            outputs.add(output)
    print(f"{len(sentences)} sentences; outputs {'equal' if len(outputs) == 1 else 'DIFFER'}\n")
    print("| `regard translate` | start, s | sentences/s | ratio | whole command, s | CPU, s |")
    print("|---|---|---|---|---|---|")
    speeds = {}
    for side in SIDES:
        start, wall = min(starts[side]), min(walls[side])
        speeds[side] = (len(sentences) - FEW_SENTENCES) / max(wall - start, 1e-9)
        ratio = speeds[side] / speeds[next(iter(SIDES))]
        print(
            f"| {side} | {start:.1f} | {speeds[side]:.0f} | {ratio:.2f} | {wall:.1f} | "
            f"{min(cpus[side]):.1f} |"
        )


def main() -> None:
    """Compare the three sides on sentences of the phrasebook."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--run", default="demo-model")
    parser.add_argument("--sentences", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--beam-size", type=int, default=5)
    parser.add_argument("--smoke", action="store_true", help="few sentences, one round")
    options = parser.parse_args()
    if options.smoke:
        options.sentences, options.rounds, options.beam_size = 20, 1, 1
    known = [" ".join(pair.source_words) for pair in load_phrasebook("fr", train=4000).train]
    sentences = (known * (options.sentences // len(known) + 1))[: options.sentences]
    with tempfile.TemporaryDirectory() as folder:
        arguments = [options.run, "--beam-size", str(options.beam_size)]
        measure(arguments, sentences, options.rounds, Path(folder))


if __name__ == "__main__":
    main()
