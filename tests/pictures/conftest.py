from pathlib import Path

import pytest

from regard.trace import load_trace

FIXTURE = Path(__file__).parents[1] / "data" / "trace.json"


@pytest.fixture
def trace():
    """The trace that the page's own tests read too."""
    return load_trace(FIXTURE)
