"""How much memory watching may take, measured by the bench in processes of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="peaks are read from /proc")
def test_reduced_watching_of_a_long_text_takes_little_more_memory():
    command = [sys.executable, str(ROOT / "bench" / "watch.py"), "--tokens", "4096"]
    place = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(command, capture_output=True, text=True, env=place, check=True)
    lines = [line.strip("| \n").split(" | ") for line in done.stdout.splitlines()[2:]]
    assert [line[0] for line in lines] == ["causal", "none"]
    for line in lines:
        assert float(line[6]) <= 1.2, "times the memory of the plain pass"
