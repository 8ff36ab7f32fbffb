import numpy as np
import pytest
import torch

from helpers.alignments import peaked_weights
from regard import RegardError
from regard.analysis import best_alignment_head, extract_alignment
from regard.trace import TokenList, build_translation_trace


def trace_of(*layers):
    """Return the trace of a translation whose cross-attention has these heads in its layers."""
    targets = "wxyz"[: len(layers[0][0])]
    return build_translation_trace("abcd", targets, cross=[torch.stack(heads) for heads in layers])


def test_best_head_has_the_lowest_error_rate_over_all_traces():
    right, wrong, half = peaked_weights(0, 1, 2), peaked_weights(3, 3, 3), peaked_weights(0, 1, 0)
    traces = [trace_of([wrong, half], [right, wrong]), trace_of([right, half], [right, wrong])]
    gold = [(0, 0), (1, 1), (2, 2)]
    best = best_alignment_head(traces, [gold, gold])
    assert (best.layer, best.head, best.value) == (1, 0, 0.0)
    assert best.criterion == "lowest alignment error rate"
    np.testing.assert_allclose(best.values, [[0.5, 1 / 3], [0, 1]])


def test_best_head_without_gold_has_the_highest_agreement():
    heads = [peaked_weights(3, 3, 3), peaked_weights(1, 2, 0), peaked_weights(0, 0, 1)]
    best = best_alignment_head([trace_of(heads)])
    assert (best.layer, best.head, best.criterion) == (0, 1, "highest agreement")
    np.testing.assert_allclose(best.values, [[1 / 3, 1, 2 / 3]])


def test_gold_for_another_number_of_traces_is_refused():
    with pytest.raises(RegardError, match="each of 1 traces, but it has 2"):
        best_alignment_head([trace_of([peaked_weights(0, 1)])], [[], []])


def test_layers_with_other_numbers_of_heads_are_refused():
    right = peaked_weights(0, 1)
    with pytest.raises(RegardError, match=r"same number of heads.* cross\.0 1, cross\.1 2"):
        extract_alignment(trace_of([right], [right, right]))


def test_no_traces_are_refused():
    with pytest.raises(RegardError, match="traces must not be empty"):
        best_alignment_head([])


def test_traces_of_models_with_other_heads_are_refused():
    """Numpy would add the counts of one head to those of all heads."""
    one, two = trace_of([peaked_weights(0, 1)]), trace_of([peaked_weights(0, 1)] * 2)
    with pytest.raises(RegardError, match=r"of one model, .* are \(1, 1\) and \(1, 2\)$"):
        best_alignment_head([one, two])


def test_links_of_a_trace_are_between_words_without_start_and_end():
    source = TokenList(("a", "b", "c", "</s>"), words=(0, 0, 1, None), special=(3,))
    target = TokenList(("<s>", "x", "y"), words=(None, 0, 1), special=(0,))
    weights = torch.tensor([[0.0, 0, 0, 1], [0.1, 0, 0.3, 0.6], [0.2, 0.2, 0.1, 0.5]])
    trace = build_translation_trace(source, target, cross=[weights[None]])
    assert extract_alignment(trace) == {(1, 0), (0, 1)}


def test_trace_without_cross_attention_has_no_alignment():
    with pytest.raises(RegardError, match="needs cross-attention, but the trace has none"):
        extract_alignment(build_translation_trace(["a"], ["b"]))


def test_word_is_aligned_by_the_row_that_writes_it_unless_input_rows_are_asked_for():
    """The word n is written by row n and read by row n + 1; both rows align it, differently."""
    written = TokenList(("a", "b", "c", "</s>"), (0, 1, 2, None), special=(3,))
    read = TokenList(("<s>", "a", "b", "c"), (None, 0, 1, 2), special=(0,))
    weights = np.zeros((1, 4, 4))
    for row, source in enumerate((2, 0, 1, 3)):
        weights[0, row, source] = 1.0
    trace = build_translation_trace(tuple("wxyz"), written, decoder_input=read, cross=[weights])
    assert extract_alignment(trace, 0, 0, symmetric=False) == {(2, 0), (0, 1), (1, 2)}
    by_input = {(0, 0), (1, 1), (3, 2)}
    assert extract_alignment(trace, 0, 0, symmetric=False, rows="input") == by_input
    assert best_alignment_head([trace], [by_input]).value == pytest.approx(1.0)
    assert best_alignment_head([trace], [by_input], rows="input").value == pytest.approx(0.0)


@pytest.mark.parametrize("rows", ["input", "output"])
def test_rows_without_input_tokens_are_taken_as_they_are(rows):
    pieces = TokenList(("a", "b", "<end>"), (0, 1, None), special=(2,))
    weights = np.array([[[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]])
    trace = build_translation_trace(("x", "y"), pieces, cross=[weights])
    assert extract_alignment(trace, 0, 0, rows=rows) == {(0, 0), (1, 1)}


def test_given_layer_or_head_is_the_one_that_aligns():
    same, reversed_ = np.eye(3), np.eye(3)[::-1]
    cross = [np.stack([same, same]), np.stack([np.full((3, 3), 1 / 3), reversed_])]
    trace = build_translation_trace(("x", "y", "z"), ("a", "b", "c"), cross=cross)
    straight, crossed = {(0, 0), (1, 1), (2, 2)}, {(2, 0), (1, 1), (0, 2)}
    assert extract_alignment(trace) == straight
    assert extract_alignment(trace, layer=1) == crossed
    assert extract_alignment(trace, layer=-1) == crossed
    trace = build_translation_trace(("x", "y", "z"), ("a", "b", "c"), cross=cross[:0:-1])
    assert extract_alignment(trace, head=1) == crossed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"layer": 2}, "layer must be from 0 to 1 in cross-attention, but it is 2"),
        ({"layer": -3}, "layer must be from 0 to 1 in cross-attention, but it is -3"),
        ({"layer": 0, "head": 3}, "head must be from 0 to 2 in cross-attention, but it is 3"),
    ],
)
def test_missing_layer_or_head_is_refused(arguments, message):
    trace = build_translation_trace(("x", "y"), ("a", "b"), cross=[np.full((3, 2, 2), 0.5)] * 2)
    with pytest.raises(RegardError, match=message):
        extract_alignment(trace, **arguments)


def test_trace_of_special_tokens_only_has_no_links():
    tokens = TokenList(("<s>", "</s>"), special=(0, 1))
    trace = build_translation_trace(tokens, tokens, cross=[np.full((3, 2, 2), 0.5)] * 2)
    assert extract_alignment(trace) == set()
    assert best_alignment_head([trace]).value == 0
