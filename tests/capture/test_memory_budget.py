"""The memory that watching takes, measured by the benchmark in processes of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="peaks are read from /proc")
def test_summary_of_4096_tokens_takes_at_most_a_fifth_more_memory():
    command = [sys.executable, str(ROOT / "bench" / "watch.py"), "--tokens", "4096"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    rows = [line.strip("| \n").split(" | ") for line in done.stdout.splitlines()[2:]]
    assert [row[0] for row in rows] == ["causal", "none"]
    for row in rows:
        assert float(row[6]) <= 1.2, "times the memory of the unwatched pass"
