import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench" / "serve.py"


@pytest.mark.train
def test_server_benchmark_compares_batching_with_none_and_with_a_loop(tiny_run):
    result = subprocess.run(
        [sys.executable, str(BENCH), str(tiny_run), "--smoke"],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert (result.returncode, result.stderr) == (0, "")
    rows = re.findall(r"\| (\w[\w ]+) \| \d+ \| .* \| \d+\.\d \| 0 \|", result.stdout)
    assert rows == ["dynamic batching", "no batching", "loop without a server"]
    assert re.search(r"Dynamic batching / none: \d+\.\d\d \(goal 4\)", result.stdout)
