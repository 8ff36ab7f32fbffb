import numpy as np
import pytest

from regard import RegardError
from regard.analysis import head_statistics, select_head
from regard.trace import AttentionMap, TokenList, Trace, build_translation_trace, summarize

SOURCE, TARGET = list("abcd"), list("wxyz")
ALIGNED = np.eye(4) * 0.6 + 0.1
ONE_COLUMN = np.full((4, 4), 0.01) + 0.96 * np.eye(4)[[0] * 4]
FLAT = np.full((4, 4), 0.25)


def causal_trace(*layers):
    tokens = {"text": TokenList(tuple(SOURCE))}
    maps = tuple(
        AttentionMap(name=f"{n}", kind="self", queries="text", keys="text", weights=np.array(w))
        for n, w in enumerate(layers)
    )
    return Trace(tokens=tokens, maps=maps)


def alignment_score(weights):
    """Mean weight of the links on which both directions agree, word by word."""
    total = 0.0
    for query, row in enumerate(weights):
        key = max(range(len(row)), key=lambda k: row[k])
        if max(range(len(weights)), key=lambda q: weights[q][key]) == query:
            total += row[key]
    return total / len(weights)


def test_head_of_cross_attention_has_the_highest_alignment_score():
    cross = np.random.default_rng(0).dirichlet(np.ones(4), size=(3, 5, 4))
    trace = build_translation_trace(SOURCE, TARGET, cross=cross)
    chosen = select_head(trace)
    scores = np.array([[alignment_score(head) for head in layer] for layer in cross])
    assert (chosen.layer, chosen.head) == np.unravel_index(scores.argmax(), scores.shape)
    assert chosen.value == pytest.approx(scores.max())
    assert (chosen.criterion, chosen.candidates) == ("highest alignment score", 15)


def test_sharp_head_without_alignment_and_flat_head_are_not_selected():
    trace = build_translation_trace(SOURCE, TARGET, cross=[[ONE_COLUMN, FLAT], [FLAT, ALIGNED]])
    assert select_head(trace)[:2] == (1, 1)


def test_special_tokens_do_not_count_and_subwords_are_words():
    source = TokenList(tuple(SOURCE), words=(0, 0, 1, None), special=(3,))
    target = TokenList(tuple(TARGET), words=(0, 1, 1, None), special=(3,))
    words = np.array(  # the halves of both words lie on other links than the pieces
        [[0.4, 0.4, 0.2, 0], [0.1, 0.1, 0.8, 0], [0.1, 0.1, 0.8, 0], [0, 0, 0, 1.0]]
    )
    ends = np.array([[0, 0, 0.3, 0.7], [0.3, 0, 0, 0.7], [0.3, 0, 0, 0.7], [0, 0, 0, 1.0]])
    trace = build_translation_trace(source, target, cross=[[ends, words]])
    chosen = select_head(trace)
    assert chosen.head == 1 and chosen.value == pytest.approx(0.8)


def test_layer_or_head_limits_the_choice():
    trace = build_translation_trace(SOURCE, TARGET, cross=[[FLAT, ALIGNED], [ALIGNED, FLAT]])
    assert select_head(trace, layer=1)[:2] == (1, 0)
    assert select_head(trace, head=1)[:2] == (0, 1)
    assert select_head(trace, head=1).candidates == 2
    with pytest.raises(RegardError, match="there is no head to select"):
        select_head(trace, layer=2)


def test_head_of_self_attention_has_the_lowest_entropy_but_is_no_sink():
    trace = causal_trace([FLAT, ONE_COLUMN], [ALIGNED, FLAT])
    chosen = select_head(trace)
    assert (chosen.layer, chosen.head, chosen.criterion) == (1, 0, "lowest entropy")
    assert chosen.value == pytest.approx(head_statistics(trace, trace.maps[1]).entropy[0])
    assert select_head(causal_trace([ONE_COLUMN], [ONE_COLUMN]))[:2] == (0, 0)


def test_summaries_are_compared_by_entropy():
    trace = summarize(build_translation_trace(SOURCE, TARGET, cross=[[FLAT, ALIGNED]]))
    assert select_head(trace)[1:3] == (1, "lowest entropy")


def test_cross_attention_comes_first_and_maps_may_be_given():
    trace = build_translation_trace(
        SOURCE, TARGET, encoder=[[ALIGNED]], cross=[[FLAT, ALIGNED]], decoder=[[FLAT]]
    )
    assert select_head(trace).criterion == "highest alignment score"
    assert select_head(trace, trace.layers("self")).criterion == "lowest entropy"


def test_text_of_special_tokens_only_and_empty_trace():
    end = TokenList(("</s>",), special=(0,))
    trace = build_translation_trace(end, end, cross=[[[[1.0]]]])
    assert select_head(trace)[:2] == (0, 0) and select_head(trace).value == 0
    with pytest.raises(RegardError, match="there is no head to select"):
        select_head(Trace(tokens={}, maps=()))
