"""Attention under torch.compile, as a whole graph and with gradients."""

import json
import shutil
import subprocess
import sys

import pytest

from helpers import compiled_cases

pytestmark = [
    pytest.mark.compile,
    pytest.mark.skipif(not shutil.which("g++"), reason="torch.compile needs a C++ compiler"),
]


@pytest.fixture(scope="module")
def problems():
    """The error message of every case, empty if it agrees with eager."""
    command = [sys.executable, compiled_cases.__file__]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[-2000:]
    return json.loads(run.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", compiled_cases.NAMES)
def test_compiled_attention_agrees_with_eager(name, problems):
    assert problems[name] == ""
