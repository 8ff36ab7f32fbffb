"""The decoding benchmark runs at tiny size; CTranslate2 itself is not needed."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench" / "decode.py"


@pytest.mark.train
def test_decoding_benchmark_prints_a_row_per_search():
    pytest.importorskip("transformers", reason="transformers is not installed")
    done = subprocess.run(
        [sys.executable, str(BENCH), "--smoke"],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    for line, search in zip(lines[2:4], ("greedy", "beam 5"), strict=True):
        assert re.fullmatch(rf"\| {search} \| \d+ \| [\d.–]+ \| \d+\.\d \| (\d+%|–) \|", line)
    assert re.fullmatch(r"16 output tokens take \d+\.\d × as long as 2\.", lines[-2])
