from dataclasses import replace

import numpy as np
import pytest

from regard.errors import RegardError
from regard.trace import AttentionMap, AttentionSummary, TokenList, Trace, merge_subwords
from regard.viz.view import dense, stack, stacks, view


def test_the_attentions_of_a_translator_have_their_names(trace):
    assert [(one.name, len(one.maps)) for one in stacks(trace)] == [
        ("encoder", 1),
        ("decoder", 1),
        ("cross", 3),
    ]


def of_text(*kinds):
    weights = np.full((1, 2, 2), 0.5, dtype=np.float32)
    looks = tuple(
        AttentionMap(name=f"layer{n}", kind=kind, queries=queries, keys="text", weights=weights)
        for n, (kind, queries) in enumerate(kinds)
    )
    names = {"text": TokenList(("a", "b")), "other": TokenList(("c", "d"))}
    return Trace(tokens=names, maps=looks)


def test_the_attentions_of_other_models_are_named_by_kind_and_tokens():
    one = of_text(("causal", "text"), ("causal", "text"))
    assert [(s.name, len(s.maps)) for s in stacks(one)] == [("causal", 2)]
    two = of_text(("cross", "text"), ("cross", "other"), ("self", "text"))
    assert [s.name for s in stacks(two)] == ["cross text-text", "cross other-text", "self"]


def test_cross_attention_comes_first_unless_another_is_named(trace):
    assert stack(trace).name == "cross"
    assert stack(trace, "encoder").name == "encoder"
    assert stack(trace, "causal").name == "decoder"
    assert stack(of_text(("self", "text"))).name == "self"


def test_one_head_has_its_words_numbers_and_caption(trace):
    seen = view(trace, "cross", layer=1, head=0)
    np.testing.assert_array_equal(seen.rows, trace.layers("cross")[1].weights[0])
    assert seen.queries == ("<s>", "猫", "坐", "着")
    assert seen.keys == ("The", "cat", "sit", "s", "</s>")
    assert seen.caption == "a hand-made translator · cross, layer 1, head 0"


def test_the_last_layer_is_minus_one_and_a_head_is_called_by_its_kept_number(trace):
    last = view(trace, "cross", layer=-1, head=3)
    assert last.caption.endswith("cross, layer 2, head 3")
    np.testing.assert_array_equal(last.rows, dense(trace.maps[-1], 1))


def test_a_reduced_look_is_its_strongest_upon_its_tiles(trace):
    look = trace.maps[-1]
    whole = dense(look, 0)
    assert whole.shape == (4, 5)
    for query in range(4):
        keys = look.summary.top_keys[0, query]
        np.testing.assert_array_equal(whole[query, keys], look.summary.top_weights[0, query])
        # 1/13 elsewhere: tiles hold the mean of a peak and that, but no more than the second
        others = np.delete(whole[query], keys)
        np.testing.assert_allclose(others, 1 / 13, atol=1e-3)


def test_ranks_that_a_short_row_leaves_empty_hide_no_weight():
    reduced = AttentionSummary(
        top_keys=np.array([[[0, 0, 0], [1, 0, 0], [2, 0, 1]]]),
        top_weights=np.array([[[1.0, 0.0, 0.0], [0.6, 0.4, 0.0], [0.5, 0.3, 0.2]]], np.float32),
        remainder=np.zeros((1, 3), np.float32),
        tiles=np.array([[[1, 0, 0], [0.4, 0.6, 0], [0.3, 0.2, 0.5]]], np.float32),
        entropy=np.zeros((1, 3), np.float32),
        received=np.ones((1, 3), np.float32),
        distance=np.zeros((1, 3), np.float32),
    )
    look = AttentionMap(name="layer", kind="causal", queries="text", keys="text", summary=reduced)
    np.testing.assert_array_equal(dense(look, 0), reduced.tiles[0])


def test_gold_links_between_words_are_cells_between_their_pieces(trace):
    # cat - 猫, sits (two pieces) - 坐着 (two pieces)
    assert view(trace).gold == ((1, 1), (2, 2), (2, 3), (3, 2), (3, 3))
    assert view(trace, "decoder").gold == ()
    whole = replace(trace, maps=trace.maps[:-1])
    assert view(merge_subwords(whole)).gold == ((1, 1), (2, 2))


def test_what_is_not_there_is_said_with_what_is(trace):
    with pytest.raises(RegardError, match=r"'crosss'. Did you mean 'cross'\? Choose from: cross, "):
        view(trace, "crosss")
    with pytest.raises(RegardError, match=r"no layer of cross has the number 3.*: 0, 1, 2\."):
        view(trace, "cross", layer=3)
    with pytest.raises(RegardError, match=r"no head of decoder.layers.1.cross.* 1.*: 0, 3\."):
        view(trace, "cross", layer=2, head=1)
    with pytest.raises(RegardError, match=r"no looks, so there is nothing to draw"):
        view(Trace(tokens=trace.tokens, maps=()))
