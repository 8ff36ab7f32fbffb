"""The benchmarks of attention and capture run at small size."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench"

pytestmark = pytest.mark.train


def run_bench(script, *options):
    """Run a benchmark; return what it prints."""
    result = subprocess.run(
        [sys.executable, str(BENCH / script), *options],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_attention_benchmark_compares_every_score_and_mask_with_sdpa(tmp_path):
    output = run_bench("attention.py", "--smoke", "--only", "fused", "--out", str(tmp_path))
    rows = re.findall(r"\| \d+×\d+×\d+×\d+ \| (\w+) \| (\w+) \| \d+\.\d\d \|", output)
    assert set(rows) == {
        (mask, score)
        for mask in ("none", "causal")
        for score in ("scaled_dot", "gaussian", "cosine", "bilinear")
    }
    assert output.strip() in (tmp_path / "attention.md").read_text(encoding="utf-8")


def test_capture_benchmark_reports_time_and_memory_for_both_masks():
    rows = run_bench("watch.py", "--tokens", "64").splitlines()[2:]
    assert [row.split(" | ")[0] for row in rows] == ["| causal", "| none"]
    assert all(len(row.split(" | ")) == 7 for row in rows)


def test_architectures_benchmark_agrees_for_known_architectures():
    output = run_bench("families.py", "bert", "gpt2")
    assert "| agrees | 2 |" in output
    assert "CHANGED OUTPUT: none" in output
