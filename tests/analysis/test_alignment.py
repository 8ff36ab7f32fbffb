import numpy as np
import pytest
import torch

from regard.analysis import (
    align,
    alignment_error_rate,
    best_head,
    best_reading,
    read_alignment,
    symmetrise,
)
from regard.trace import TokenList, build_translation_trace


@pytest.mark.parametrize(
    "found, gold, possible, rate",
    [
        ([(0, 0), (1, 1)], [(0, 0), (1, 1)], None, 0.0),
        ([(0, 1)], [(0, 0)], None, 1.0),
        ([(0, 0), (1, 2)], [(0, 0), (1, 1)], None, 0.5),
        ([(0, 0), (1, 2)], [(0, 0)], [(1, 2)], 0.0),
        ([(0, 0)], [(0, 0), (1, 1)], None, 1 / 3),
        ([], [], None, 0.0),
        ([], [(0, 0)], None, 1.0),
    ],
)
def test_alignment_error_rate_by_hand(found, gold, possible, rate):
    assert alignment_error_rate(found, gold, possible) == pytest.approx(rate)


def test_links_may_be_given_twice_or_by_a_generator():
    assert alignment_error_rate((link for link in [(0, 0), (0, 0)]), [(0, 0)]) == 0


def looks(*sources, keys=4):
    """Let target word n look mostly at the n-th of the given source words."""
    return torch.eye(keys)[list(sources)] * 0.8 + 0.05


def test_each_target_word_is_linked_to_what_it_looks_at_most():
    assert align(looks(2, 0, 0)) == {(2, 0), (0, 1), (0, 2)}


def test_a_word_is_read_one_step_late_where_it_is_the_input():
    assert align(looks(3, 2, 0), late=True) == {(2, 0), (0, 1)}


def test_a_row_that_looks_nowhere_has_no_link():
    weights = looks(2, 0)
    weights[0] = 0
    assert align(weights) == {(0, 1)}


def test_more_than_one_head_is_refused():
    with pytest.raises(ValueError, match=r"must be one head's, \(target, source\)"):
        align(looks(1, 2)[None])


def test_symmetric_links_are_grown_from_those_that_both_sides_choose():
    # target 1 chooses source 0, which prefers target 0; source 1 chooses target 1, too
    weights = torch.tensor([[0.9, 0.1, 0.0], [0.5, 0.4, 0.1], [0.1, 0.1, 0.8]])
    assert align(weights) == {(0, 0), (0, 1), (2, 2)}
    assert align(weights, symmetric=True) == {(0, 0), (0, 1), (1, 1), (2, 2)}


def test_what_one_side_chooses_far_from_all_others_stays_out():
    assert symmetrise({(0, 0), (5, 1)}, {(0, 0)}) == {(0, 0)}
    assert symmetrise({(0, 0), (1, 1)}, {(0, 0)}) == {(0, 0), (1, 1)}
    assert symmetrise({(0, 0), (0, 1), (1, 1)}, {(0, 0), (1, 1), (1, 0)}) == {(0, 0), (1, 1)}


def test_the_best_head_has_the_lowest_error_rate_over_all_sentences():
    right, wrong, half = looks(0, 1, 2), looks(3, 3, 3), looks(0, 1, 0)
    one = torch.stack([torch.stack([wrong, half]), torch.stack([right, wrong])])
    other = [torch.stack([right, half]), torch.stack([right, wrong])]
    gold = [(0, 0), (1, 1), (2, 2)]
    best = best_head([one, other], [gold, gold])
    assert (best.layer, best.head, best.value) == (1, 0, 0.0)
    assert best.criterion == "lowest alignment error rate"
    np.testing.assert_allclose(best.values, [[0.5, 1 / 3], [0, 1]])


def test_without_gold_the_best_head_is_chosen_back_most_often():
    best = best_head([torch.stack([looks(3, 3, 3), looks(1, 2, 0), looks(0, 0, 1)])[None]])
    assert (best.layer, best.head, best.criterion) == (0, 1, "highest agreement")
    np.testing.assert_allclose(best.values, [[1 / 3, 1, 2 / 3]])


def test_the_best_head_may_be_read_late():
    stack = torch.stack([looks(0, 1, 2, 3), looks(3, 0, 1, 2)])[None]
    gold = [(0, 0), (1, 1), (2, 2)]
    assert best_head([stack], [gold], late=True).head == 1
    assert best_head([stack], [gold]).head == 0


def test_gold_must_be_given_for_every_sentence():
    with pytest.raises(ValueError, match="each of 1 sentences, but 2 came"):
        best_head([looks(0, 1)[None, None]], [[], []])
    with pytest.raises(ValueError, match="one sentence or more"):
        best_head([])


def test_links_of_a_trace_count_words_and_leave_start_and_end_out():
    source = TokenList(("a", "b", "c", "</s>"), words=(0, 0, 1, None), special=(3,))
    target = TokenList(("<s>", "x", "y"), words=(None, 0, 1), special=(0,))
    weights = torch.tensor([[0.0, 0, 0, 1], [0.1, 0, 0.3, 0.6], [0.2, 0.2, 0.1, 0.5]])
    trace = build_translation_trace(source, target, cross=[weights[None]])
    assert read_alignment(trace) == {(1, 0), (0, 1)}


def test_a_trace_without_cross_attention_has_no_alignment():
    with pytest.raises(ValueError, match="read from cross-attention, but the trace has none"):
        read_alignment(build_translation_trace(["a"], ["b"]))


def test_a_word_can_be_given_the_row_that_read_it_or_the_row_that_chose_it():
    """Four rows: the start and three words. Each row looks at the source of the next word."""
    pieces = TokenList(("<start>", "a", "b", "c"), (None, 0, 1, 2), special=(0,))
    looks = np.zeros((1, 4, 3))
    for row, source in enumerate((2, 0, 1)):
        looks[0, row, source] = 1.0
    looks[0, 3] = 1 / 3
    gold = [{(2, 0), (0, 1), (1, 2)}]
    trace = build_translation_trace(("x", "y", "z"), pieces, cross=[looks])
    assert read_alignment(trace, 0, 0, symmetric=False, step="chosen") == gold[0]
    assert read_alignment(trace, 0, 0, symmetric=False) != gold[0]
    reading = best_reading([trace], gold)
    assert (reading.step, reading.value) == ("chosen", 0.0)


def test_rows_that_are_named_by_what_they_chose_stay_where_they_are():
    pieces = TokenList(("a", "b", "<end>"), (0, 1, None), special=(2,))
    looks = np.array([[[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]])
    trace = build_translation_trace(("x", "y"), pieces, cross=[looks])
    for step in ("read", "chosen"):
        assert read_alignment(trace, 0, 0, step=step) == {(0, 0), (1, 1)}


def test_a_layer_or_a_head_that_is_named_is_the_one_that_is_read():
    same, turned = np.eye(3), np.eye(3)[::-1]
    cross = [np.stack([same, same]), np.stack([np.full((3, 3), 1 / 3), turned])]
    trace = build_translation_trace(("x", "y", "z"), ("a", "b", "c"), cross=cross)
    straight, crossed = {(0, 0), (1, 1), (2, 2)}, {(2, 0), (1, 1), (0, 2)}
    assert read_alignment(trace) == straight
    assert read_alignment(trace, layer=1) == crossed
    assert read_alignment(trace, layer=-1) == crossed
    trace = build_translation_trace(("x", "y", "z"), ("a", "b", "c"), cross=cross[:0:-1])
    assert read_alignment(trace, head=1) == crossed


def test_a_trace_of_special_tokens_only_has_no_links():
    tokens = TokenList(("<s>", "</s>"), special=(0, 1))
    trace = build_translation_trace(tokens, tokens, cross=[np.full((3, 2, 2), 0.5)] * 2)
    assert read_alignment(trace) == set()
    assert best_reading([trace]).value == 0
