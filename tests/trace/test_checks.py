import numpy as np
import pytest

from regard.trace.checks import check_each, check_ndims, check_places, is_count, is_real, why


def test_counts_and_numbers():
    assert all(map(is_count, (0, 7, np.int64(3))))
    assert not any(map(is_count, (-1, 0.5, 2.0, True, "1", None, [1])))
    assert all(map(is_real, (-0.5, 3, np.float32(1))))
    assert not any(map(is_real, (True, "1", None, {})))


def test_the_first_that_does_not_fit_is_shown():
    check_each("words", (0, None, 1), is_count, "numbers")
    with pytest.raises(ValueError, match="words must be numbers or None, but one is 'x'"):
        check_each("words", (0, "x", -1), is_count, "numbers")


def test_axes_of_reduced_looks():
    three, two = np.zeros((2, 3, 4)), np.zeros((2, 4))
    check_ndims("layer", three, three, two)
    with pytest.raises(ValueError, match=r"received of layer must have 2 axes, but .* \(\)"):
        check_ndims("layer", three, three, np.zeros(()))


def test_places_of_reduced_looks():
    top, tiles = np.full((2, 3, 1), 4), np.zeros((2, 3, 5))
    check_places("layer", (2, 3, 5), top, tiles)
    with pytest.raises(ValueError, match="top of layer must name keys from 0 to 4, but one is 5"):
        check_places("layer", (2, 3, 5), top + 1, tiles)
    for wrong in ((2, 0, 5), (2, 4, 5), (2, 3, 6), (1, 3, 5)):
        with pytest.raises(ValueError, match="tiles of layer must be"):
            check_places("layer", (2, 3, 5), top, np.zeros(wrong))


def test_missing_tokens_are_guessed_at():
    assert "BOS" in why(5, 4) and "padded" in why(9, 4) and "more than one sentence" in why(4, 9)
