import numpy as np
import pytest

from regard import RegardError
from regard.analysis import difference
from regard.trace import TokenList, build_translation_trace, summarize

IDENTITY = np.eye(4)[None]


def encoder_trace(*layers, padding=()):
    tokens = TokenList(tuple("abcd"), padding=padding)
    return build_translation_trace(tokens, ["x"], encoder=layers)


def test_difference_has_weights_and_total_variation_of_each_module():
    changed = IDENTITY.copy()
    changed[0, 0] = [0.5, 0.5, 0, 0]
    traces = encoder_trace(IDENTITY, IDENTITY), encoder_trace(IDENTITY, changed)
    first, second = difference(*traces)
    assert (first.name, second.name) == ("encoder.0", "encoder.1")
    assert not first.weights.any() and first.total_variation.tolist() == [0]
    np.testing.assert_allclose(second.weights[0, 0], [-0.5, 0.5, 0, 0])
    assert second.total_variation[0] == pytest.approx(0.5 / 4)


def test_padding_does_not_count_in_the_total_variation():
    changed = IDENTITY.copy()
    changed[0, 3] = [1, 0, 0, 0]
    (result,) = difference(encoder_trace(IDENTITY, padding=(3,)), encoder_trace(changed))
    assert result.total_variation.tolist() == [0]


def test_modules_of_one_trace_only_are_left_out():
    assert len(difference(encoder_trace(IDENTITY), encoder_trace(IDENTITY, IDENTITY))) == 1


def test_traces_without_a_common_module_are_refused():
    other = build_translation_trace(["a"], ["b"], cross=[np.ones((1, 1, 1))])
    with pytest.raises(RegardError, match="modules of the same names .* encoder.0 and cross.0"):
        difference(encoder_trace(IDENTITY), other)


def test_maps_of_another_shape_are_refused():
    short = build_translation_trace(["a", "b"], ["x"], encoder=[np.eye(2)[None]])
    with pytest.raises(RegardError, match=r"\(1, 4, 4\) and \(1, 2, 2\)"):
        difference(encoder_trace(IDENTITY), short)


def test_summaries_are_refused():
    trace = encoder_trace(IDENTITY)
    with pytest.raises(RegardError, match="only full weights can be compared"):
        difference(trace, summarize(trace))
