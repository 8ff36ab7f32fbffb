import numpy as np
import pytest
import torch

from regard import RegardError
from regard.analysis import best_alignment_head, best_head_from_weights, extract_alignment
from regard.trace import TokenList, build_translation_trace


def peaked_weights(*sources, keys=4):
    """Return weights in which target word n attends mostly to the n-th of the given sources."""
    return torch.eye(keys)[list(sources)] * 0.8 + 0.05


def test_best_head_has_the_lowest_error_rate_over_all_sentences():
    right, wrong, half = peaked_weights(0, 1, 2), peaked_weights(3, 3, 3), peaked_weights(0, 1, 0)
    one = torch.stack([torch.stack([wrong, half]), torch.stack([right, wrong])])
    other = [torch.stack([right, half]), torch.stack([right, wrong])]
    gold = [(0, 0), (1, 1), (2, 2)]
    best = best_head_from_weights([one, other], [gold, gold])
    assert (best.layer, best.head, best.value) == (1, 0, 0.0)
    assert best.criterion == "lowest alignment error rate"
    np.testing.assert_allclose(best.values, [[0.5, 1 / 3], [0, 1]])


def test_best_head_without_gold_has_the_highest_agreement():
    heads = [peaked_weights(3, 3, 3), peaked_weights(1, 2, 0), peaked_weights(0, 0, 1)]
    best = best_head_from_weights([torch.stack(heads)[None]])
    assert (best.layer, best.head, best.criterion) == (0, 1, "highest agreement")
    np.testing.assert_allclose(best.values, [[1 / 3, 1, 2 / 3]])


def test_best_head_depends_on_the_shift():
    weights = torch.stack([peaked_weights(0, 1, 2, 3), peaked_weights(3, 0, 1, 2)])[None]
    gold = [(0, 0), (1, 1), (2, 2)]
    assert best_head_from_weights([weights], [gold], shift=True).head == 1
    assert best_head_from_weights([weights], [gold]).head == 0


def test_gold_for_another_number_of_sentences_is_refused():
    with pytest.raises(RegardError, match="each of 1 sentences, but it has 2"):
        best_head_from_weights([peaked_weights(0, 1)[None, None]], [[], []])


def test_no_sentences_are_refused():
    with pytest.raises(RegardError, match="sentences must not be empty"):
        best_head_from_weights([])


def test_links_of_a_trace_are_between_words_without_start_and_end():
    source = TokenList(("a", "b", "c", "</s>"), words=(0, 0, 1, None), special=(3,))
    target = TokenList(("<s>", "x", "y"), words=(None, 0, 1), special=(0,))
    weights = torch.tensor([[0.0, 0, 0, 1], [0.1, 0, 0.3, 0.6], [0.2, 0.2, 0.1, 0.5]])
    trace = build_translation_trace(source, target, cross=[weights[None]])
    assert extract_alignment(trace) == {(1, 0), (0, 1)}


def test_trace_without_cross_attention_has_no_alignment():
    with pytest.raises(RegardError, match="needs cross-attention, but the trace has none"):
        extract_alignment(build_translation_trace(["a"], ["b"]))


def test_row_selects_the_input_or_the_output_step_of_a_word():
    """Four rows: the start and three words. Each row attends to the source of the next word."""
    pieces = TokenList(("<start>", "a", "b", "c"), (None, 0, 1, 2), special=(0,))
    weights = np.zeros((1, 4, 3))
    for row, source in enumerate((2, 0, 1)):
        weights[0, row, source] = 1.0
    weights[0, 3] = 1 / 3
    gold = [{(2, 0), (0, 1), (1, 2)}]
    trace = build_translation_trace(("x", "y", "z"), pieces, cross=[weights])
    assert extract_alignment(trace, 0, 0, symmetric=False, row="output") == gold[0]
    assert extract_alignment(trace, 0, 0, symmetric=False) != gold[0]
    best = best_alignment_head([trace], gold)
    assert (best.row, best.value) == ("output", 0.0)


def test_rows_of_a_trace_without_start_token_are_not_shifted():
    pieces = TokenList(("a", "b", "<end>"), (0, 1, None), special=(2,))
    weights = np.array([[[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]])
    trace = build_translation_trace(("x", "y"), pieces, cross=[weights])
    for row in ("input", "output"):
        assert extract_alignment(trace, 0, 0, row=row) == {(0, 0), (1, 1)}


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


def test_trace_of_special_tokens_only_has_no_links():
    tokens = TokenList(("<s>", "</s>"), special=(0, 1))
    trace = build_translation_trace(tokens, tokens, cross=[np.full((3, 2, 2), 0.5)] * 2)
    assert extract_alignment(trace) == set()
    assert best_alignment_head([trace]).value == 0
