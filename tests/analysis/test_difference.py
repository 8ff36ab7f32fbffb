import numpy as np
import pytest

from regard.analysis import difference
from regard.trace import TokenList, build_translation_trace, summarize

EYE = np.eye(4)[None]


def trace_of(*layers, padding=()):
    tokens = TokenList(tuple("abcd"), padding=padding)
    return build_translation_trace(tokens, ["x"], encoder=layers)


def test_what_moved_is_told_layer_by_layer():
    moved = EYE.copy()
    moved[0, 0] = [0.5, 0.5, 0, 0]
    first, second = difference(trace_of(EYE, EYE), trace_of(EYE, moved))
    assert (first.name, second.name) == ("encoder.0", "encoder.1")
    assert not first.weights.any() and first.moved.tolist() == [0]
    np.testing.assert_allclose(second.weights[0, 0], [-0.5, 0.5, 0, 0])
    assert second.moved[0] == pytest.approx(0.5 / 4)


def test_padding_does_not_count():
    moved = EYE.copy()
    moved[0, 3] = [1, 0, 0, 0]
    (found,) = difference(trace_of(EYE, padding=(3,)), trace_of(moved))
    assert found.moved.tolist() == [0]


def test_only_modules_that_both_have_are_compared():
    assert len(difference(trace_of(EYE), trace_of(EYE, EYE))) == 1
    other = build_translation_trace(["a"], ["b"], cross=[np.ones((1, 1, 1))])
    with pytest.raises(ValueError, match="modules of the same names .* encoder.0 and cross.0"):
        difference(trace_of(EYE), other)


def test_other_sizes_and_reduced_weights_are_refused():
    short = build_translation_trace(["a", "b"], ["x"], encoder=[np.eye(2)[None]])
    with pytest.raises(ValueError, match=r"\(1, 4, 4\) and \(1, 2, 2\)"):
        difference(trace_of(EYE), short)
    with pytest.raises(ValueError, match="only whole weights can be compared"):
        difference(trace_of(EYE), summarize(trace_of(EYE)))
