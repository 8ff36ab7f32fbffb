import re

import numpy as np
import pytest

from regard.analysis import word_level_cross_attention
from regard.gallery import cross_attention
from regard.gallery.example_sentence import example_pair, trace_pair

pytestmark = pytest.mark.usefixtures("unchecked")


@pytest.fixture
def pictures(small_transformer):
    return cross_attention.draw()


def outlined(axes):
    framed = [patch for patch in axes.patches if not patch.get_fill()]
    corners = [patch.get_xy() for patch in framed]
    return {(round(x + 0.42), round(y + 0.42)) for x, y in corners}  # (source, target)


def test_every_map_outlines_the_gold_alignment(pictures):
    maps = [axes for figure in pictures.values() for axes in figure.axes if axes.images]
    assert len(maps) == 1 + 2 * 2  # the best head; layers × heads
    for axes in maps:
        assert outlined(axes) == set(example_pair().links)


def test_maps_hold_word_level_weights_of_the_model(pictures, small_transformer):
    maps = [np.asarray(axes.images[0].get_array()) for axes in pictures["every-head"].axes[:4]]
    stack, _, _ = word_level_cross_attention(trace_pair(small_transformer, example_pair()))
    np.testing.assert_allclose(maps, stack.reshape(4, *stack.shape[2:]), rtol=1e-5)
    assert np.stack(maps).sum(-1) == pytest.approx(1.0, abs=1e-5)


def test_large_map_is_the_head_with_the_lowest_error(pictures):
    titles = [axes.get_title() for axes in pictures["every-head"].axes[:4]]
    errors = [float(re.search(r"error ([\d.]+)", title)[1]) for title in titles]
    best = titles[errors.index(min(errors))].splitlines()[0]
    assert best in pictures["best-head"].get_supxlabel()
