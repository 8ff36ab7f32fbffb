from dataclasses import replace

import pytest

from helpers import sample_trace as sample


@pytest.fixture
def sample_trace():
    """The trace of tests/fixtures/trace.json, built from code."""
    return sample.sample_trace()


@pytest.fixture
def summarized_trace():
    """A trace whose only map has a summary in place of weights."""
    return replace(sample.sample_trace(), maps=(sample.summarized_map(),))
