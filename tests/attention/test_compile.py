"""Attention under torch.compile, whole graph and with gradients."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CASES = Path(__file__).parents[1] / "helpers" / "compiled_cases.py"


@pytest.mark.skipif(not shutil.which("g++"), reason="torch.compile needs a C++ compiler")
def test_compiled_attention_is_attention():
    run = subprocess.run([sys.executable, str(CASES)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[-2000:]
    outcome = json.loads(run.stdout.splitlines()[-1])
    assert outcome["wrong"] == {}
    assert outcome["agreed"] == ["folding", "additive", "others", "look", "heads"]
