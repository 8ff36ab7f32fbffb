"""The test cases of the ONNX standard for Attention and RotaryEmbedding, by the public API."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

CASES = Path(__file__).parents[1] / "helpers" / "onnx_cases.py"


COUNTS = {"Attention": 93, "RotaryEmbedding": 8}


@pytest.fixture(scope="module")
def outcomes():
    """Run the cases in a process of their own: onnx keeps them in a global list."""
    run = subprocess.run(
        [sys.executable, str(CASES), *COUNTS], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr[-2000:]
    return json.loads(run.stdout.splitlines()[-1])


@pytest.mark.parametrize(("operator", "count"), COUNTS.items())
def test_every_case_of_the_onnx_standard_passes(outcomes, operator, count):
    assert outcomes[operator]["failed"] == {}
    assert len(outcomes[operator]["passed"]) == count
