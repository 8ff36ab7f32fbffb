import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench" / "explore.py"


@pytest.mark.train
@pytest.mark.skipif(not Path("/proc").exists(), reason="memory is read from /proc")
def test_load_benchmark_reports_responses_latency_and_clean_exit(tiny_run):
    command = [sys.executable, str(BENCH), str(tiny_run), "--clients", "3", "--seconds", "1"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    result = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
    assert (result.returncode, result.stderr) == (0, "")
    assert "## The explorer: 3 clients, 1 s" in result.stdout
    assert "| status 200 |" in result.stdout
    assert "Latency of 200: p50 " in result.stdout
    assert "Latency of the page: p50 " in result.stdout
    assert "exit code 0 after SIGTERM" in result.stdout
