"""Comparison of traces that went through a file."""

from dataclasses import fields

import numpy as np

MAP_FIELDS = (
    "name",
    "kind",
    "queries",
    "keys",
    "query_inputs",
    "heads",
    "call",
    "call_site",
    "shape",
)


def assert_same_trace(actual, expected):
    """Assert equality up to the rounding of a file."""
    assert actual.tokens == expected.tokens
    for name in ("title", "model", "gold"):
        assert getattr(actual, name) == getattr(expected, name)
    for one, other in zip(actual.maps, expected.maps, strict=True):
        for name in MAP_FIELDS:
            assert getattr(one, name) == getattr(other, name)
        for name in ("weights", "value_norms"):
            _assert_close(getattr(one, name), getattr(other, name))
        assert (one.summary is None) == (other.summary is None)
        for part in fields(one.summary) if one.summary is not None else ():
            step = 0.005 if part.name == "tiles" else 5e-5
            _assert_close(getattr(one.summary, part.name), getattr(other.summary, part.name), step)


def _assert_close(actual, expected, step=5e-5):
    assert (actual is None) == (expected is None)
    if actual is not None:
        np.testing.assert_allclose(actual, expected, atol=step * max(1, float(expected.max())))
