"""The test cases of the ONNX standard for Attention and RotaryEmbedding, by the public API."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

CASES = Path(__file__).parents[1] / "helpers" / "onnx_cases.py"


@pytest.mark.parametrize(("operator", "count"), [("Attention", 93), ("RotaryEmbedding", 8)])
def test_every_case_of_the_onnx_standard_passes(operator, count):
    # one operator per process: the cases of two that are collected in one process get mixed up
    run = subprocess.run(
        [sys.executable, str(CASES), operator], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr[-2000:]
    outcome = json.loads(run.stdout.splitlines()[-1])
    assert outcome["failed"] == {}
    assert len(outcome["passed"]) == count
