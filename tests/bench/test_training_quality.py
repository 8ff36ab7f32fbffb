"""The benchmarks of the demo and of a time limit run at small size."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench"

pytestmark = pytest.mark.train


def run_smoke(script):
    done = subprocess.run(
        [sys.executable, str(BENCH / script), "--smoke"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_demo_benchmark_has_a_row_per_seed_and_names_the_lowest():
    output = run_smoke("demo_seeds.py")
    rows = re.findall(r"\| transformer \| fr \| (\d) \| 3 \| (\d+\.\d) \|", output)
    assert [seed for seed, _ in rows] == ["0", "1"]
    lowest = re.search(r"Lowest BLEU (\d+\.\d); goal of 90 in every seed: missed", output)[1]
    assert float(lowest) == min(float(score) for _, score in rows)


def test_time_limit_benchmark_reports_loss_and_reason():
    output = run_smoke("time_limit.py")
    row = r"\| 0\.05 \| \d+ \| \d\.\d{3} \| \d\.\d{3} \| \d+ \| the time limit of 0\.05 minutes"
    assert re.search(row, output), output
