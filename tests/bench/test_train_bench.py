"""The training benchmarks run at tiny size; JoeyNMT itself is not needed."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench"

pytestmark = pytest.mark.train


def run_smoke(script, *options):
    """Run a benchmark with --smoke; return what it prints."""
    done = subprocess.run(
        [sys.executable, str(BENCH / script), "--smoke", *options],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_training_benchmark_prints_a_row_per_trainer():
    lines = run_smoke("train.py", "--cores", "1").splitlines()
    rows = [line for line in lines if line.startswith("| regard, ")]
    assert [row.split(" | ")[0] for row in rows] == [
        "| regard, same dropout, 1 × 1",
        "| regard, dropout of the recipe, 1 × 1",
    ]
    for row in rows:
        assert re.fullmatch(r"\| [^|]+ \| [1-9]\d* \| – \| \d+\.\d% \| \d+% \|", row)
    assert lines[-1].endswith(" MFLOP.")


def test_training_benchmark_without_data_is_refused():
    done = subprocess.run([sys.executable, str(BENCH / "train.py")], capture_output=True, text=True)
    assert done.returncode == 2
    assert "--data is required, except with --smoke" in done.stderr


def test_quality_benchmark_prints_bleu_and_the_command_that_reproduces_it():
    head, _, row = run_smoke("quality.py").splitlines()
    assert head.startswith("| run | BLEU | signature |")
    assert re.match(r"\| run \| \d+\.\d\d", row)
    (command,) = re.findall(r"`(regard train .*?)`", row)
    assert command.startswith("regard train train.en.gz train.de.gz ")
    for setting in ("model.width=16", "train.steps=3", "search.beam_size=1"):
        assert f"--set {setting}" in command
    assert command.endswith("--out run")
