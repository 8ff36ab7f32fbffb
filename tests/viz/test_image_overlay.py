"""Attention drawn over an image."""

from dataclasses import replace

import numpy as np
import pytest

from regard.errors import RegardError
from regard.trace import AttentionMap, PatchImage, TokenList, Trace, build_translation_trace
from regard.viz import plot_over_image


def vision_trace():
    """A class token and 2 × 3 patches, each of which attends to itself."""
    tokens = TokenList(("[CLS]", *"abcdef"), special=(0,))
    m = AttentionMap(name="a", kind="self", queries="text", keys="text", weights=np.eye(7)[None])
    image = PatchImage(np.zeros((4, 6)), grid=(2, 3), first=1)
    return Trace(tokens={"text": tokens}, maps=(m,), images={"text": image})


def overlay(axes):
    return np.asarray(axes.images[1].get_array())


def test_weights_of_a_patch_are_drawn_at_its_place_and_the_query_is_outlined():
    axes = plot_over_image(vision_trace(), queries=[5]).axes[0]
    assert overlay(axes).tolist() == [[0, 0, 0], [0, 1, 0]]
    (outline,) = axes.patches
    assert (*outline.get_xy(), outline.get_width(), outline.get_height()) == (2, 2, 2, 2)


def test_class_token_is_not_outlined():
    axes = plot_over_image(vision_trace(), queries=[0]).axes[0]
    assert not axes.patches and not overlay(axes).any()


def test_words_attend_to_an_image_in_cross_attention():
    weights = np.array([[[0.1, 0.2, 0.3, 0.4], [1, 0, 0, 0]]])
    trace = build_translation_trace("abcd", ["x", "y"], encoder=[np.eye(4)[None]], cross=[weights])
    trace = replace(trace, images={"source": PatchImage(np.zeros((8, 8)), grid=(2, 2))})
    figure = plot_over_image(trace, "cross", opacity=0.5)
    assert [axes.get_title() for axes in figure.axes[:2]] == ["x", "y"]
    np.testing.assert_allclose(overlay(figure.axes[0]), [[0.1, 0.2], [0.3, 0.4]])
    assert figure.axes[1].images[1].get_alpha() == 0.5
    assert not figure.axes[0].patches


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"queries": [7]}, "positions from 0 to 6"),
        ({"queries": []}, "positions from 0 to 6"),
        ({"opacity": 1.5}, "opacity must be from 0 to 1"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(RegardError, match=message):
        plot_over_image(vision_trace(), **options)


def test_trace_without_an_image_is_refused():
    with pytest.raises(RegardError, match="which has no image; the trace has images of: none"):
        plot_over_image(replace(vision_trace(), images={}))


def test_colour_scale_ends_at_the_largest_weight_of_a_patch():
    trace = vision_trace()
    weights = np.full((1, 7, 7), 0.05)
    weights[..., 0] = 0.7  # an attention sink at the class token
    trace = replace(trace, maps=(replace(trace.maps[0], weights=weights),))
    assert plot_over_image(trace).axes[0].images[1].get_clim() == pytest.approx((0, 0.05))


def test_caption_says_how_many_queries_are_drawn_if_not_all():
    count = 30
    weights = np.full((1, count, 4), 0.25)
    queries = [str(n) for n in range(count)]
    trace = build_translation_trace("abcd", queries, cross=[weights])
    trace = replace(trace, images={"source": PatchImage(np.zeros((8, 8)), grid=(2, 2))})
    figure = plot_over_image(trace)
    assert figure.get_supxlabel().endswith("the first 24 of 30 queries")
    assert "queries" not in plot_over_image(trace, queries=range(3)).get_supxlabel()
