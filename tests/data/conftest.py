"""Twenty thousand phrases, drawn once."""

import os
import pickle
import subprocess
import sys
from functools import cache

import pytest

# annotations are checked in this process, which would make so many phrases slow
DRAW = """
import pickle, sys
from regard.data.phrasebook import phrases
drawn = phrases(sys.argv[1], count=int(sys.argv[2]))
assert "torch" not in sys.modules
sys.stdout.buffer.write(pickle.dumps(drawn))
"""


@cache
def draw(language, count=20_000):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run(
        [sys.executable, "-c", DRAW, language, str(count)],
        env=env,
        stdout=subprocess.PIPE,
        check=True,
    )
    return pickle.loads(run.stdout)


@pytest.fixture(scope="session")
def drawn():
    """Give twenty thousand phrases of a language."""
    return draw
