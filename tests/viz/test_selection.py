from dataclasses import replace

import numpy as np
import pytest

from regard import RegardError
from regard.trace import (
    AttentionMap,
    AttentionSummary,
    TokenList,
    Trace,
    build_translation_trace,
    merge_subwords,
)
from regard.viz.selected_head import find_group, group_maps, head_weights, label_head, resolve_head


def test_maps_of_a_translation_are_grouped_as_encoder_decoder_and_cross(trace):
    groups = [(group.name, len(group.maps)) for group in group_maps(trace)]
    assert groups == [("encoder", 1), ("decoder", 1), ("cross", 3)]


def trace_of(*kinds):
    weights = np.full((1, 2, 2), 0.5, dtype=np.float32)
    maps = tuple(
        AttentionMap(name=f"layer{n}", kind=kind, queries=queries, keys="text", weights=weights)
        for n, (kind, queries) in enumerate(kinds)
    )
    tokens = {"text": TokenList(("a", "b")), "other": TokenList(("c", "d"))}
    return Trace(tokens=tokens, maps=maps)


def test_maps_of_other_models_are_grouped_by_kind_and_token_lists():
    one = trace_of(("causal", "text"), ("causal", "text"))
    assert [(group.name, len(group.maps)) for group in group_maps(one)] == [("causal", 2)]
    two = trace_of(("cross", "text"), ("cross", "other"), ("self", "text"))
    names = [group.name for group in group_maps(two)]
    assert names == ["cross text-text", "cross other-text", "self"]


def test_cross_attention_is_the_default_group(trace):
    assert find_group(trace).name == "cross"
    assert find_group(trace, "encoder").name == "encoder"
    assert find_group(trace, "causal").name == "decoder"
    assert find_group(trace_of(("self", "text"))).name == "self"


def test_selected_head_has_weights_labels_and_caption(trace):
    matrix = label_head(trace, "cross", layer=1, head=0)
    np.testing.assert_array_equal(matrix.weights, trace.layers("cross")[1].weights[0])
    assert matrix.queries == ("猫", "坐", "着", "</s>")
    assert matrix.keys == ("The", "cat", "sit", "s", "</s>")
    assert matrix.caption == "a hand-made translator · Cross-attention · layer 1, head 0"


def test_negative_layer_counts_from_the_end_and_a_head_goes_by_its_index(trace):
    matrix = label_head(trace, "cross", layer=-1, head=3)
    assert matrix.caption.endswith("Cross-attention · layer 2, head 3")
    np.testing.assert_array_equal(matrix.weights, head_weights(trace.maps[-1], 1))


def test_summary_is_reconstructed_from_heaviest_keys_and_tiles(trace):
    summary = trace.maps[-1].summary
    weights = head_weights(trace.maps[-1], 0)
    assert weights.shape == (4, 5)
    for query in range(4):
        keys = summary.top_keys[0, query]
        np.testing.assert_array_equal(weights[query, keys], summary.top_weights[0, query])
        # 1/13 elsewhere: tiles are means of a peak and that, but no more than the second
        others = np.delete(weights[query], keys)
        np.testing.assert_allclose(others, 1 / 13, atol=1e-3)


def test_unused_ranks_of_short_rows_hide_no_weight():
    summary = AttentionSummary(
        top_keys=np.array([[[0, 0, 0], [1, 0, 0], [2, 0, 1]]]),
        top_weights=np.array([[[1.0, 0.0, 0.0], [0.6, 0.4, 0.0], [0.5, 0.3, 0.2]]], np.float32),
        remainder=np.zeros((1, 3), np.float32),
        tiles=np.array([[[1, 0, 0], [0.4, 0.6, 0], [0.3, 0.2, 0.5]]], np.float32),
        entropy=np.zeros((1, 3), np.float32),
        received=np.ones((1, 3), np.float32),
        distance=np.zeros((1, 3), np.float32),
    )
    causal = AttentionMap(name="layer", kind="causal", queries="text", keys="text", summary=summary)
    np.testing.assert_array_equal(head_weights(causal, 0), summary.tiles[0])


def test_gold_links_outline_the_cells_between_pieces_of_both_words(trace):
    # cat - 猫, sits (two pieces) - 坐着 (two pieces)
    assert label_head(trace).outlined == ((0, 1), (1, 2), (1, 3), (2, 2), (2, 3))
    assert label_head(trace, "decoder").outlined == ()
    full = replace(trace, maps=trace.maps[:-1])
    assert label_head(merge_subwords(full)).outlined == ((0, 1), (1, 2))


@pytest.mark.parametrize(
    "selection, message",
    [
        (("crosss",), r"'crosss'. Did you mean 'cross'\? Choose from: cross, "),
        (("cross", 3), r"no layer 3 in cross.*: 0, 1, 2\."),
        (("cross", -4), r"no layer -4 in cross.*: 0, 1, 2\."),
        (("cross", 2, 1), r"no head 1 in decoder.layers.1.cross.*: 0, 3\."),
    ],
)
def test_missing_head_is_refused_with_the_choices(trace, selection, message):
    with pytest.raises(RegardError, match=message):
        label_head(trace, *selection)


def test_trace_without_maps_is_refused(trace):
    with pytest.raises(RegardError, match="no attention maps, so there is nothing to draw"):
        label_head(Trace(tokens=trace.tokens, maps=()))


def test_head_that_is_not_given_is_the_selected_one():
    aligned, flat = np.eye(3) * 0.7 + 0.1, np.full((3, 3), 1 / 3)
    trace = build_translation_trace(
        "abc", "xyz", cross=[[flat, aligned], [aligned * 0.9, flat]], encoder=[[flat, aligned]]
    )
    assert resolve_head(trace)[1:] == (0, 1)
    assert resolve_head(trace, layer=-1)[1:] == (1, 0)
    assert resolve_head(trace, head=0)[1:] == (1, 0)
    assert resolve_head(trace, "encoder")[1:] == (0, 1)
    with pytest.raises(RegardError, match=r"no head 7 in cross\.0, cross\.1"):
        resolve_head(trace, head=7)


@pytest.mark.parametrize("selection", [{"layer": "1"}, {"layer": 0.5}, {"layer": 0, "head": "0"}])
def test_layer_or_head_that_is_no_integer_is_a_type_error(trace, unchecked, selection):
    with pytest.raises(TypeError, match="^(layer|head) must be an integer, but it is of type"):
        label_head(trace, "cross", **selection)
